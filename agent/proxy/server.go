package proxy

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"time"

	"github.com/irb-project/irb/agent/config"
)

// NewServer returns the server of one listener: HTTP/1.1, HTTP/2 over TLS, and
// HTTP/2 by prior knowledge without it. It has no limit on the whole of a
// request or an answer, which would kill long streams; the handler limits each
// read and write instead.
func NewServer(c *config.Config, h http.Handler, t *tls.Config, log *slog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           h,
		TLSConfig:         t,
		Protocols:         protocols,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       c.Timeouts.ClientIdle,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 1000},
	}
}
