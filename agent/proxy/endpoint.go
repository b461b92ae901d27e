package proxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/irb-project/irb/agent/h1client"
	"github.com/irb-project/irb/agent/metrics"
	"github.com/irb-project/irb/agent/pick"
)

// endpoint is one address that serves requests of an engine. It outlives
// reloads that keep it; an engine that comes back under the same address after
// it was away gets a new one, so that old counts cannot disturb it.
type endpoint struct {
	id       string // of the rendezvous; the URL, with the address if its name has several
	url      *url.URL
	host     string // host:port to connect to
	basePath string // escaped, without the slash at the end
	upstream upstream
	link     *metrics.Link

	downUntil atomic.Int64 // unix ns; set when it could not be reached
}

// upstream sends requests to one endpoint. Each endpoint has its own, so that
// connections to one never wait for those to another.
type upstream interface {
	http.RoundTripper
	CloseIdleConnections()
	// Retire closes idle connections and lets no request use one that is open.
	Retire()
}

// downFor is how long an endpoint that could not be reached is passed over: a
// refused connection is quick, but a lost host costs each request a whole
// connect timeout. Every mark expires by itself.
const downFor = time.Second

func (e *endpoint) markDown(now time.Time) { e.downUntil.Store(now.Add(downFor).UnixNano()) }

func (e *endpoint) markUp() {
	if e.downUntil.Load() != 0 {
		e.downUntil.Store(0)
	}
}

func (e *endpoint) down(now time.Time) bool { return now.UnixNano() < e.downUntil.Load() }

// pool is the endpoints of one engine in one plan.
type pool struct {
	endpoints []*endpoint
	walk      *pick.Endpoints
}

// parseEndpoint checks the URL of an endpoint.
func parseEndpoint(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, err
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("endpoint %q, want http://HOST or https://HOST", raw)
	}
	return u, nil
}

// newEndpoint makes an endpoint of an engine that connects to address, a host name or an IP
// address, on the port of the URL.
func (p *Proxy) newEndpoint(engine, id string, u *url.URL, address string) *endpoint {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	e := &endpoint{id: id, url: u, host: net.JoinHostPort(address, port), basePath: trimSlash(u.EscapedPath())}
	e.link = p.reach.Link(engine, id)
	const http1 = "http/1.1"
	e.upstream = &h1client.Client{Dial: p.dialerOf(u, e.host, e.link, http1), IdleTimeout: p.engineIdle, MaxIdle: maxIdlePerEndpoint}
	if p.http2 {
		e.upstream = newHTTP2Upstream(u.Scheme, p.dialerOf(u, e.host, e.link, "h2", http1), p.engineIdle, e.upstream)
	}
	return e
}

// maxIdlePerEndpoint bounds kept connections; more requests than that at once
// open connections that are closed afterwards.
const maxIdlePerEndpoint = 1024

func trimSlash(s string) string {
	for len(s) > 0 && s[len(s)-1] == '/' {
		s = s[:len(s)-1]
	}
	return s
}

// dialerOf returns what connects to host for a URL, over TLS for one of these
// protocols.
func (p *Proxy) dialerOf(u *url.URL, host string, link *metrics.Link, protocols ...string) func(ctx context.Context) (net.Conn, error) {
	if u.Scheme == "http" {
		return func(ctx context.Context) (net.Conn, error) { return p.dialer.dial(ctx, "tcp", host, link) }
	}
	return func(ctx context.Context) (net.Conn, error) {
		return p.dialer.dialTLS(ctx, "tcp", host, p.tls.config(u.Hostname(), protocols), link)
	}
}
