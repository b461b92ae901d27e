package proxy

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/irb-project/irb/agent/config"
)

// NewServer returns the server of one listener: HTTP/1.1, HTTP/2 over TLS, and
// HTTP/2 by prior knowledge without it. It has no limit on the whole of a
// request or an answer, which would kill long streams; the handler limits each
// read and write instead.
func NewServer(c *config.Config, h http.Handler, t *tls.Config, log *slog.Logger) *Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	s := &Server{}
	s.Server = http.Server{
		Handler:           h,
		TLSConfig:         t,
		Protocols:         protocols,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       c.Timeouts.ClientIdle,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 1000},
		ConnState:         s.connState,
	}
	return s
}

// Server is an http.Server that can stop without dropping a request.
type Server struct {
	http.Server
	fresh sync.Map // net.Conn: accepted, and no request read from it yet
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
	quiet := 0
	for waited := time.Duration(0); waited < freshWait && quiet < 2 && ctx.Err() == nil; waited += freshPoll {
		quiet++
		s.fresh.Range(func(any, any) bool {
			quiet = 0
			return false
		})
		time.Sleep(freshPoll)
	}
	return s.Shutdown(ctx)
}
