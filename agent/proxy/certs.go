package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/irb-project/irb/agent/config"
)

// certificateIdentity returns the name in a verified client certificate: its
// first URI (SPIFFE), else DNS name, else common name.
func certificateIdentity(c *x509.Certificate) string {
	switch {
	case len(c.URIs) > 0:
		return c.URIs[0].String()
	case len(c.DNSNames) > 0:
		return c.DNSNames[0]
	}
	return c.Subject.CommonName
}

// rotated is what was read from files that may be replaced while it is in use.
// What cannot be read, as in the middle of a rotation, leaves the old value in
// use, and is tried again when a file changes once more.
type rotated[T any] struct {
	paths []string
	read  func() (T, error)
	log   *slog.Logger

	mu      sync.Mutex // handshakes only, never a request
	current T
	stamps  []fileStamp
}

type fileStamp struct {
	modified time.Time
	size     int64
}

func stampsOf(paths []string) []fileStamp {
	stamps := make([]fileStamp, len(paths))
	for i, path := range paths {
		if info, err := os.Stat(path); err == nil { // follows the links of a Kubernetes secret
			stamps[i] = fileStamp{info.ModTime(), info.Size()}
		}
	}
	return stamps
}

func newRotated[T any](log *slog.Logger, read func() (T, error), paths ...string) (*rotated[T], error) {
	r := &rotated[T]{paths: paths, read: read, log: log, stamps: stampsOf(paths)}
	var err error
	r.current, err = read()
	return r, err
}

func (r *rotated[T]) get() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := stampsOf(r.paths)
	if slices.Equal(now, r.stamps) {
		return r.current
	}
	r.stamps = now
	if next, err := r.read(); err != nil {
		r.log.Warn("certificate not read, the old one stays in use", "err", err)
	} else {
		r.current = next
	}
	return r.current
}

func newKeyPair(certFile, keyFile string, log *slog.Logger) (*rotated[*tls.Certificate], error) {
	return newRotated(log, func() (*tls.Certificate, error) {
		cert, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return nil, fmt.Errorf("certificate %s: %w", certFile, err)
		}
		return &cert, nil
	}, certFile, keyFile)
}

func newPool(path string, log *slog.Logger) (*rotated[*x509.CertPool], error) {
	return newRotated(log, func() (*x509.CertPool, error) { return loadPool(path) }, path)
}

func loadPool(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate in it, want PEM", path)
	}
	return pool, nil
}

// ServerTLS returns the TLS settings of a listener, nil if it is plain HTTP.
func ServerTLS(l config.Listener, log *slog.Logger) (*tls.Config, error) {
	if l.TLSCertFile == "" {
		return nil, nil
	}
	pair, err := newKeyPair(l.TLSCertFile, l.TLSKeyFile, log)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.get(), nil },
	}
	if l.ClientCAFile == "" {
		return c, nil
	}
	pool, err := newPool(l.ClientCAFile, log)
	if err != nil {
		return nil, err
	}
	c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, pool.get()
	base := c.Clone()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		next := base.Clone()
		next.ClientCAs = pool.get()
		return next, nil
	}
	return c, nil
}

// engineTLS makes TLS settings towards engines.
type engineTLS struct {
	base *tls.Config
	pool *rotated[*x509.CertPool] // nil: the system's
}

func newEngineTLS(e config.Engine, log *slog.Logger) (t engineTLS, err error) {
	t.base = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: e.ServerName, ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	if e.CAFile != "" {
		if t.pool, err = newPool(e.CAFile, log); err != nil {
			return t, err
		}
	}
	if e.ClientCertFile != "" {
		pair, err := newKeyPair(e.ClientCertFile, e.ClientKeyFile, log)
		if err != nil {
			return t, err
		}
		t.base.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair.get(), nil }
	}
	return t, nil
}

// config returns the settings of one connection to a host for these protocols.
func (t engineTLS) config(host string, protocols []string) *tls.Config {
	c := t.base.Clone()
	c.NextProtos = protocols
	if c.ServerName == "" {
		c.ServerName = host
	}
	if t.pool != nil {
		c.RootCAs = t.pool.get()
	}
	return c
}

// token is the bearer token of engines, from a file that may be rotated.
type token struct {
	path  string
	value atomic.Pointer[string]
}

func newToken(path string) (*token, error) {
	t := &token{path: path}
	if err := t.refresh(); err != nil {
		return nil, err
	}
	return t, nil
}

// refresh reads the file again; the old token stays if that fails.
func (t *token) refresh() error {
	b, err := os.ReadFile(t.path)
	if err != nil {
		return err
	}
	text := strings.TrimSpace(string(b))
	if text == "" || strings.ContainsAny(text, "\r\n") {
		return fmt.Errorf("%s: want one line with the token", t.path)
	}
	t.value.Store(&text)
	return nil
}

func (t *token) get() string { return *t.value.Load() }
