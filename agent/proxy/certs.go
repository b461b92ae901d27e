package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
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

// keyPair is a certificate that is read again when its files change. A pair
// that cannot be read, as in the middle of a rotation, leaves the old one in
// use.
type keyPair struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex // handshakes only, never a request
	current *tls.Certificate
	stamp   [2]fileStamp
}

type fileStamp struct {
	modified time.Time
	size     int64
}

func stampOf(path string) fileStamp {
	info, err := os.Stat(path) // follows the links of a Kubernetes secret
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{info.ModTime(), info.Size()}
}

func newKeyPair(certFile, keyFile string, log *slog.Logger) (*keyPair, error) {
	k := &keyPair{certFile: certFile, keyFile: keyFile, log: log}
	if err := k.load(); err != nil {
		return nil, err
	}
	return k, nil
}

func (k *keyPair) load() error {
	stamp := [2]fileStamp{stampOf(k.certFile), stampOf(k.keyFile)}
	cert, err := tls.LoadX509KeyPair(k.certFile, k.keyFile)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", k.certFile, err)
	}
	k.current, k.stamp = &cert, stamp
	return nil
}

func (k *keyPair) get() *tls.Certificate {
	k.mu.Lock()
	defer k.mu.Unlock()
	if (stampOf(k.certFile) != k.stamp[0]) || stampOf(k.keyFile) != k.stamp[1] {
		if err := k.load(); err != nil {
			k.log.Warn("certificate not read, the old one stays in use", "err", err)
		}
	}
	return k.current
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
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.get(), nil },
	}
	if l.ClientCAFile != "" {
		if c.ClientCAs, err = loadPool(l.ClientCAFile); err != nil {
			return nil, err
		}
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return c, nil
}

// engineTLS returns the TLS settings towards engines.
func engineTLS(e config.Engine, log *slog.Logger) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: e.ServerName, ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	var err error
	if e.CAFile != "" {
		if c.RootCAs, err = loadPool(e.CAFile); err != nil {
			return nil, err
		}
	}
	if e.ClientCertFile != "" {
		pair, err := newKeyPair(e.ClientCertFile, e.ClientKeyFile, log)
		if err != nil {
			return nil, err
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair.get(), nil }
	}
	return c, nil
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
