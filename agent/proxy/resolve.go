package proxy

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/agent/snapshot"
)

// buildPool makes the endpoints of an engine, taking over those that exist.
func (p *Proxy) buildPool(e *snapshot.Engine, used map[string]*endpoint) pool {
	var built pool
	var ids []string
	for _, raw := range e.Endpoints {
		u, err := parseEndpoint(raw)
		if err != nil {
			p.log.Error("endpoint left out", "engine", e.Name, "err", err)
			continue
		}
		for _, address := range p.addressesOf(u.Hostname()) {
			id := raw
			if address != u.Hostname() {
				id = raw + " at " + address
			}
			key := e.Name + "\x00" + id
			if used[key] != nil {
				continue // named twice: one place
			}
			if used[key] = p.endpoints[key]; used[key] == nil {
				used[key] = p.newEndpoint(e.Name, id, u, address)
			}
			built.endpoints = append(built.endpoints, used[key])
			ids = append(ids, id)
		}
	}
	built.walk = pick.NewEndpoints(ids)
	return built
}

// setGuards gives the guards their settings, with the agents that were counted.
func (p *Proxy) setGuards() {
	s := guardSettings(p.config)
	if p.agents > 0 {
		s.Agents = p.agents
	}
	p.guard.SetSettings(s)
}

// countAgents takes in the addresses of the name that stands for the agents.
func (p *Proxy) countAgents(addresses []string) {
	if n := len(addresses); n > 0 && n != p.agents {
		p.log.Info("agents of this cluster counted", "name", p.config.AgentsName, "agents", n, "before", p.agents)
		p.agents = n
		p.setGuards()
	}
}

// resolveSoon has Run resolve names without waiting for the interval.
func (p *Proxy) resolveSoon() {
	select {
	case p.newNames <- struct{}{}:
	default: // it has it to do already
	}
}

// addressesOf returns the addresses of a name if it has several. Else the name
// itself is dialed, so a change of address needs nothing from us.
func (p *Proxy) addressesOf(host string) []string {
	if list := p.addresses[host]; len(list) > 1 {
		return list
	}
	return []string{host}
}

// Lookup returns the addresses of a name and how long they hold; 0: not known.
type Lookup func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error)

// soonest is how soon names are resolved again, whatever their time to live.
const soonest = time.Second

// Run resolves the names of endpoints and agents and reads the token again until ctx ends:
// when the shortest time to live is over, every engine.resolve_interval at the
// latest.
func (p *Proxy) Run(ctx context.Context, lookup Lookup) {
	p.mu.Lock()
	interval := p.config.Engine.ResolveInterval
	p.mu.Unlock()
	for {
		wait := interval
		if ttl := p.resolve(ctx, lookup); ttl > 0 {
			wait = min(interval, max(soonest, ttl))
		}
		if p.token != nil {
			if err := p.token.refresh(); err != nil {
				p.log.Warn("token not read, the old one stays in use", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		case <-p.newNames:
		}
	}
}

const (
	// lookupsAtOnce bounds the names that are looked up at the same time.
	lookupsAtOnce = 64
	// lookupTimeout bounds one of them; a resolver asks several servers after each
	// other, 5 s each.
	lookupTimeout = 30 * time.Second
	// publishInterval is how long an answer waits for others at most: a server that
	// says nothing for one name must not make the answers for the others old.
	publishInterval = time.Second
)

// answered is what is known of one name.
type answered struct {
	host      string
	addresses []string
	ttl       time.Duration // 0: not known
}

// resolve looks up every name and publishes a plan if an answer changed. A name
// that cannot be resolved keeps the addresses it had. It returns the shortest
// time to live, 0 if none is known.
func (p *Proxy) resolve(ctx context.Context, lookup Lookup) (shortest time.Duration) {
	answers := p.lookUp(ctx, lookup)
	publish := time.NewTicker(publishInterval)
	defer publish.Stop()
	batch := map[string][]string{}
	for {
		select {
		case a, more := <-answers:
			if !more {
				p.takeAddresses(batch)
				return shortest
			}
			batch[a.host] = a.addresses
			if a.ttl > 0 && (shortest == 0 || a.ttl < shortest) {
				shortest = a.ttl
			}
		case <-publish.C:
			p.takeAddresses(batch)
			clear(batch)
		}
	}
}

// lookUp asks for all names side by side. The channel is closed when all have
// answered or were given up.
func (p *Proxy) lookUp(ctx context.Context, lookup Lookup) <-chan answered {
	hosts := p.names()
	answers := make(chan answered, len(hosts))
	free := make(chan bool, lookupsAtOnce)
	var wg sync.WaitGroup
	for _, host := range hosts {
		wg.Go(func() {
			free <- true
			defer func() { <-free }()
			ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
			defer cancel()
			found, ttl, err := lookup(ctx, host)
			if err != nil {
				p.log.Warn("name not resolved, its addresses stay", "name", host, "err", err)
				return
			}
			answers <- answered{host, replicas(found), ttl}
		})
	}
	go func() {
		wg.Wait()
		close(answers)
	}()
	return answers
}

// names returns the names to be resolved.
func (p *Proxy) names() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := map[string]bool{}
	for _, e := range p.endpoints {
		if _, err := netip.ParseAddr(e.url.Hostname()); err != nil {
			names[e.url.Hostname()] = true
		}
	}
	if n := p.config.AgentsName; n != "" {
		names[n] = true
	}
	return slices.Collect(maps.Keys(names))
}

// takeAddresses takes over what names resolve to.
func (p *Proxy) takeAddresses(answers map[string][]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.countAgents(answers[p.config.AgentsName])
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
