package guard

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/irb-project/irb/agent/signal"
)

// peers is the endpoints that one or several classes reach, judged against each
// other: what is wrong with all of them alike is no reason to prefer one.
type peers struct {
	plan    *Plan
	classes []*Class
	members []member
	marks   atomic.Pointer[marks]
	kept    []float64 // by engine: the part of its keys that it has, 0 if the operator took it away
	budgets []*budget // of retries: the shared one, then those of single classes
	panic   bool
}

// member is an endpoint as its peers see it.
type member struct {
	endpoint *Endpoint
	engine   int
	index    int
	capacity float64 // reference requests/s; 0 if away
	away     bool    // the operator drains or holds its engine
	penalty
	seen      totals
	evidence  totals // decayed
	fresh     totals // of the last few answers
	judged    verdict
	busy      bool    // see Endpoint.busy
	fill      float64 // requests in flight, of its limit; NaN: there is none
	alikeFull bool    // its peers refuse as often
	weight    float64 // after caps; what was published
	state     State
}

// tick judges all members and publishes what follows.
func (p *peers) tick(now time.Time, dt time.Duration, s *Settings, report func(Change)) {
	for i := range p.members {
		m := &p.members[i]
		m.observe(dt)
		m.judge(now, s)
		m.busy = m.endpoint.busy(&p.plan.engines[m.engine], now, s)
	}
	ratios := newOthers(p.members, func(m *member) float64 { return m.judged.ratio })
	latest := newOthers(p.members, func(m *member) float64 { return m.judged.latest })
	errs := newOthers(p.members, func(m *member) float64 { return m.judged.errors })
	samples := 0.0
	for i := range p.members {
		samples += p.members[i].seen.samples
	}
	for i := range p.members {
		m := &p.members[i]
		others := comparison{
			ratio: ratios.median(m.judged.ratio), errors: errs.median(m.judged.errors),
			known: len(ratios.sorted), samples: samples - m.seen.samples,
		}
		if !math.IsNaN(m.judged.ratio) {
			others.known--
		}
		// What hits all shows on their last answers before it shows on most.
		if l := latest.median(m.judged.latest); l > others.ratio {
			others.ratio = l
		}
		if m.step(now, dt, others, s) {
			m.evidence = totals{} // the next step wants evidence of its own
		}
	}
	p.publish(now, s, report)
}

// alike: an endpoint whose peers fail, or refuse, at least this fraction as
// often is not the problem.
const alike = 0.5

// wanted returns the weights that breakers and penalties ask for.
func (p *peers) wanted(now time.Time) []float64 {
	errs := newOthers(p.members, func(m *member) float64 { return m.judged.alikeErrors })
	weights := make([]float64, len(p.members))
	for i := range p.members {
		m := &p.members[i]
		weights[i] = min(m.penalty.weight(), m.endpoint.breaker.weight(now))
		own := m.judged.alikeErrors
		if math.IsNaN(own) {
			own = 1 // ejected for its last faults, all it had
		}
		if weights[i] == 0 && errs.median(m.judged.alikeErrors) >= alike*own {
			weights[i] = m.penalty.weight()
		}
	}
	return weights
}

// refuseAlike notes whose peers say "full" about as often: to pass it over for
// that only makes requests go round.
func (p *peers) refuseAlike() {
	pushbacks := newOthers(p.members, func(m *member) float64 { return m.judged.alikePushbacks })
	for i := range p.members {
		m := &p.members[i]
		own := m.judged.alikePushbacks
		m.alikeFull = own > 0 && pushbacks.median(own) >= alike*own
	}
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
	var order []int
	for i := range weights {
		if p.members[i].away {
			continue
		}
		order = append(order, i)
		total += p.members[i].capacity
		gone += p.members[i].capacity * (1 - weights[i])
		if weights[i] < 1 {
			losers++
		}
	}
	if losers == len(order) && gone >= total || losers > 1 && gone > panicShare*total {
		for _, i := range order {
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

// limitMoves raises the weights of endpoints that are slow, not faulty, until
// the work that they lose, its caches left behind, fits into the capacity that
// plan and present load leave at the others. Where all are nearly full, taking from the
// slower one makes the other the slower one, and traffic swings for ever.
func (p *peers) limitMoves(now time.Time, weights []float64) {
	cold := 1.0
	for _, c := range p.classes {
		cold = max(cold, c.cold)
	}
	free := func(i int) float64 {
		m := &p.members[i]
		return m.capacity * weights[i] * max(0, 1-m.load(p.plan))
	}
	room := 0.0
	for i := range p.members {
		room += free(i)
	}
	for i := range p.members {
		m := &p.members[i]
		if m.away || weights[i] == 1 || !m.slow || m.endpoint.breaker.weight(now) < 1 {
			continue
		}
		work := cold * m.capacity * p.plan.utilization(m.engine) * (1 - weights[i])
		others := max(0, room-free(i))
		if work > others {
			weights[i] = 1 - (1-weights[i])*others/work
			work = others
		}
		room -= work
	}
}

// load is the utilization of a member by plan or, if that is more, the one that
// what it has in progress amounts to. One that is slow has more in progress, and
// no room either.
func (m *member) load(p *Plan) float64 {
	planned, spec := p.utilization(m.engine), &p.engines[m.engine]
	n := m.endpoint.running
	if signal.Known(m.endpoint.queue) {
		n += m.endpoint.queue
	}
	if n <= 0 || spec.capacity <= 0 || spec.p.PromptTokens <= 0 {
		return planned
	}
	return max(planned, spec.utilizationOf(n, spec.capacity))
}

// publish makes marks of the weights.
func (p *peers) publish(now time.Time, s *Settings, report func(Change)) {
	weights := p.wanted(now)
	p.limitMoves(now, weights)
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
	p.keep()
	p.refuseAlike()
	next := p.makeMarks(now)
	if last := p.marks.Load(); last == nil || !next.equal(last) {
		p.marks.Store(next)
	}
}

// keep notes the part of its keys that each engine has.
func (p *peers) keep() {
	clear(p.kept)
	for i := range p.members {
		if m := &p.members[i]; !m.away {
			p.kept[m.engine] += m.weight / float64(len(p.plan.endpoints[m.engine]))
		}
	}
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
		p.spec.Pause()
		reach := c.reach()
		if len(reach) == 0 {
			continue
		}
		group := groups[p.signature(reach)]
		if group == nil {
			group = &peers{plan: p, kept: make([]float64, len(p.engines)), budgets: []*budget{{}}}
			groups[p.signature(reach)] = group
			for _, n := range reach {
				for i, e := range p.endpoints[n] {
					m := member{endpoint: e, engine: n, index: i, away: p.spec.Stay[n] <= 1, seen: e.totals()}
					if !m.away {
						m.capacity = max(1e-9, p.engines[n].capacity)
					}
					group.members = append(group.members, m)
				}
			}
			group.inherit(last.peersOf(c.name))
			p.peers = append(p.peers, group)
		}
		group.classes = append(group.classes, c)
		c.peers = group
		c.addBudget(last.classNamed(c.name))
	}
}

func (p *Plan) peersOf(class string) *peers {
	if c := p.classNamed(class); c != nil {
		return c.peers
	}
	return nil
}

func (p *peers) inherit(last *peers) {
	if last == nil {
		return
	}
	p.panic, p.budgets[0] = last.panic, last.budgets[0]
	known := map[*Endpoint]*member{}
	for i := range last.members {
		known[last.members[i].endpoint] = &last.members[i]
	}
	for i := range p.members {
		m := &p.members[i]
		if old := known[m.endpoint]; old != nil {
			m.penalty, m.seen, m.evidence, m.fresh, m.judged, m.state = old.penalty, old.seen, old.evidence, old.fresh, old.judged, old.state
		}
	}
}
