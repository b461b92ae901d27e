// Package h1server serves HTTP/1.1 requests of the plainest kind at a fraction
// of what net/http takes for them: one read and one write, no goroutine and few
// allocations per request, no buffer held by a connection that waits or streams.
// A connection whose next request is of any other kind (another version or
// method, a chunked body, Expect, Upgrade, anything odd or malformed) goes to
// net/http for good, unread, so that this package need not know how to treat it.
package h1server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Server serves the connections of listeners.
//
// Its handlers may do with a request and a ResponseWriter what net/http allows,
// with these exceptions: the two Header maps are used again for the next request,
// so none may be kept after the handler has returned (their values may); there is
// no Hijacker, since a request for an upgrade goes to net/http; trailers must be
// announced or have http.TrailerPrefix; and the request's context has no values.
type Server struct {
	Handler http.Handler
	// Other takes over a connection that is for net/http. Its Read begins with
	// the request that was refused here.
	Other func(net.Conn)
	// HeaderTimeout bounds the wait for the first request of a connection and
	// for the rest of a header that has begun.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a connection waits for its next request, at least;
	// it may be a quarter longer.
	IdleTimeout time.Duration
	Log         *slog.Logger // of panics

	draining atomic.Bool
	mu       sync.Mutex
	conns    map[*conn]bool
	closed   bool
}

// Serve accepts connections until l is closed.
func (s *Server) Serve(l net.Listener) error {
	const longest = time.Second
	wait := time.Duration(0)
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			wait = 0
			s.start(c)
		case errors.Is(err, net.ErrClosed):
			return http.ErrServerClosed
		default: // out of descriptors, or a connection that was gone again
			wait = min(longest, max(5*time.Millisecond, 2*wait))
			s.Log.Warn("no connection accepted", "err", err, "next try in", wait)
			time.Sleep(wait)
		}
	}
}

func (s *Server) start(raw net.Conn) {
	c := newConn(s, raw)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		raw.Close()
		return
	}
	if s.conns == nil {
		s.conns = map[*conn]bool{}
	}
	s.conns[c] = true
	go c.serve()
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// StartDrain closes every connection once the request on it is answered, and
// those that wait for their next one.
func (s *Server) StartDrain() {
	s.draining.Store(true)
	s.endIdle(idle)
}

// Fresh says whether a connection was accepted that has sent nothing yet, or one
// is sending the header of a request, which may turn out to be for Other.
func (s *Server) Fresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if state := c.state.Load(); state == fresh || state == reading {
			return true
		}
	}
	return false
}

// Wait returns after StartDrain when all requests are answered, or with an error
// when ctx ends. Connections that have sent nothing yet are closed.
func (s *Server) Wait(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		s.endIdle(idle)
		s.endIdle(fresh)
		s.mu.Lock()
		left := len(s.conns)
		s.mu.Unlock()
		if left == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// endIdle closes the connections of a state in which no request is under way.
func (s *Server) endIdle(state int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.state.CompareAndSwap(state, ended) {
			c.Conn.Close()
		}
	}
}

// Close cuts all connections and takes no more.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for c := range s.conns {
		c.Conn.Close()
	}
}
