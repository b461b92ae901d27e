package proxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/irb-project/irb/agent/pick"
)

// endpoint is one address that serves requests of an engine. It outlives
// reloads that keep it; an engine that comes back under the same address after
// it was away gets a new one, so that old counts cannot disturb it.
type endpoint struct {
	id        string // of the rendezvous; the URL, with the address if its name has several
	scheme    string
	host      string // to connect to
	hostName  string // of the Host header
	basePath  string // escaped, without the slash at the end
	transport http.RoundTripper

	inFlight  atomic.Int64
	downUntil atomic.Int64 // unix ns; set when it could not be reached
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

// origin is an endpoint as the snapshot names it: one URL, whose host name may
// stand for several addresses. All of them share a transport, so connections
// to one origin never wait for those to another.
type origin struct {
	url       *url.URL
	transport *http.Transport
}

// newOrigin parses the URL of an endpoint.
func (p *Proxy) newOrigin(raw string) (*origin, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, err
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("endpoint %q, want http://HOST or https://HOST", raw)
	}
	return &origin{url: u, transport: p.newTransport(u)}, nil
}

// newTransport returns the client for one origin. Redirects cannot be followed:
// a transport does not.
func (p *Proxy) newTransport(u *url.URL) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!p.http2 || u.Scheme == "https")
	protocols.SetHTTP2(p.http2)
	protocols.SetUnencryptedHTTP2(p.http2)
	t := &http.Transport{
		DialContext:         p.dialer.dial,
		DisableCompression:  true, // bytes go through as the engine sends them
		MaxIdleConnsPerHost: maxIdlePerEndpoint,
		IdleConnTimeout:     p.engineIdle,
		WriteBufferSize:     16 << 10,
		Protocols:           protocols,
	}
	if u.Scheme == "https" {
		t.DialTLSContext = p.tlsDialer(u.Hostname())
	}
	return t
}

// maxIdlePerEndpoint bounds kept connections; more requests than that at once
// open connections that are closed afterwards.
const maxIdlePerEndpoint = 1024

func (p *Proxy) tlsDialer(hostName string) func(ctx context.Context, network, address string) (net.Conn, error) {
	c := p.tls.Clone()
	if c.ServerName == "" {
		c.ServerName = hostName
	}
	c.NextProtos = []string{"http/1.1"}
	if p.http2 {
		c.NextProtos = []string{"h2", "http/1.1"}
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return p.dialer.dialTLS(ctx, network, address, c)
	}
}
