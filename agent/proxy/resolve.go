package proxy

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/agent/snapshot"
)

// buildPool makes the endpoints of an engine, taking over those that exist.
func (p *Proxy) buildPool(e *snapshot.Engine, used map[string]*endpoint, origins map[string]*origin) pool {
	var built pool
	var ids []string
	for _, raw := range e.Endpoints {
		o := origins[raw]
		if o == nil {
			if o = p.origins[raw]; o == nil {
				var err error
				if o, err = p.newOrigin(raw); err != nil {
					p.log.Error("endpoint left out", "engine", e.Name, "err", err)
					continue
				}
			}
			origins[raw] = o
		}
		for _, at := range p.endpointsOf(raw, o) {
			key := e.Name + "\x00" + at.id
			if used[key] != nil {
				continue // named twice: one place
			}
			if old := p.endpoints[key]; old != nil {
				at = old
			}
			used[key] = at
			built.endpoints = append(built.endpoints, at)
			ids = append(ids, at.id)
		}
	}
	built.walk = pick.NewEndpoints(ids)
	return built
}

// endpointsOf returns one endpoint for a URL, or one per address if its name
// has several. With one address the name itself is dialed, so a change of
// address needs nothing from us.
func (p *Proxy) endpointsOf(raw string, o *origin) []*endpoint {
	base := endpoint{
		id: raw, scheme: o.url.Scheme, host: o.url.Host, hostName: o.url.Host,
		basePath: trimSlash(o.url.EscapedPath()), transport: o.transport,
	}
	addresses := p.addresses[o.url.Hostname()]
	if len(addresses) < 2 {
		return []*endpoint{&base}
	}
	port := o.url.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[o.url.Scheme]
	}
	list := make([]*endpoint, len(addresses))
	for i, a := range addresses {
		list[i] = &endpoint{
			id: raw + " at " + a, scheme: base.scheme, host: net.JoinHostPort(a, port), hostName: base.hostName,
			basePath: base.basePath, transport: base.transport,
		}
	}
	return list
}

func trimSlash(s string) string {
	for len(s) > 0 && s[len(s)-1] == '/' {
		s = s[:len(s)-1]
	}
	return s
}

// Run resolves the names of endpoints and reads the token again, every
// engine.resolve_interval until ctx ends. The Go resolver does not tell how
// long an answer is good for; the resolver of the system honours that, so
// asking it again costs little.
func (p *Proxy) Run(ctx context.Context, lookup func(ctx context.Context, host string) ([]netip.Addr, error)) {
	p.mu.Lock()
	interval := p.config.Engine.ResolveInterval
	p.mu.Unlock()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		p.resolve(ctx, lookup)
		if p.token != nil {
			if err := p.token.refresh(); err != nil {
				p.log.Warn("token not read, the old one stays in use", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-p.newNames:
		}
	}
}

// resolve looks up every name and publishes a plan if an answer changed. A name
// that cannot be resolved keeps the addresses it had.
func (p *Proxy) resolve(ctx context.Context, lookup func(ctx context.Context, host string) ([]netip.Addr, error)) {
	p.mu.Lock()
	hosts := map[string]bool{}
	for _, o := range p.origins {
		if _, err := netip.ParseAddr(o.url.Hostname()); err != nil {
			hosts[o.url.Hostname()] = true
		}
	}
	p.mu.Unlock()
	answers := map[string][]string{}
	for host := range hosts {
		found, err := lookup(ctx, host)
		if err != nil {
			p.log.Warn("name of an endpoint not resolved, its addresses stay", "name", host, "err", err)
			continue
		}
		answers[host] = replicas(found)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := false
	for host, list := range answers {
		if !slices.Equal(p.addresses[host], list) {
			p.addresses[host] = list
			changed = true
		}
	}
	if changed {
		p.rebuild()
	}
}

// replicas returns the addresses that stand for one replica each: a replica
// with addresses of both families counts once, by its IPv4 address.
func replicas(found []netip.Addr) []string {
	var v4, v6 []string
	for _, a := range found {
		if a = a.Unmap(); a.Is4() {
			v4 = append(v4, a.String())
		} else {
			v6 = append(v6, a.String())
		}
	}
	list := v4
	if len(v4) == 0 {
		list = v6
	}
	slices.Sort(list)
	return slices.Compact(list)
}
