package guard

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/irb-project/irb/agent/signal"
)

// levels of a class: a turn of a conversation under way is refused after all
// new ones, because what was spent on the conversation would be lost.
const (
	fresh = iota
	underWay
	levels
)

// gate lets a part of the requests of one level through, chosen by key, so that
// the requests of a conversation fare alike; the choice changes every minute.
type gate struct {
	part       atomic.Uint64 // threshold of hashes
	retryAfter atomic.Int64  // ns; how far apart refused clients should return
}

func (g *gate) open() { g.part.Store(stayAll) }

// choicePeriod is how long the same keys are refused.
const choicePeriod = time.Minute

// Admit says whether a request may be served. If not, the client should come
// back after the given time, which differs from key to key so that they do not
// all return at once.
func (c *Class) Admit(key uint64, turnUnderWay bool, now time.Time) (retryAfter time.Duration, ok bool) {
	level := fresh
	if turnUnderWay {
		level = underWay
	}
	c.offered[level].Add(1)
	g := &c.gates[level]
	limit := g.part.Load()
	if limit == stayAll {
		return 0, true
	}
	if mix(key+uint64(now.UnixNano()/int64(choicePeriod))) < limit {
		return 0, true
	}
	spread := uint64(g.retryAfter.Load())
	return time.Second + time.Duration(part(mix(key^uint64(now.UnixNano())), spread)), false
}

// admission decides for classes that share engines how much of each is let in.
//
// Nothing is refused unless engines say that they are saturated: all that a
// class reaches and that are not ejected. Then the work let in is
//
//	max(planned share of this agent, served (1 + 0.3 clamp((q* - q) / q*)))
//
// with q the queue of those endpoints and q* the one that may be: it follows
// what is really served, so no capacity has to be known, and holds a short
// queue, so none of it is wasted.
type admission struct {
	plan    *Plan
	classes []*Class // in order of priority, highest first

	demand     [][levels]float64 // req/s, by class
	last       [][levels]int64
	served     []float64 // req/s that began to be answered, by class
	lastServed []int64

	closed   []time.Time // by class and level: since when nothing of it is let in; zero: something is
	pressed  int         // ticks in a row in which a class found all saturated
	shedding bool        // the gates are in use
	calm     time.Time   // since when nothing had to be refused
}

const (
	demandMemory = time.Second
	gain         = 0.3 // of the queue on what is let in
	// queuePart of what runs may wait: a queue of a few requests at an engine
	// that serves hundreds is empty before anybody knows of it.
	queuePart = 0.125
	// closeDelay is how long nothing of the levels below must have been let in
	// before a level is refused something: their requests are still in the
	// engines' queues.
	closeDelay   = 2 * time.Second
	pressedTicks = 2
	calmTime     = time.Second
	maxReturn    = 30 * time.Second // the widest spread of returns
)

func (a *admission) tick(now time.Time, dt time.Duration, s *Settings, report func(Change)) {
	a.measure(dt)
	var pressed []int
	for i, c := range a.classes {
		if c.saturated() {
			pressed = append(pressed, i)
		}
	}
	if len(pressed) > 0 {
		a.pressed++
	} else {
		a.pressed = 0
	}
	was := a.shedding
	switch {
	case !a.shedding && a.pressed >= pressedTicks:
		a.shedding, a.calm = true, time.Time{}
	case !a.shedding:
		return
	}
	refused := a.setGates(pressed, now, s)
	switch {
	case refused:
		a.calm = time.Time{}
	case a.calm.IsZero():
		a.calm = now
	case now.Sub(a.calm) >= calmTime:
		a.shedding = false
	}
	if a.shedding != was {
		a.tell(report)
	}
	for _, c := range a.classes {
		c.preferred.Store(a.shedding && refused && c.gates[fresh].part.Load() == stayAll && c.gates[underWay].part.Load() == stayAll)
	}
}

func (a *admission) tell(report func(Change)) {
	for _, c := range a.classes {
		change := Change{Class: c.name, State: Normal, Weight: 1, Why: "the engines have room"}
		if a.shedding {
			change.State, change.Why = Shedding, "all engines of a class are saturated: no more is let in than is served"
		}
		report(change)
	}
}

// measure brings the rates up to date.
func (a *admission) measure(dt time.Duration) {
	fast := math.Exp(-dt.Seconds() / demandMemory.Seconds())
	slow := math.Exp(-dt.Seconds() / rateMemory.Seconds())
	for i, c := range a.classes {
		for l := range levels {
			n := c.offered[l].Load()
			a.demand[i][l] = a.demand[i][l]*fast + (1-fast)*float64(n-a.last[i][l])/dt.Seconds()
			a.last[i][l] = n
		}
		n := c.served.Load()
		a.served[i] = a.served[i]*slow + (1-slow)*float64(n-a.lastServed[i])/dt.Seconds()
		a.lastServed[i] = n
	}
}

// saturated says whether every endpoint that the class reaches, and that is
// not ejected, is saturated.
func (c *Class) saturated() bool {
	some := false
	if c.peers == nil {
		return false
	}
	for i := range c.peers.members {
		m := &c.peers.members[i]
		if m.weight == 0 {
			continue
		}
		if !m.endpoint.saturated {
			return false
		}
		some = true
	}
	return some
}

// setGates divides what may be let in, highest priority first, and returns
// whether anything is refused. Classes that reach engines with room pass free.
func (a *admission) setGates(pressed []int, now time.Time, s *Settings) (refused bool) {
	if len(pressed) == 0 {
		// The queue is short at the moment: all are let in by measure, which
		// grows until nothing is refused.
		for i := range a.classes {
			pressed = append(pressed, i)
		}
	}
	allowed, demand := a.allowed(pressed, s)
	spread := int64(min(maxReturn, max(time.Second, time.Duration(2*demand/max(allowed, 1e-9)*float64(time.Second)))))
	left := allowed
	list := a.levels(pressed)
	for n, level := range list {
		want := 0.0
		for _, r := range level {
			want += a.demand[r.class][r.level] * a.classes[r.class].meanWork()
		}
		fraction := 1.0
		if want > left && a.mayRefuse(list[n+1:], now) {
			fraction = max(0, left) / want
			refused = refused || fraction < 1
		}
		left -= want * fraction
		for _, r := range level {
			g := &a.classes[r.class].gates[r.level]
			g.retryAfter.Store(spread)
			g.part.Store(threshold(fraction))
			at := &a.closed[r.class*levels+r.level]
			switch {
			case fraction > 0:
				*at = time.Time{}
			case at.IsZero():
				*at = now
			}
		}
	}
	return refused
}

// row is one level of one class of an admission.
type row struct{ class, level int }

// levels returns what is let in together, that which is kept longest first:
// classes of one priority share. The gates of the classes that are not pressed
// are opened.
func (a *admission) levels(pressed []int) (list [][]row) {
	for from := 0; from < len(a.classes); {
		to := from
		for to < len(a.classes) && a.classes[to].priority == a.classes[from].priority {
			to++
		}
		for l := levels - 1; l >= 0; l-- {
			var rows []row
			for i := from; i < to; i++ {
				if slices.Contains(pressed, i) {
					rows = append(rows, row{i, l})
				} else {
					a.classes[i].gates[l].open()
				}
			}
			if len(rows) > 0 {
				list = append(list, rows)
			}
		}
		from = to
	}
	return list
}

// mayRefuse says whether all of these levels have been closed for long enough,
// or nobody asks for them.
func (a *admission) mayRefuse(below [][]row, now time.Time) bool {
	for _, level := range below {
		for _, r := range level {
			at := a.closed[r.class*levels+r.level]
			if a.demand[r.class][r.level] > 0.01 && (at.IsZero() || now.Sub(at) < closeDelay) {
				return false
			}
		}
	}
	return true
}

// allowed returns how much work may be let in, and how much is offered, in
// reference requests/s.
func (a *admission) allowed(pressed []int, s *Settings) (work, demand float64) {
	served, planned := 0.0, 0.0
	for _, i := range pressed {
		c := a.classes[i]
		served += a.served[i] * c.meanWork()
		demand += (a.demand[i][fresh] + a.demand[i][underWay]) * c.meanWork()
		if c.source != nil && s.Agents > 0 {
			planned += c.source.ServedRPS / float64(s.Agents) * c.meanWork() * c.healthy()
		}
	}
	return max(planned, served*(1+gain*a.room(pressed, s))), demand
}

// room is 1 without a queue, 0 at the queue that may be, -1 at twice that. Where
// no queue is known, answers that say "full" stand for it.
func (a *admission) room(pressed []int, s *Settings) float64 {
	waiting, may, answers := 0.0, 0.0, 0.0
	for _, i := range pressed {
		c := a.classes[i]
		for j := range c.peers.members {
			e := c.peers.members[j].endpoint
			if signal.Known(e.queue) {
				waiting += e.queue
				may += max(s.QueueLimit, queuePart*e.running)
			}
			answers = max(answers, e.recent.pushbackShare())
		}
	}
	x := 1 - answers/(fullPushbacks/2)
	if may > 0 {
		x = min(x, 1-waiting/may)
	}
	return max(-1, min(1, x))
}

// meanWork is the work of a mean request of the class in reference requests of
// the first engine that it reaches.
func (c *Class) meanWork() float64 {
	if c.peers == nil {
		return 0
	}
	return c.plan.engines[c.peers.members[0].engine].referenceRequests(c.uncached(0), c.outputTokens)
}

// healthy is the part of the capacity that the class reaches and that is not
// taken away at the moment: of what is gone nothing was planned to be served.
func (c *Class) healthy() float64 {
	total, left := 0.0, 0.0
	for i := range c.peers.members {
		m := &c.peers.members[i]
		total += m.capacity
		left += m.capacity * m.weight
	}
	return left / total
}

// addAdmissions puts classes that share an engine, directly or through others,
// into one admission.
func (p *Plan) addAdmissions(last *Plan) {
	owner := make([]int, len(p.engines)) // engine -> admission + 1
	var groups [][]*Class
	for _, c := range p.classes {
		if c.peers == nil {
			continue
		}
		group := []*Class{c}
		for _, n := range c.reach() {
			if at := owner[n]; at > 0 && groups[at-1] != nil {
				group = append(group, groups[at-1]...)
				groups[at-1] = nil
			}
		}
		groups = append(groups, group)
		for _, member := range group {
			for _, n := range member.reach() {
				owner[n] = len(groups)
			}
		}
	}
	for _, group := range groups {
		if group == nil {
			continue
		}
		slices.SortStableFunc(group, func(x, y *Class) int { return cmp.Compare(y.priority, x.priority) })
		a := &admission{
			plan: p, classes: group,
			demand: make([][levels]float64, len(group)), last: make([][levels]int64, len(group)),
			closed: make([]time.Time, len(group)*levels),
			served: make([]float64, len(group)), lastServed: make([]int64, len(group)),
		}
		for i, c := range group {
			c.admission = a
			a.inherit(i, last.classNamed(c.name))
		}
		p.admissions = append(p.admissions, a)
	}
}

func (p *Plan) classNamed(name string) *Class {
	if p == nil {
		return nil
	}
	for _, c := range p.classes {
		if c.name == name {
			return c
		}
	}
	return nil
}

// inherit keeps rates and gates over a reload: a new weight file must not open
// them on a fleet that is saturated.
func (a *admission) inherit(i int, old *Class) {
	if old == nil || old.admission == nil {
		return
	}
	was := old.admission
	j := slices.Index(was.classes, old)
	a.demand[i], a.served[i] = was.demand[j], was.served[j]
	a.shedding = a.shedding || was.shedding
	for l := range levels {
		a.classes[i].gates[l].part.Store(old.gates[l].part.Load())
		a.classes[i].gates[l].retryAfter.Store(old.gates[l].retryAfter.Load())
	}
}
