// Package guard holds what an agent sees for itself against the plan that the
// snapshot gives it, and steers round what changes faster than a weight file:
// engines that fail, slow down or fill up, retries that multiply, demand that
// outgrows everything.
//
// Requests only read what was published and add to counters: no lock, no
// allocation. Ten times a second a tick looks at the counters, judges, and
// publishes anew. Nothing here has a clock: the time is an argument.
//
//	endpoint.go, attempt.go  what is counted: per endpoint, of one request there
//	limit.go, curve.go       what an endpoint is expected to do, how much it may get
//	breaker.go               ejection after faults, probes, slow start
//	evidence.go, penalty.go  what is seen of an endpoint beside its peers, and the price
//	peers.go, marks.go       how much of a class's capacity may be taken away
//	grade.go                 how well an endpoint suits a request
//	admission.go, gate.go    what is refused when there is more than can be served
//	budget.go, absorb.go     how many retries are sent, how much a fallback takes
//
// What must be seen of all this, in virtual time: examples/scenarios.
//
// Every mark fades by itself, so after any disturbance an agent returns to the
// plan, and several agents need not agree on anything.
package guard

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// TickInterval is the time between ticks.
const TickInterval = 100 * time.Millisecond

// Guard is the guards of one agent.
type Guard struct {
	settings atomic.Pointer[Settings]
	report   func(Change)

	mu        sync.Mutex // guards what follows, and ticks; never taken by a request
	plan      *Plan
	endpoints map[endpointKey]*Endpoint
	lastTick  time.Time
}

type endpointKey struct{ engine, id string }

// New returns a Guard without a plan. Report is told of every change of state;
// it may be nil. The settings must pass their Check.
func New(s Settings, report func(Change)) *Guard {
	if report == nil {
		report = func(Change) {}
	}
	g := &Guard{report: report, endpoints: map[endpointKey]*Endpoint{}}
	g.settings.Store(&s)
	return g
}

// SetSettings replaces the settings. Limits follow with the next tick.
func (g *Guard) SetSettings(s Settings) { g.settings.Store(&s) }

// Agents returns how many agents of the cluster the guards reckon with; 0: it is
// not known.
func (g *Guard) Agents() int { return g.settings.Load().Agents }

// Run ticks until ctx ends.
func (g *Guard) Run(ctx context.Context, now func() time.Time) {
	t := time.NewTicker(TickInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			g.Tick(now())
		}
	}
}

// Tick looks at what was counted since the last tick and publishes what follows
// from it.
func (g *Guard) Tick(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.plan == nil {
		return
	}
	dt := now.Sub(g.lastTick)
	g.lastTick = now
	if dt <= 0 || dt > 10*time.Second {
		dt = TickInterval // the first tick, or the clock was set
	}
	s := g.settings.Load()
	for n, list := range g.plan.endpoints {
		for _, e := range list {
			e.breaker.tick(now, s)
			e.estimate(&g.plan.engines[n], now, dt, s)
			e.setLimit(&g.plan.engines[n], s)
		}
	}
	for _, p := range g.plan.peers {
		p.tick(now, dt, s, g.report)
		p.relieve()
		for _, b := range p.budgets {
			b.tick(p, dt, s)
		}
	}
	for _, list := range g.plan.endpoints {
		for _, e := range list {
			e.publishLimit()
		}
	}
	for _, a := range g.plan.admissions {
		a.tick(now, dt, s, g.report)
	}
	for _, c := range g.plan.classes {
		c.refill(dt, s)
	}
}

// Change is a change of state that people should see.
type Change struct {
	Class    string // "": of all classes that reach the endpoint
	Engine   string // "": of the class
	Endpoint string
	State    State
	Weight   float64
	Why      string
}

// State is what an endpoint or a class has changed to.
type State string

// The states.
const (
	Normal     State = "normal"     // as planned
	Ejected    State = "ejected"    // gets nothing but probes
	Penalized  State = "penalized"  // gets less
	Recovering State = "recovering" // gets more again, step by step
	Panic      State = "panic"      // too much is gone: routed as planned, whatever the marks
	Shedding   State = "shedding"   // requests are refused
)
