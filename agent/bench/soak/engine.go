package soak

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// requestID is the header by which the soak follows a request; agents pass on
// the id that a client gave.
const requestID = "X-Request-Id"

// answer is what an engine says of a request: what it has read of it.
type answer struct {
	Bytes int64  `json:"bytes"`
	CRC32 uint32 `json:"crc32"`
}

// frames is how many tokens a stream has; done ends it.
const (
	frames = 20
	frame  = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"token %d\"}}]}\n\n"
	done   = "data: [DONE]\n\n"
)

// endpoint is a server that can be stopped and started again on its address.
type endpoint struct {
	address  string
	server   *http.Server
	serving  sync.WaitGroup
	inFlight atomic.Int64

	stops atomic.Int64 // counts stops, and the starts after them: odd while it is being stopped
	begun sync.Map     // request id -> *begin, of streams
}

// begin is the first token of a stream.
type begin struct {
	stops   int64         // of the endpoint before it; odd: the stop is under way
	decided chan struct{} // closed when it is known whether it went out
	out     bool
}

func newEndpoint() (*endpoint, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &endpoint{address: l.Addr().String()}
	e.stops.Store(1) // not started yet
	e.serve(l)
	return e, nil
}

func (e *endpoint) serve(l net.Listener) {
	s := &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 5 * time.Second}
	e.server = s
	e.stops.Add(1)
	e.serving.Go(func() { _ = s.Serve(l) }) // returns when it is closed
}

// restart breaks every connection, stays away for a while and comes back.
func (e *endpoint) restart(away time.Duration) error {
	e.stop()
	time.Sleep(away)
	l, err := net.Listen("tcp", e.address)
	if err != nil {
		return err
	}
	e.serve(l)
	return nil
}

func (e *endpoint) stop() {
	e.stops.Add(1)
	e.server.Close()
	e.serving.Wait()
}

// ServeHTTP answers at once, or with a stream if the query says so.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.inFlight.Add(1)
	defer e.inFlight.Add(-1)
	if r.Method != http.MethodPost {
		http.NotFound(w, r) // of /metrics: this engine reports nothing
		return
	}
	sum := crc32.NewIEEE()
	n, err := io.Copy(sum, r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the caller left, or the endpoint restarts
	}
	a := answer{Bytes: n, CRC32: sum.Sum32()}
	if r.URL.Query().Has("stream") {
		err = e.stream(w, r, a)
	} else {
		w.Header().Set("Content-Type", "application/json")
		err = json.NewEncoder(w).Encode(a)
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// stream writes what it has read as the head's fields, then frames.
func (e *endpoint) stream(w http.ResponseWriter, r *http.Request, a answer) error {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Bytes", strconv.FormatInt(a.Bytes, 10))
	w.Header().Set("X-CRC32", strconv.FormatUint(uint64(a.CRC32), 10))
	flush := http.NewResponseController(w)
	first := &begin{stops: e.stops.Load(), decided: make(chan struct{})}
	// Before the first token: the caller may see it, and its end, before the
	// flush returns here.
	e.begun.Store(r.Header.Get(requestID), first)
	for i := range frames {
		_, err := fmt.Fprintf(w, frame, i)
		if err == nil {
			err = flush.Flush()
		}
		if i == 0 {
			first.out = err == nil
			close(first.decided)
		}
		if err != nil {
			return err
		}
		time.Sleep(rand.N(2 * time.Millisecond))
		if r.Context().Err() != nil {
			return errors.New("the caller left, or the endpoint restarts")
		}
	}
	_, err := io.WriteString(w, done)
	return err
}

// wasCut says whether the endpoint was stopped since a stream began here.
func (e *endpoint) wasCut(id string) bool {
	v, ok := e.begun.Load(id)
	if !ok {
		return false
	}
	first := v.(*begin)
	<-first.decided
	return first.out && (first.stops != e.stops.Load() || first.stops%2 != 0)
}
