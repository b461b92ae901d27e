package guard

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/irb-project/irb/agent/snapshot"
)

// Spec is what a Plan is made of.
type Spec struct {
	Snapshot *snapshot.Snapshot
	Cluster  string
	// Endpoints holds the ids of the endpoints by engine, in the order of the
	// snapshot.
	Endpoints [][]string
	// Stay is what the operator left each engine, see pick.Request: an engine
	// that drains or is held gets no more than that.
	Stay []uint64
	// Pause is called again and again while the Plan is made; nil: it is not.
	Pause func()
}

// Plan is the guards of one snapshot. A request uses the Plan that it began
// with; the numbers of classes and engines are those of the snapshot.
type Plan struct {
	guard      *Guard
	spec       Spec
	engines    []engine
	byName     map[string]int // engines
	byClass    map[string]*Class
	endpoints  [][]*Endpoint
	classes    []*Class
	peers      []*peers
	admissions []*admission
}

// engine is what the snapshot says of an engine, per endpoint.
type engine struct {
	curve
	name       string
	hash       uint64  // of the name
	capacity   float64 // reference requests/s of one endpoint at utilization 1
	outputWork float64 // token equivalents of an output token
	planned    float64 // of this cluster: requests/s at one endpoint, fallbacks included
	latencyMs  float64 // of those, by profile at plan
}

// referenceRequests returns the work of a request of q uncached prompt tokens
// and o output tokens in reference requests.
func (e *engine) referenceRequests(q, o float64) float64 {
	reference := e.p.PromptTokens + e.outputWork*e.p.OutputTokens
	if reference <= 0 {
		return 1
	}
	return (q + e.outputWork*o) / reference
}

// Class is the guards of one class in this cluster.
type Class struct {
	plan         *Plan
	source       *snapshot.Source // nil: the cluster has no such source
	name         string
	number       int // in the snapshot
	priority     int
	peers        *peers
	budget       *budget // of retries; nil without peers
	reserve      int64   // tokens that retries of this class leave to others
	admission    *admission
	place        int // among its classes
	outputTokens float64
	cold         float64 // work of a mean request where no cache holds its prompt, of that by plan; at least 1
	owns         []bool  // by engine: it has keys of the class
	netUs        []int64 // round trip, by engine
	absorbs      []absorb

	offered [levels]atomic.Int64 // requests that came
	served  atomic.Int64         // requests that began to be answered
	gates   [levels]gate

	preferred atomic.Bool  // all of it is let in while others are refused
	tokens    atomic.Int64 // of retries, while it is preferred
}

// NewPlan makes the guards of a snapshot and makes them the present ones. What
// is known of endpoints that stay, and the penalties of classes that stay, are
// carried over.
func (g *Guard) NewPlan(spec Spec, now time.Time) *Plan {
	if spec.Pause == nil {
		spec.Pause = func() {}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &Plan{guard: g, spec: spec, byName: make(map[string]int, len(spec.Snapshot.Engines))}
	used := map[endpointKey]*Endpoint{}
	for n := range spec.Snapshot.Engines {
		e := &spec.Snapshot.Engines[n]
		list := make([]*Endpoint, len(spec.Endpoints[n]))
		for i, id := range spec.Endpoints[n] {
			key := endpointKey{e.Name, id}
			if list[i] = g.endpoints[key]; list[i] == nil {
				list[i] = newEndpoint(e.Name, id)
			}
			used[key] = list[i]
		}
		p.byName[e.Name] = n
		p.endpoints = append(p.endpoints, list)
		p.engines = append(p.engines, engine{
			curve: curve{&e.Profile}, name: e.Name, hash: xxhash.Sum64String(e.Name),
			capacity: e.CapacityRPS / float64(max(1, len(list))), outputWork: spec.Snapshot.Policy.OutputTokenWork,
		})
	}
	p.addClasses()
	p.addPeers(g.plan)
	p.addAdmissions(g.plan)
	s := g.settings.Load()
	for n, list := range p.endpoints {
		for _, e := range list {
			e.expect(&p.engines[n])
			e.setLimit(&p.engines[n], s)
			e.publishLimit()
		}
	}
	for _, group := range p.peers {
		group.publish(now, s, g.report)
	}
	for _, c := range p.classes {
		c.refill(time.Second, s)
		spec.Pause()
	}
	for _, group := range p.peers {
		for _, b := range group.budgets {
			if b.cap.Load() == 0 {
				b.tick(group, time.Second, s)
			}
		}
	}
	g.plan, g.endpoints = p, used
	return p
}

// Class returns the guards of a class by its number in the snapshot.
func (p *Plan) Class(n int) *Class { return p.classes[n] }

// Reaches says whether any class of the cluster may use an engine.
func (p *Plan) Reaches(engine int) bool {
	for _, group := range p.peers {
		for i := range group.members {
			if group.members[i].engine == engine {
				return true
			}
		}
	}
	return false
}

// Endpoint returns an endpoint by the numbers of its engine and its place there.
func (p *Plan) Endpoint(engine, i int) *Endpoint { return p.endpoints[engine][i] }

func (p *Plan) addClasses() {
	specs := p.spec.Snapshot.Classes
	sources := map[string]*snapshot.Source{}
	for i := range p.spec.Snapshot.Sources {
		if s := &p.spec.Snapshot.Sources[i]; s.Cluster == p.spec.Cluster {
			sources[s.Class] = s
		}
	}
	p.byClass = make(map[string]*Class, len(specs))
	var priorities []int
	for i := range specs {
		c := &Class{
			plan: p, source: sources[specs[i].Name], name: specs[i].Name, number: i, priority: specs[i].Priority,
			owns: make([]bool, len(p.engines)), netUs: make([]int64, len(p.engines)),
		}
		for l := range c.gates {
			c.gates[l].open()
		}
		p.classes = append(p.classes, c)
		p.byClass[c.name] = c
		priorities = append(priorities, c.priority)
		p.spec.Pause()
	}
	slices.Sort(priorities)
	priorities = slices.Compact(priorities)
	for _, c := range p.classes {
		above := len(priorities) - 1 - slices.Index(priorities, c.priority)
		c.reserve = int64(above) * reservedTokens * tokenUnit / int64(max(1, len(priorities)-1))
		if c.source != nil {
			p.addSource(c)
		}
		c.cold = c.coldWork()
		p.spec.Pause()
	}
	for n := range p.engines {
		p.engines[n].planned /= float64(max(1, len(p.endpoints[n])))
	}
}

// addSource takes over what the snapshot says of a class in this cluster.
func (p *Plan) addSource(c *Class) {
	c.outputTokens = c.source.OutputTokens
	c.absorbs = make([]absorb, len(p.engines))
	load := func(name string, rps, rttMs float64) {
		n, ok := p.byName[name]
		if !ok {
			return
		}
		e := &p.engines[n]
		c.netUs[n] = int64(1000 * rttMs)
		latency := e.curve.latencyMs(p.spec.Snapshot.Engines[n].Utilization, c.uncached(0), c.outputTokens) + rttMs
		if rps > 0 {
			e.latencyMs = (e.latencyMs*e.planned + latency*rps) / (e.planned + rps)
			e.planned += rps
		}
	}
	for _, w := range c.source.Weights {
		load(w.Engine, w.RPS, w.RTTMs)
	}
	for _, name := range c.source.LayoutTo {
		if n, ok := p.byName[name]; ok {
			c.owns[n] = true
		}
	}
	for _, f := range c.source.Fallbacks {
		load(f.Engine, f.AbsorbRPS, 0)
		if n, ok := p.byName[f.Engine]; ok {
			c.absorbs[n].rps = f.AbsorbRPS
		}
	}
}

// uncached returns the prompt tokens that have to be computed; 0 stands for the
// mean of the source.
func (c *Class) uncached(promptTokens float64) float64 {
	if c.source == nil {
		return promptTokens
	}
	return c.prompt(promptTokens) * (1 - c.source.CachedFraction)
}

// prompt returns the prompt tokens; 0 stands for the mean of the source.
func (c *Class) prompt(promptTokens float64) float64 {
	if c.source != nil && promptTokens <= 0 {
		return c.source.PromptTokens
	}
	return promptTokens
}

// coldWork returns how many times its work a mean request takes where no cache
// holds its prompt.
func (c *Class) coldWork() float64 {
	if c.source == nil {
		return 1
	}
	output := c.plan.spec.Snapshot.Policy.OutputTokenWork * c.outputTokens
	if w := c.uncached(0) + output; w > 0 {
		return (c.prompt(0) + output) / w
	}
	return 1
}

// utilization returns that of an engine by plan.
func (p *Plan) utilization(engine int) float64 { return p.spec.Snapshot.Engines[engine].Utilization }

// reach returns the numbers of the engines that the class may use, sorted.
func (c *Class) reach() []int {
	var list []int
	if c.source == nil {
		return nil
	}
	add := func(name string) {
		if n, ok := c.plan.byName[name]; ok {
			list = append(list, n)
		}
	}
	for _, name := range c.source.LayoutTo {
		add(name)
	}
	for _, w := range c.source.Weights {
		add(w.Engine)
	}
	for _, f := range c.source.Fallbacks {
		add(f.Engine)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// signature names a set of engines.
func (p *Plan) signature(reach []int) string {
	var b strings.Builder
	for _, n := range reach {
		b.WriteString(p.engines[n].name)
		b.WriteByte(0)
	}
	return b.String()
}
