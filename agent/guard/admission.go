package guard

import (
	"math"
	"time"

	"github.com/irb-project/irb/agent/signal"
)

// admission decides for classes that share engines how much of each is let in.
//
// Nothing is refused unless engines say that they are saturated: all that a
// class reaches and that are not ejected. Then the work let in is
//
//	max(planned share of this agent, served (1 + 0.3 clamp((q* - q) / q*)))
//
// with q the queue of those endpoints and q* the one that may be: it follows
// what is really served, so no capacity has to be known, and holds a short
// queue, so none of it is wasted. While there is no queue it doubles every
// second or so, so that a false alarm or the end of an overload is soon over.
type admission struct {
	plan    *Plan
	classes []*Class // in order of priority, highest first

	demand     [][levels]float64 // req/s, by class
	last       [][levels]int64
	served     []float64 // req/s that began to be answered, by class
	lastServed []int64

	pressedAt []time.Time // by class: when it last found all saturated
	closed    []time.Time // by class and level: since when nothing of it is let in; zero: something is
	pressed   int         // ticks in a row in which a class found all saturated
	ramp      float64     // what is let in without a queue, token equivalents/s; 0: there is one
	shedding  bool        // the gates are in use
	calm      time.Time   // since when nothing had to be refused
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
	// heldTime is for how long a class is still let in by measure when it has no
	// queue any more: queues that are kept short are empty at times, and the
	// measure grows meanwhile.
	heldTime = 5 * time.Second
	// idle is the room from which there is as good as no queue.
	idle      = 0.9
	maxReturn = 30 * time.Second // the widest spread of returns
)

func (a *admission) tick(now time.Time, dt time.Duration, s *Settings, report func(Change)) {
	a.measure(dt)
	held, some := a.held(now, s)
	if some {
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
	refused := a.setGates(held, now, dt, s)
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
		c.preferred.Store(a.shedding && refused && !c.refuses())
	}
}

// held returns the classes that are let in by measure: those that found all
// saturated a short while ago, or are refused something and still have a queue.
// Some says whether one finds all saturated now.
func (a *admission) held(now time.Time, s *Settings) (list []int, some bool) {
	for i, c := range a.classes {
		if c.saturated() {
			a.pressedAt[i] = now
			some = true
		} else if c.refuses() && a.room([]int{i}, s) < idle {
			a.pressedAt[i] = now
		}
		if !a.pressedAt[i].IsZero() && now.Sub(a.pressedAt[i]) < heldTime {
			list = append(list, i)
		}
	}
	return list, some
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

// saturated says whether every endpoint that the class reaches, and that may
// have its requests, is saturated; a fallback that has taken what it may absorb
// has no room either.
func (c *Class) saturated() bool {
	some := false
	if c.peers == nil {
		return false
	}
	for i := range c.peers.members {
		m := &c.peers.members[i]
		switch {
		case m.weight == 0 || m.away:
		case m.endpoint.saturated:
			some = true
		case c.owns[m.engine] || !c.absorbs[m.engine].spent():
			return false
		}
	}
	return some
}

// allowed returns how much work may be let in, and how much is offered, in
// token equivalents per second.
func (a *admission) allowed(pressed []int, dt time.Duration, s *Settings) (work, demand float64) {
	served, planned := 0.0, 0.0
	for _, i := range pressed {
		c := a.classes[i]
		served += a.served[i] * c.meanWork()
		demand += (a.demand[i][fresh] + a.demand[i][underWay]) * c.meanWork()
		if c.source != nil && s.Agents > 0 {
			planned += c.source.ServedRPS / float64(s.Agents) * c.meanWork() * c.healthy()
		}
	}
	room := a.room(pressed, s)
	work = max(planned, served*(1+gain*room))
	if room < idle {
		a.ramp = 0
		return work, demand
	}
	// Without a queue what was served says little of what could be.
	a.ramp = max(work, a.ramp*(1+dt.Seconds()))
	return a.ramp, demand
}

// room is 1 without a queue, 0 at the queue that may be, -1 at twice that. Where
// no queue is known, answers that say "full" stand for it.
func (a *admission) room(pressed []int, s *Settings) float64 {
	waiting, may, answers := 0.0, 0.0, 0.0
	for _, i := range pressed {
		c := a.classes[i]
		for j := range c.peers.members {
			m := &c.peers.members[j]
			e := m.endpoint
			if m.weight == 0 || m.away || !c.owns[m.engine] && !e.saturated {
				continue
			}
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

// meanWork is the work of a mean request of the class in token equivalents.
func (c *Class) meanWork() float64 {
	if c.source == nil {
		return 0
	}
	if w := c.uncached(0) + c.plan.spec.Snapshot.Policy.OutputTokenWork*c.outputTokens; w > 0 {
		return w
	}
	return 1
}

// healthy is the part of its planned rate that the class can be served now: by
// those of its engines that are there, and by what fallbacks absorb.
func (c *Class) healthy() float64 {
	rps := 0.0
	for _, w := range c.source.Weights {
		if n, ok := c.plan.byName[w.Engine]; ok {
			rps += w.RPS * c.peers.kept[n]
		}
	}
	for n := range c.absorbs {
		rps += c.absorbs[n].rps * c.peers.kept[n]
	}
	return min(1, rps/max(c.source.ServedRPS, 1e-9))
}
