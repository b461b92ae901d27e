package proxy

import (
	"context"
	"sync"
	"time"
)

// The plan needs the round trip to every engine, also to those that get no
// request from here, and a kept connection tells nothing of it. So whatever
// endpoint nobody has connected to for a minute is connected to once, without a
// byte sent. The dial checks the networks as for requests.
const (
	probeAfter = time.Minute
	probeTick  = time.Second
	// probeParts bounds a burst, as when a snapshot brings a thousand new
	// endpoints: at most this part of all is probed per tick.
	probeParts = 20
)

// RunProbes probes until ctx ends.
func (p *Proxy) RunProbes(ctx context.Context) {
	ticker := time.NewTicker(probeTick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.probe(ctx)
		}
	}
}

// probe connects to endpoints that are due and returns when all have answered
// or the time for connecting is over.
func (p *Proxy) probe(ctx context.Context) {
	var wg sync.WaitGroup
	for _, e := range p.dueProbes(p.now()) {
		wg.Go(func() {
			conn, err := p.dialer.dial(ctx, "tcp", e.host, e.link)
			if err == nil {
				conn.Close()
			}
		})
	}
	wg.Wait()
}

func (p *Proxy) dueProbes(now time.Time) []*endpoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	var due []*endpoint
	for _, e := range p.endpoints {
		if len(due) > len(p.endpoints)/probeParts {
			break // the order of a map is random: each gets its turn
		}
		if age, seen := e.link.Age(now); !seen || age > probeAfter {
			due = append(due, e)
		}
	}
	return due
}
