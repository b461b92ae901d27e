package proxy

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/irb-project/irb/agent/body"
	"github.com/irb-project/irb/agent/guard"
	"github.com/irb-project/irb/agent/metrics"
	"github.com/irb-project/irb/agent/pick"
)

// exchange is one request and its answer. It is not pooled: a transport or a
// timer that is late must never touch the next request.
type exchange struct {
	proxy    *Proxy
	plan     *plan
	listener *listener
	writer   http.ResponseWriter
	control  http.ResponseController
	request  *http.Request

	start    time.Time
	deadline time.Time // for the first byte of the answer

	requestIDValue [1]string
	forwarded      [3]string // values of the header for the engine
	identity       [1]string
	peer           netip.AddrPort
	trustedPeer    bool // a trusted proxy of this listener
	believed       bool // headers of this peer may decide on its class

	facts     body.Request
	body      *bodyBuffer // nil: there is none, or it is streamed
	upload    *upload     // nil: the body is in memory
	source    upload      // reads the body
	opaque    bool        // the body may hold a model, but not so that we can read it
	bodyEnded atomic.Bool // the client's body was read to its end
	silent    atomic.Bool // the client stopped sending its body
	class     *pick.Class
	guard     *guard.Class
	limits    *limits
	key       uint64
	keySource string

	candidates candidates
	tried      []attempt // in order
	triedArray [4]attempt
	route      *metrics.Route // of the engine tried last

	sse          sseScanner
	writeTimeout time.Duration
	writeLimit   time.Time // until when the write under way may take

	status     int
	outcome    metrics.Outcome
	ttft       time.Duration // 0: unknown
	firstToken time.Time
	lastToken  time.Time
}

// attempt is what the log tells of one try.
type attempt struct {
	engine   int
	index    int // of the endpoint in its pool
	rank     int
	endpoint *endpoint
	cold     bool           // it is not the home of the key
	failed   metrics.Reason // if not ok
	ok       bool
}

func (p *Proxy) begin(l *listener, w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{
		proxy: p, plan: p.plan.Load(), listener: l, writer: w, request: r,
		start: p.now(), outcome: metrics.Rejected, route: p.unrouted, writeTimeout: defaultWriteTimeout,
	}
	x.control = *http.NewResponseController(w)
	x.tried = x.triedArray[:0]
	x.requestIDValue[0] = requestID(r.Header)
	if x.plan != nil {
		x.writeTimeout = x.plan.config.Timeouts.ClientWrite
		x.deadline = x.start.Add(x.plan.config.Timeouts.Total)
	}
	return x
}

// defaultWriteTimeout bounds the writing of errors before there is a config.
const defaultWriteTimeout = 30 * time.Second

// requestID adopts the client's id or makes one.
func requestID(h http.Header) string {
	if v := h["X-Request-Id"]; len(v) == 1 && validRequestID(v[0]) {
		return v[0]
	}
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], rand.Uint64())
	binary.LittleEndian.PutUint64(b[8:], rand.Uint64())
	var text [2 * len(b)]byte
	hex.Encode(text[:], b[:])
	return string(text[:])
}

// serve is the way of a request; see the package comment.
func (p *Proxy) serve(l *listener, w http.ResponseWriter, r *http.Request) {
	x := p.begin(l, w, r)
	// On every exit, also a panic that aborts the connection.
	defer x.finish()
	if refusal := x.run(); refusal != nil {
		x.refuse(refusal)
	}
	x.boundUnread()
	if x.status == 0 {
		// Nobody is there to read an answer; the server must not make one up.
		panic(http.ErrAbortHandler)
	}
}

// run takes the request to an engine. A refusal is the answer to give instead;
// nil means that the client has been answered, or has left.
func (x *exchange) run() *answer {
	if x.plan == nil {
		return &answer{
			status: http.StatusServiceUnavailable, kind: "server_error", code: "no_snapshot",
			message: "no weight file has been accepted yet", dropped: droppedNoEndpoints, retryAfter: time.Second,
		}
	}
	if refusal := checkTarget(x.request); refusal != nil {
		return refusal
	}
	if refusal := x.identify(); refusal != nil {
		return refusal
	}
	if refusal := x.intake(); refusal != nil {
		return refusal
	}
	x.nameResponse()
	if refusal := x.classify(); refusal != nil {
		return refusal
	}
	x.setKey()
	x.countOffered()
	if refusal := x.admit(); refusal != nil {
		return refusal
	}
	return x.attempts()
}

// checkTarget refuses what a proxy of an API has no use for and what engines
// could read in another way than the class rules do.
func checkTarget(r *http.Request) *answer {
	if r.Method == http.MethodConnect || !strings.HasPrefix(r.URL.Path, "/") {
		return badRequest("bad_target", "", "the request target must be a path")
	}
	if r.Method == http.MethodTrace { // its answer would show the client what we add, the token of engines too
		return badRequest("bad_method", "", "TRACE is not passed on")
	}
	// HTTP/2 can carry what no request line can, and an engine must not be blamed
	// for a request that cannot be sent to it.
	if !httpguts.ValidHeaderFieldName(r.Method) || strings.ContainsFunc(r.URL.RawQuery, outsideOfTargets) {
		return badRequest("bad_target", "", "the method must be a token, the query without blanks and control characters")
	}
	if strings.Contains(r.URL.Path, "..") {
		for segment := range strings.SplitSeq(r.URL.Path, "/") {
			if segment == ".." {
				return badRequest("bad_target", "", `the path must not contain ".."`)
			}
		}
	}
	return nil
}

// outsideOfTargets says whether a character cannot stand in a request line.
func outsideOfTargets(c rune) bool { return c <= ' ' || c == 0x7f }

// refuse answers with an error of ours.
func (x *exchange) refuse(a *answer) {
	if x.clientLeft() {
		x.outcome = metrics.Canceled
		return
	}
	x.status = a.status
	x.writer.Header()["X-Request-Id"] = x.requestIDValue[:]
	x.closeIfDraining()
	x.extendWrite()
	a.write(x.writer)
}

// clientLeft says whether there is nobody to answer. The server ends the
// request's context also for a client that is merely too slow.
func (x *exchange) clientLeft() bool { return x.request.Context().Err() != nil && !x.silent.Load() }

// closeIfDraining asks the client to open its next connection elsewhere.
func (x *exchange) closeIfDraining() {
	if x.proxy.draining.Load() && x.request.ProtoMajor == 1 {
		x.writer.Header()["Connection"] = []string{"close"}
	}
}

// extendWrite gives the next write its time. A total for the answer would kill
// long streams; a limit per write ends only those whose client does not read.
// The deadline is set a quarter late and moved when less than the limit is left
// of it, not on each write.
func (x *exchange) extendWrite() {
	limit := x.writeTimeout
	now := x.proxy.now()
	if x.writeLimit.Sub(now) >= limit {
		return
	}
	x.writeLimit = now.Add(limit + limit/4)
	_ = x.control.SetWriteDeadline(x.writeLimit) // a writer without deadlines needs none
}
