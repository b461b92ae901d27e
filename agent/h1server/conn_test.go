package h1server

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// pipe returns a connection that is not served, and its other end.
func pipe(t *testing.T, s *Server) (*conn, net.Conn) {
	t.Helper()
	here, there := net.Pipe()
	t.Cleanup(func() { here.Close(); there.Close() })
	return newConn(s, here), there
}

// TestIdleTimeoutIsKept: a connection is not closed earlier than its clients
// count on.
func TestIdleTimeoutIsKept(t *testing.T) {
	const limit = time.Hour
	c, _ := pipe(t, &Server{IdleTimeout: limit})
	for _, left := range []time.Duration{0, limit * 3 / 4, limit - time.Second, limit + time.Minute, limit * 5 / 4} {
		now := time.Now()
		c.idleUntil = now.Add(left)
		c.limitWait()
		if got := c.idleUntil.Sub(now); got < limit {
			t.Errorf("with %v left, the next request may take %v, want at least %v", left, got, limit)
		}
	}
}

// deadlines keeps what is set.
type deadlines struct {
	net.Conn
	write []time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.write = append(d.write, t)
	return nil
}

func TestWriteDeadlineIsNotEarlier(t *testing.T) {
	c, _ := pipe(t, &Server{})
	d := &deadlines{Conn: c.Conn}
	c.Conn = d
	now := time.Now()
	for _, test := range []struct {
		after time.Duration // of the deadline asked for
		sets  int           // deadlines set up to then
	}{
		{80 * time.Minute, 1}, {81 * time.Minute, 1}, {89 * time.Minute, 1}, {100 * time.Minute, 2}, {50 * time.Minute, 3}, {-time.Minute, 4},
	} {
		until := now.Add(test.after)
		w := &response{conn: c}
		if err := w.SetWriteDeadline(until); err != nil || len(d.write) != test.sets {
			t.Fatalf("%v: set %d times (%v), want %d", test.after, len(d.write), err, test.sets)
		}
		late := d.write[len(d.write)-1].Sub(until)
		if late < 0 || late > max(0, test.after/8) {
			t.Errorf("%v: set late by %v", test.after, late)
		}
	}
	w := &response{conn: c}
	if err := w.SetWriteDeadline(time.Time{}); err != nil || !d.write[len(d.write)-1].IsZero() {
		t.Errorf("no deadline: %v, set %v", err, d.write)
	}
}

// TestOtherGetsNoDeadline: net/http may write its own answers, whatever the
// handler of an earlier request had set.
func TestOtherGetsNoDeadline(t *testing.T) {
	_, address := listen(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength < 0 {
			return
		}
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
			t.Error(err)
		}
	})
	c := dial(t, address)
	c.send(post("plain"))
	if resp, _, err := c.answer(); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", resp, err)
	}
	time.Sleep(40 * time.Millisecond)
	c.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
	if resp, _, err := c.answer(); err != nil || resp.Header.Get("X-Full") != "1" {
		t.Errorf("%v %v", resp, err)
	}
}

// TestAnswerBeforeTheUpload: an answer, or the end of one, does not wait for a
// client that has stopped sending, though somebody still reads its body.
func TestAnswerBeforeTheUpload(t *testing.T) {
	for name, end := range map[string]func(){
		"answer": func() {},
		"abort":  func() { panic(http.ErrAbortHandler) },
		"panic":  func() { panic("test") },
		"exit":   runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			_, address := listen(t, func(w http.ResponseWriter, r *http.Request) {
				begun := make(chan bool)
				go func() {
					var b [4]byte
					io.ReadFull(r.Body, b[:])
					close(begun)
					r.Body.Read(b[:])
				}()
				<-begun
				time.Sleep(10 * time.Millisecond)
				w.Header().Set("Content-Length", "0")
				w.WriteHeader(http.StatusTooManyRequests)
				end()
			})
			c := dial(t, address)
			c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf")
			resp, _, err := c.answer()
			if name != "answer" {
				if err == nil {
					t.Errorf("answered %v", resp)
				}
				return
			}
			if err != nil || resp.StatusCode != http.StatusTooManyRequests {
				t.Errorf("%v %v", resp, err)
			}
			c.conn.Close()
		})
	}
}

// TestLargeHeadersAreNotKept: a connection that waits holds no large map.
func TestLargeHeadersAreNotKept(t *testing.T) {
	h := http.Header{}
	for i := range keptFields {
		h["X-"+strconv.Itoa(i)] = nil
	}
	again := cleared(h)
	again["A"] = nil
	if len(h) != 1 {
		t.Errorf("a header of %d fields is not used again", keptFields)
	}
	for i := range keptFields + 1 {
		h["X-"+strconv.Itoa(i)] = nil
	}
	if again = cleared(h); len(again) != 0 || len(h) == 0 {
		t.Errorf("a header of %d fields is used again", len(h))
	}
}

// TestFreshWhileReading: a request whose header is under way counts when the
// server stops, since it may be for Other.
func TestFreshWhileReading(t *testing.T) {
	reading := make(chan bool)
	s, address := listen(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 0 {
			reading <- true
			<-reading
		}
	})
	c := dial(t, address)
	c.send(post(""))
	if _, _, err := c.answer(); err != nil {
		t.Fatal(err)
	}
	for s.Fresh() {
		time.Sleep(time.Millisecond)
	}
	request := post("hello")
	c.send(request[:10])
	for !s.Fresh() { // the test's own limit ends it
		time.Sleep(time.Millisecond)
	}
	c.send(request[10:])
	<-reading
	if s.Fresh() {
		t.Error("a request that is answered counts as one to come")
	}
	reading <- true
	if _, _, err := c.answer(); err != nil {
		t.Error(err)
	}
}

// TestWaitingConnectionHoldsNothing of its last request.
func TestWaitingConnectionHoldsNothing(t *testing.T) {
	s, address := listen(t, handlers["echo"])
	c := dial(t, address)
	c.send(post("hello"))
	if _, _, err := c.answer(); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for waiting := range s.conns {
		for waiting.state.Load() != idle {
			time.Sleep(time.Millisecond)
		}
		if waiting.watch.w != nil || len(waiting.header)+len(waiting.answer) > 0 {
			t.Errorf("holds %+v, %v, %v", waiting.watch.w, waiting.header, waiting.answer)
		}
	}
}

// failingListener cannot accept at first.
type failingListener struct {
	net.Listener
	failures int
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.failures > 0 {
		l.failures--
		return nil, syscall.EMFILE
	}
	return l.Listener.Accept()
}

// TestAcceptGoesOn: a lack of descriptors passes.
func TestAcceptGoesOn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		Handler: handlers["echo"], HeaderTimeout: time.Minute, IdleTimeout: time.Minute, Log: slog.New(slog.DiscardHandler),
	}
	ended := make(chan error)
	go func() { ended <- s.Serve(&failingListener{l, 3}) }()
	c := dial(t, l.Addr().String())
	c.send(post("hello"))
	if _, body, err := c.answer(); err != nil || body != "hello" {
		t.Errorf("%q %v", body, err)
	}
	l.Close()
	if err := <-ended; err != http.ErrServerClosed {
		t.Errorf("ended with %v", err)
	}
	s.Close()
}
