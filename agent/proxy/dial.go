package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/irb-project/irb/agent/metrics"
	"github.com/irb-project/irb/agent/snapshot"
)

// dialError marks a failure before anything was sent to the engine.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// dialPolicy says to which addresses the agent may connect.
type dialPolicy struct {
	allowed []netip.Prefix
	own     []netip.AddrPort // where the agent itself listens
	timeout time.Duration    // DNS, TCP and TLS together
}

// guarded are networks that an entry must name as such: being inside
// 0.0.0.0/0 is not enough. The link-local one holds the metadata services of
// clouds (169.254.169.254); the last two are such services in other ranges.
var guarded = []netip.Prefix{
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("::1/128"),
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("::/128"),
	netip.MustParsePrefix("224.0.0.0/4"),
	netip.MustParsePrefix("ff00::/8"),
	netip.MustParsePrefix("fd00:ec2::254/128"),
	netip.MustParsePrefix("100.100.100.200/32"),
}

// check returns nil if the resolved address may be dialed.
func (p *dialPolicy) check(a netip.AddrPort) error {
	ip := a.Addr().Unmap().WithZone("")
	for _, own := range p.own {
		if own.Port() == a.Port() && own.Addr() == ip {
			return fmt.Errorf("%s is a listener of this agent", a)
		}
	}
	for _, allowed := range p.allowed {
		if !allowed.Contains(ip) {
			continue
		}
		named := true
		for _, g := range guarded {
			if g.Contains(ip) && (allowed.Bits() < g.Bits() || !g.Contains(allowed.Addr())) {
				named = false
			}
		}
		if named {
			return nil
		}
	}
	return fmt.Errorf("%s is not in allow_engine_networks", a)
}

// dialer connects to engines. Every address is checked after DNS, when it is
// about to be dialed: a name that changes its mind in between gains nothing.
type dialer struct {
	now    func() time.Time
	policy atomic.Pointer[dialPolicy]
}

func (d *dialer) control(_, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return d.policy.Load().check(a)
}

// dial connects, and tells link how that went if a connect was tried: DNS and
// our own rules say nothing of the endpoint.
func (d *dialer) dial(ctx context.Context, network, address string, link *metrics.Link) (net.Conn, error) {
	var began atomic.Int64 // ns after start, 0: not yet; the dialer may try two addresses at once
	start := time.Now()
	nd := net.Dialer{Timeout: d.policy.Load().timeout, KeepAlive: 30 * time.Second}
	nd.Control = func(network, address string, raw syscall.RawConn) error {
		err := d.control(network, address, raw)
		if err == nil {
			began.Store(max(1, int64(time.Since(start))))
		}
		return err
	}
	conn, err := nd.DialContext(ctx, network, address)
	if tried := began.Load(); tried != 0 && !errors.Is(ctx.Err(), context.Canceled) {
		rtt := time.Since(start) - time.Duration(tried)
		if kernel, ok := kernelRTT(conn); ok {
			rtt = kernel
		}
		link.Connected(rtt, err == nil, d.now())
	}
	if err != nil {
		return nil, &dialError{err}
	}
	return conn, nil
}

// dialTLS connects and shakes hands within one timeout.
func (d *dialer) dialTLS(ctx context.Context, network, address string, c *tls.Config, link *metrics.Link) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.policy.Load().timeout)
	defer cancel()
	raw, err := d.dial(ctx, network, address, link)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, c)
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, &dialError{err}
	}
	return conn, nil
}

// ownAddresses expands a listening address to the addresses it can be reached
// at.
func ownAddresses(listen net.Addr) []netip.AddrPort {
	tcp, ok := listen.(*net.TCPAddr)
	if !ok {
		return nil
	}
	a := tcp.AddrPort()
	if !a.Addr().IsUnspecified() {
		return []netip.AddrPort{netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())}
	}
	var own []netip.AddrPort
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, i := range interfaces {
		if n, ok := i.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				own = append(own, netip.AddrPortFrom(ip.Unmap(), a.Port()))
			}
		}
	}
	return own
}

// Outside returns the endpoints of a snapshot that are addresses to which these
// settings do not let the agent connect. Names are looked at when they are
// dialed.
func Outside(s *snapshot.Snapshot, allowed []netip.Prefix) []string {
	p := dialPolicy{allowed: allowed}
	var outside []string
	for _, e := range s.Engines {
		for _, raw := range e.Endpoints {
			u, err := parseEndpoint(raw)
			if err != nil {
				continue // newEndpoint says so
			}
			if a, err := netip.ParseAddr(u.Hostname()); err == nil && p.check(netip.AddrPortFrom(a, 0)) != nil {
				outside = append(outside, fmt.Sprintf("engine %q: %s", e.Name, raw))
			}
		}
	}
	return outside
}
