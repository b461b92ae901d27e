package proxy

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// http2Upstream is an upstream of connections that may be HTTP/2.
type http2Upstream struct {
	scheme   string
	dial     func(ctx context.Context) (net.Conn, error)
	idle     time.Duration
	current  atomic.Pointer[http.Transport]
	upgrades upstream // HTTP/1.1, for what HTTP/2 cannot do
}

func newHTTP2Upstream(scheme string, dial func(ctx context.Context) (net.Conn, error), idle time.Duration, upgrades upstream) *http2Upstream {
	u := &http2Upstream{scheme: scheme, dial: dial, idle: idle, upgrades: upgrades}
	u.current.Store(u.transport())
	return u
}

func (u *http2Upstream) transport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(u.scheme == "https") // if ALPN says so
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	connect := func(ctx context.Context, _, _ string) (net.Conn, error) { return u.dial(ctx) }
	return &http.Transport{
		DialContext: connect, DialTLSContext: connect, Protocols: protocols,
		DisableCompression:  true, // bytes go through as the engine sends them
		MaxIdleConnsPerHost: maxIdlePerEndpoint, IdleConnTimeout: u.idle,
	}
}

func (u *http2Upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header["Upgrade"] != nil {
		return u.upgrades.RoundTrip(r)
	}
	return u.current.Load().RoundTrip(r)
}

func (u *http2Upstream) CloseIdleConnections() {
	u.current.Load().CloseIdleConnections()
	u.upgrades.CloseIdleConnections()
}

// Retire goes on with another transport, because one that is in use cannot be
// told to leave its HTTP/2 connections alone. What is busy in the old one closes
// after it was idle for a while.
func (u *http2Upstream) Retire() {
	u.current.Swap(u.transport()).CloseIdleConnections()
	u.upgrades.Retire()
}
