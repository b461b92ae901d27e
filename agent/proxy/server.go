package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/irb-project/irb/agent/config"
	"github.com/irb-project/irb/agent/h1server"
)

// headerTimeout bounds the wait for the header of a request.
const headerTimeout = 10 * time.Second

// Server is the server of one listener: HTTP/1.1, HTTP/2 over TLS, and HTTP/2 by
// prior knowledge without it. It has no limit on the whole of a request or an
// answer, which would kill long streams; the handler limits each read and write
// instead. It can stop without dropping a request.
//
// Plain requests without TLS, nearly all there are, are served by package
// h1server, the rest by net/http.
type Server struct {
	full   http.Server
	quick  *h1server.Server
	passed *passedOn
	fresh  sync.Map // net.Conn of full: accepted, and no request read from it yet
}

// NewServer returns the server of a listener; t is nil if it has no TLS.
func NewServer(c *config.Config, h http.Handler, t *tls.Config, log *slog.Logger) *Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	s := &Server{passed: newPassedOn()}
	s.full = http.Server{
		Handler:           h,
		TLSConfig:         t,
		Protocols:         protocols,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       c.Timeouts.ClientIdle,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 1000},
		ConnState:         s.connState,
	}
	s.quick = &h1server.Server{
		Handler: h, Other: s.passed.take, HeaderTimeout: headerTimeout, IdleTimeout: c.Timeouts.ClientIdle, Log: log,
	}
	return s
}

// Serve serves the connections of l until it is closed.
func (s *Server) Serve(l net.Listener) error {
	if s.full.TLSConfig != nil {
		return s.full.ServeTLS(l, "", "")
	}
	s.passed.address = l.Addr()
	ended := make(chan error, 2)
	go func() { ended <- s.full.Serve(s.passed) }()
	go func() { ended <- s.quick.Serve(l) }()
	return <-ended
}

func (s *Server) connState(c net.Conn, state http.ConnState) {
	if state == http.StateNew {
		s.fresh.Store(c, nil)
		return
	}
	s.fresh.Delete(c)
}

const (
	// freshWait is how long a connection that was just accepted may take to
	// send its request when the server stops.
	freshWait = time.Second
	freshPoll = 10 * time.Millisecond
)

// Drain stops accepting and returns when all requests are answered, or with an
// error when ctx ends. http.Server.Shutdown alone drops the requests that it
// reads after it was called: those on their way on new connections. So the
// listener is closed first, and those are awaited.
func (s *Server) Drain(ctx context.Context, l net.Listener) error {
	l.Close()
	s.quick.StartDrain()
	quiet := 0
	for waited := time.Duration(0); waited < freshWait && quiet < 2 && ctx.Err() == nil; waited += freshPoll {
		quiet++
		if s.quick.Fresh() || s.anyFresh() {
			quiet = 0
		}
		time.Sleep(freshPoll)
	}
	quickEnded := make(chan error, 1)
	go func() { quickEnded <- s.quick.Wait(ctx) }()
	err := s.full.Shutdown(ctx)
	return errors.Join(err, <-quickEnded)
}

func (s *Server) anyFresh() (found bool) {
	s.fresh.Range(func(any, any) bool {
		found = true
		return false
	})
	return found
}

// Close cuts all connections.
func (s *Server) Close() error {
	s.quick.Close()
	return s.full.Close()
}

// passedOn is a listener whose connections come from another server.
type passedOn struct {
	address net.Addr
	conns   chan net.Conn
	ended   chan struct{}
	end     sync.Once
}

func newPassedOn() *passedOn {
	return &passedOn{conns: make(chan net.Conn), ended: make(chan struct{})}
}

func (p *passedOn) take(c net.Conn) {
	select {
	case p.conns <- c:
	case <-p.ended:
		c.Close()
	}
}

// Accept returns the next connection that was taken.
func (p *passedOn) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (p *passedOn) Close() error {
	p.end.Do(func() { close(p.ended) })
	return nil
}

// Addr is the address of the listener that accepted the connections.
func (p *passedOn) Addr() net.Addr { return p.address }
