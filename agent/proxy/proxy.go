// Package proxy is the way of a request through the agent: who asks, its class,
// its key, its engine and endpoint, the bytes there and back, and what is to be
// learned from how it went.
//
//	1 identity, headers, request id, deadline   identity.go, header.go
//	2 class                                     route.go
//	3 affinity key                              route.go
//	4 admission                                 guards.go
//	5 engine by layout, then rank               candidate.go
//	6 endpoint inside the engine                candidate.go
//	7 proxy, byte for byte                      attempt.go, forward.go
//	8 outcome, retry                            attempt.go, guards.go
//	9 metrics, decision record                  finish.go
package proxy

import (
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/irb-project/irb/agent/config"
	"github.com/irb-project/irb/agent/guard"
	"github.com/irb-project/irb/agent/metrics"
	"github.com/irb-project/irb/agent/pace"
	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/agent/signal"
)

// Options is what a Proxy is made of.
type Options struct {
	Config  *config.Config
	Metrics *metrics.Set
	Log     *slog.Logger
	Now     func() time.Time
	// Decisions receives a sample of decisions; nil: none.
	Decisions *DecisionLog
	// Own are the addresses of the agent's own listeners, which no engine may
	// have.
	Own []net.Addr
}

// Proxy routes requests by the table and config it was given last.
type Proxy struct {
	metrics    *metrics.Set
	demand     *metrics.Demand
	reach      *metrics.Reach
	log        *slog.Logger
	now        func() time.Time
	guard      *guard.Guard
	poller     *signal.Poller
	decisions  *DecisionLog
	spread     *pick.Spread
	dialer     dialer
	own        []netip.AddrPort
	tls        engineTLS
	token      *token // nil: none
	http2      bool
	engineIdle time.Duration

	bodies    bodyPool
	memory    bodyMemory
	buffers   sync.Pool
	headers   sync.Pool // http.Header, empty
	draining  atomic.Bool
	upgrades  upgrades
	responses responseMemory
	unrouted  *metrics.Route // requests that never got to a class

	plan     atomic.Pointer[plan]
	newNames chan struct{} // there are names that are not resolved

	mu        sync.Mutex // guards what plans are built from, never taken by a request
	config    *config.Config
	table     *pick.Table
	endpoints map[string]*endpoint // by engine and id
	addresses map[string][]string  // by host name, if it has several
	agents    int                  // counted under the name that the settings give; 0: not yet
}

// New returns a Proxy that answers 503 until it has a table.
func New(o Options) (*Proxy, error) {
	p := &Proxy{
		metrics: o.Metrics, log: o.Log, now: o.Now, decisions: o.Decisions,
		config:     o.Config,
		spread:     pick.NewSpread(rand.Uint64()),
		http2:      o.Config.Engine.HTTP2,
		engineIdle: o.Config.Timeouts.EngineIdle,
		endpoints:  map[string]*endpoint{},
		addresses:  map[string][]string{},
		newNames:   make(chan struct{}, 1),
	}
	p.dialer.now = o.Now
	for _, a := range o.Own {
		p.own = append(p.own, ownAddresses(a)...)
	}
	p.demand = o.Metrics.NewDemand(o.Config.Fleet, o.Config.Cluster, o.Now)
	p.reach = o.Metrics.NewReach(o.Config.Fleet, o.Config.Cluster, o.Now)
	p.guard = guard.New(guardSettings(o.Config), p.logChange)
	p.poller = signal.NewPoller(o.Config.Guard.PollInterval, o.Metrics.Registry())
	o.Metrics.Registry().MustRegister(p.guard.Collector(o.Now))
	var err error
	if p.tls, err = newEngineTLS(o.Config.Engine, o.Log); err != nil {
		return nil, err
	}
	if o.Config.Engine.TokenFile != "" {
		if p.token, err = newToken(o.Config.Engine.TokenFile); err != nil {
			return nil, err
		}
	}
	p.memory.gauge = o.Metrics.BodyBytes
	p.bodies.memory = &p.memory
	p.buffers.New = func() any { return new([copyBuffer]byte) }
	p.unrouted = o.Metrics.Route(metrics.None, metrics.None)
	p.responses.init()
	p.SetConfig(o.Config)
	return p, nil
}

// SetConfig takes over the reloadable settings of c.
func (p *Proxy) SetConfig(c *config.Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.config.AgentsName != c.AgentsName {
		p.agents = 0
		p.resolveSoon()
	}
	p.config = c
	p.memory.limit.Store(int64(c.Body.MaxAgent))
	p.setGuards()
	last := p.dialer.policy.Swap(&dialPolicy{allowed: c.AllowEngineNetworks, own: p.own, timeout: c.Timeouts.Connect})
	if last != nil && !slices.Equal(last.allowed, c.AllowEngineNetworks) {
		// Only dialing is checked, so what is open must not serve any longer.
		for _, e := range p.endpoints {
			e.upstream.Retire()
		}
		p.upgrades.cut(p.dialer.policy.Load().check)
	}
	p.rebuild()
}

// SetTable routes requests that come from now on by t; those under way go on as
// they began.
func (p *Proxy) SetTable(t *pick.Table) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.table = t
	p.rebuild()
	p.resolveSoon()
}

// rebuild publishes a plan of the present config, table and addresses.
func (p *Proxy) rebuild() {
	if p.table == nil {
		return
	}
	last := p.plan.Load()
	pause := func() {}
	if last != nil { // there are requests
		pause = new(pace.Pacer).Pause
	}
	engines := p.table.Engines()
	next := &plan{
		config: p.config, table: p.table.Trusting(p.config.TrustedHeaders...),
		pools:                make([]pool, len(engines)),
		stay:                 make([]uint64, len(engines)),
		routes:               make([]atomic.Pointer[metrics.Route], len(p.table.Classes())*len(engines)),
		affinityHeader:       http.CanonicalHeaderKey(p.config.AffinityHeader),
		forwardAuthorization: p.config.Engine.ClientAuthorization == config.AuthorizationForward,
		eventOnFailure:       p.config.StreamFailure == config.StreamEvent,
	}
	for _, name := range p.config.TrustedHeaders {
		next.trustedHeaders = append(next.trustedHeaders, http.CanonicalHeaderKey(name))
	}
	used := map[string]*endpoint{}
	for n := range engines {
		next.stay[n] = pick.StayAll
		next.pools[n] = p.buildPool(&engines[n], used)
	}
	pause()
	classes := next.table.Classes()
	next.demand = make([]*metrics.ClassDemand, len(classes))
	next.limits = make([]limits, len(classes))
	for i := range classes {
		spec := classes[i].Spec
		next.demand[i] = p.demandOf(spec.Name, last)
		next.limits[i] = limitsOf(p.config, &spec.Guard)
		pause()
	}
	p.takeAway(next, p.config.Drain, drained)
	p.takeAway(next, p.config.Hold, 0)
	next.guards = p.guardPlan(next, pause)
	p.poller.Set(p.pollTargets(next))
	p.plan.Store(next)
	for key, e := range p.endpoints {
		if used[key] == nil {
			e.upstream.CloseIdleConnections()
		}
	}
	p.endpoints = used
	p.reach.Keep(func(engine, id string) bool { return used[engine+"\x00"+id] != nil })
	p.forgetEngines(last, next)
	p.forgetClasses(last, next)
}

// demandOf returns the counters of a class, those that it has already if it can:
// there are many classes, and looking all of them up takes long.
func (p *Proxy) demandOf(class string, last *plan) *metrics.ClassDemand {
	if last != nil {
		if c := last.table.Class(class); c != nil {
			return last.demand[c.Number]
		}
	}
	return p.demand.Class(class)
}

func (p *Proxy) takeAway(next *plan, engines []string, stay uint64) {
	for _, name := range engines {
		if n, ok := next.table.EngineNumber(name); ok {
			next.stay[n] = stay
		}
	}
}

// forgetEngines drops the series of engines that are gone: the number of series
// must not grow with every engine that ever was.
func (p *Proxy) forgetEngines(last, next *plan) {
	if last == nil {
		return
	}
	for _, e := range last.table.Engines() {
		if _, still := next.table.EngineNumber(e.Name); !still {
			p.metrics.Forget(e.Name)
		}
	}
}

func (p *Proxy) forgetClasses(last, next *plan) {
	if last == nil {
		return
	}
	classes := last.table.Classes()
	for i := range classes {
		if name := classes[i].Spec.Name; next.table.Class(name) == nil {
			p.demand.Forget(name)
			p.metrics.ForgetClass(name)
		}
	}
}

// Handler returns the handler of one listener.
func (p *Proxy) Handler(l config.Listener) http.Handler {
	listener := newListener(l)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(listener, w, r) })
}

// StartDrain makes responses close their connections, so that clients go
// elsewhere of their own accord; requests are still served.
func (p *Proxy) StartDrain() { p.draining.Store(true) }

// Close ends what outlives requests: upgraded and kept connections.
func (p *Proxy) Close() {
	p.upgrades.closeAll()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.endpoints {
		e.upstream.CloseIdleConnections()
	}
}
