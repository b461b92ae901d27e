package guard

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// peers is the endpoints that one or several classes reach, judged against each
// other: what is wrong with all of them alike is no reason to prefer one.
type peers struct {
	plan    *Plan
	classes []*Class
	members []member
	marks   atomic.Pointer[marks]
	panic   bool
}

// marks is what peers publish for requests. It is not changed once published.
type marks struct {
	stay []uint64   // by engine, see pick.Request
	keep [][]uint64 // by engine and endpoint: of the keys that come to it, those that stay
}

// member is an endpoint as its peers see it.
type member struct {
	endpoint *Endpoint
	engine   int
	index    int
	capacity float64 // reference requests/s
	penalty
	seen     totals
	evidence totals // decayed
	judged   verdict
	weight   float64 // after caps; what was published
	state    State
}

// totals are the counts of an endpoint.
type totals struct{ observedUs, expectedUs, samples, successes, faults float64 }

// verdict is what the evidence on a member says; NaN: not enough of it.
type verdict struct{ ratio, errors float64 }

func (e *Endpoint) totals() totals {
	return totals{
		float64(e.observedUs.Load()), float64(e.expectedUs.Load()), float64(e.samples.Load()),
		float64(e.successes.Load()), float64(e.faults.Load()),
	}
}

const (
	// evidenceMemory is for how long an answer counts, where few come.
	evidenceMemory = 10 * time.Second
	// evidenceSamples is how many answers count at most, where many come.
	evidenceSamples = 20
	// minOverdue is how many requests must wait for a sign at once before their
	// ages count: a single one may just be large.
	minOverdue = 3
)

// observe takes in what came since the last tick.
func (m *member) observe(dt time.Duration) {
	now := m.endpoint.totals()
	keep := math.Exp(-dt.Seconds() / evidenceMemory.Seconds())
	add := func(sum *float64, last *float64, total float64) {
		*sum = *sum*keep + total - *last
		*last = total
	}
	e := &m.evidence
	add(&e.observedUs, &m.seen.observedUs, now.observedUs)
	add(&e.expectedUs, &m.seen.expectedUs, now.expectedUs)
	add(&e.samples, &m.seen.samples, now.samples)
	add(&e.successes, &m.seen.successes, now.successes)
	add(&e.faults, &m.seen.faults, now.faults)
	if f := evidenceSamples / e.samples; f < 1 {
		e.observedUs, e.expectedUs, e.samples = e.observedUs*f, e.expectedUs*f, e.samples*f
	}
	if f := evidenceSamples / (e.successes + e.faults); f < 1 {
		e.successes, e.faults = e.successes*f, e.faults*f
	}
}

// judge says what the evidence amounts to.
func (m *member) judge(now time.Time, s *Settings) {
	m.judged = verdict{math.NaN(), math.NaN()}
	overdue, age := m.endpoint.overdue(now)
	if overdue < minOverdue {
		overdue, age = 0, 0
	}
	e := &m.evidence
	if n := float64(s.MinSamples); e.samples+float64(overdue) >= n {
		ratio := 0.0
		if e.expectedUs > 0 {
			ratio = e.observedUs / e.expectedUs
		}
		if r := max(ratio, age); r > 0 {
			m.judged.ratio = r
		}
	}
	if n := e.successes + e.faults; n >= float64(s.MinSamples) {
		m.judged.errors = e.faults / n
	}
}

// tick judges all members and publishes what follows.
func (p *peers) tick(now time.Time, dt time.Duration, s *Settings, report func(Change)) {
	for i := range p.members {
		p.members[i].observe(dt)
		p.members[i].judge(now, s)
	}
	ratios := newOthers(p.members, func(m *member) float64 { return m.judged.ratio })
	errs := newOthers(p.members, func(m *member) float64 { return m.judged.errors })
	for i := range p.members {
		m := &p.members[i]
		if m.step(now, dt, ratios.median(m.judged.ratio), errs.median(m.judged.errors), s) {
			m.evidence = totals{} // the next step wants evidence of its own
		}
	}
	p.publish(now, s, report)
}

// others gives medians of what is known, without one of its values.
type others struct{ sorted []float64 }

func newOthers(members []member, value func(*member) float64) others {
	var o others
	for i := range members {
		if x := value(&members[i]); !math.IsNaN(x) {
			o.sorted = append(o.sorted, x)
		}
	}
	slices.Sort(o.sorted)
	return o
}

// median returns the median without one x, or of all if x is NaN; NaN if
// nothing is left.
func (o others) median(x float64) float64 {
	n := len(o.sorted)
	at := func(i int) float64 { return o.sorted[i] }
	if !math.IsNaN(x) {
		gone, _ := slices.BinarySearch(o.sorted, x)
		n--
		at = func(i int) float64 {
			if i >= gone {
				i++
			}
			return o.sorted[i]
		}
	}
	switch {
	case n <= 0:
		return math.NaN()
	case n%2 == 1:
		return at(n / 2)
	}
	return (at(n/2-1) + at(n/2)) / 2
}

// alikeErrors: an endpoint whose peers fail at least this fraction as often is
// not the problem.
const alikeErrors = 0.5

// wanted returns the weights that breakers and penalties ask for.
func (p *peers) wanted(now time.Time) []float64 {
	errs := newOthers(p.members, func(m *member) float64 { return m.judged.errors })
	weights := make([]float64, len(p.members))
	for i := range p.members {
		m := &p.members[i]
		weights[i] = min(m.penalty.weight(), m.endpoint.breaker.weight(now))
		own := m.judged.errors
		if math.IsNaN(own) {
			own = 1 // ejected for its last faults, all it had
		}
		if weights[i] == 0 && errs.median(m.judged.errors) >= alikeErrors*own {
			weights[i] = m.penalty.weight()
		}
	}
	return weights
}

// panicShare of the capacity must be gone, or more, for panic: then it is not
// the endpoints, or what is left could not carry the rest.
const panicShare = 0.8

// limitLoss raises weights until no more of the capacity is gone than allowed:
// the endpoints that lost most keep their loss, one of them always, but not the
// last one. It returns whether so much was gone that the plan is followed
// instead.
func (p *peers) limitLoss(weights []float64, s *Settings) (panicking bool) {
	total, gone, losers := 0.0, 0.0, 0
	order := make([]int, len(weights))
	for i := range weights {
		order[i] = i
		total += p.members[i].capacity
		gone += p.members[i].capacity * (1 - weights[i])
		if weights[i] < 1 {
			losers++
		}
	}
	if losers == len(weights) && gone >= total || losers > 1 && gone > panicShare*total {
		for i := range weights {
			weights[i] = 1
		}
		return losers > 1
	}
	// Checked after what a loss would make of it, not before.
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case weights[a] < weights[b]:
			return -1
		case weights[a] > weights[b]:
			return 1
		}
		return 0
	})
	allowed := s.MaxEjectedShare * total
	for n, i := range order {
		loss := p.members[i].capacity * (1 - weights[i])
		if n > 0 && loss > allowed {
			loss = max(0, allowed)
			weights[i] = 1 - loss/p.members[i].capacity
		}
		allowed -= loss
	}
	return false
}

// publish makes marks of the weights.
func (p *peers) publish(now time.Time, s *Settings, report func(Change)) {
	weights := p.wanted(now)
	panicking := p.limitLoss(weights, s)
	if panicking != p.panic {
		p.panic = panicking
		c := Change{Class: p.names(), State: Normal, Weight: 1, Why: "enough endpoints are well again"}
		if panicking {
			c.State, c.Why = Panic, fmt.Sprintf("more than %.0f %% of the capacity is ejected or penalized: routing as planned", 100*panicShare)
		}
		report(c)
	}
	for i := range p.members {
		p.members[i].weight = weights[i]
		p.members[i].tell(now, p.names(), report)
	}
	next := p.makeMarks(now)
	if last := p.marks.Load(); last == nil || !next.equal(last) {
		p.marks.Store(next)
	}
}

// makeMarks turns weights into thresholds. An engine keeps the keys that its
// best endpoint would keep; of those each endpoint keeps its part. An engine
// that gets a probe is passed by no key until the probe is taken.
func (p *peers) makeMarks(now time.Time) *marks {
	m := &marks{stay: slices.Clone(p.plan.spec.Stay), keep: make([][]uint64, len(p.plan.engines))}
	best := make([]float64, len(p.plan.engines))
	for i := range p.members {
		b := &p.members[i]
		best[b.engine] = max(best[b.engine], b.weight)
	}
	for i := range p.members {
		b := &p.members[i]
		if b.weight == 0 && b.endpoint.breaker.wantsProbe(now) {
			best[b.engine] = 1
		}
	}
	for i := range p.members {
		b := &p.members[i]
		if m.keep[b.engine] == nil {
			m.keep[b.engine] = make([]uint64, len(p.plan.endpoints[b.engine]))
			// 0 would mean that not even the last resort is there.
			m.stay[b.engine] = min(m.stay[b.engine], max(1, threshold(best[b.engine])))
		}
		if best[b.engine] > 0 {
			m.keep[b.engine][b.index] = threshold(b.weight / best[b.engine])
		}
	}
	return m
}

// keepOf returns the threshold of an endpoint; one of an engine that the class
// does not reach keeps all that gets there, which only hard affinity can.
func (m *marks) keepOf(engine, i int) uint64 {
	if keep := m.keep[engine]; keep != nil {
		return keep[i]
	}
	return stayAll
}

func (m *marks) equal(o *marks) bool {
	return slices.Equal(m.stay, o.stay) && slices.EqualFunc(m.keep, o.keep, slices.Equal[[]uint64])
}

// tell reports a change of the member's state.
func (m *member) tell(now time.Time, class string, report func(Change)) {
	state, why := Normal, "as planned"
	switch {
	case m.weight == 0:
		state = Ejected
		why = fmt.Sprintf("%d faults in a row, ejection %d", m.endpoint.breaker.consecutive.Load(), m.endpoint.breaker.ejections.Load())
	case m.weight < 1 && (m.endpoint.breaker.weight(now) < 1 || m.rising):
		state, why = Recovering, "slow start"
	case m.weight < 1:
		state, why = Penalized, m.why
	}
	if state == m.state || m.state == "" && state == Normal {
		m.state = state
		return
	}
	m.state = state
	report(Change{class, m.endpoint.engine, m.endpoint.id, state, m.weight, why})
}

func (p *peers) names() string {
	var names []string
	for _, c := range p.classes {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

// addPeers groups classes by what they reach. Penalties that the last plan had
// for a class are kept.
func (p *Plan) addPeers(last *Plan) {
	groups := map[string]*peers{}
	for _, c := range p.classes {
		reach := c.reach()
		if len(reach) == 0 {
			continue
		}
		group := groups[p.signature(reach)]
		if group == nil {
			group = &peers{plan: p}
			groups[p.signature(reach)] = group
			for _, n := range reach {
				for i, e := range p.endpoints[n] {
					group.members = append(group.members, member{
						endpoint: e, engine: n, index: i, capacity: max(1e-9, p.engines[n].capacity), seen: e.totals(),
					})
				}
			}
			group.inherit(last.peersOf(c.name))
			p.peers = append(p.peers, group)
		}
		group.classes = append(group.classes, c)
		c.peers = group
	}
}

func (p *Plan) peersOf(class string) *peers {
	if p == nil {
		return nil
	}
	for _, c := range p.classes {
		if c.name == class {
			return c.peers
		}
	}
	return nil
}

func (p *peers) inherit(last *peers) {
	if last == nil {
		return
	}
	p.panic = last.panic
	known := map[*Endpoint]*member{}
	for i := range last.members {
		known[last.members[i].endpoint] = &last.members[i]
	}
	for i := range p.members {
		m := &p.members[i]
		if old := known[m.endpoint]; old != nil {
			m.penalty, m.seen, m.evidence, m.judged, m.state = old.penalty, old.seen, old.evidence, old.judged, old.state
		}
	}
}
