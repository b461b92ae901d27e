package guard

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/irb-project/irb/agent/signal"
	"github.com/irb-project/irb/agent/snapshot"
)

const (
	tokenUnit = 1000 // one retry
	// reservedTokens are what the classes of the lowest priority leave to those
	// above them.
	reservedTokens = 10
	// preferredTokens is the most that a class saves for itself while others are
	// refused in its favour.
	preferredTokens = 10
	// budgetMemory is for how long tokens are saved (Finagle's TTL).
	budgetMemory = 10 * time.Second

	// Up to fullBudget of utilization retries are allowed in full, from there on
	// less, and none from noBudget on: a retry at saturation takes the place of
	// a request that would have been served.
	fullBudget = 0.7
	noBudget   = 0.95
)

// budget is a bucket of retry tokens of the classes that reach the same engines,
// or of one class alone that has a ratio or floor of its own. Each request puts
// a share of a token in; a retry takes one out, in one atomic step.
type budget struct {
	own *snapshot.Guard // of the class; nil: the agent's settings

	tokens  atomic.Int64 // in 1/tokenUnit
	deposit atomic.Int64 // per request
	cap     atomic.Int64
	count   atomic.Int64 // requests, ever

	lastCount int64
	rate      float64 // requests/s
	answers   answers // of all endpoints, decayed
}

// addBudget gives the class the budget that it shares with its peers, or one of
// its own, with what the last plan's had saved.
func (c *Class) addBudget(old *Class) {
	c.budget = c.peers.budgets[0]
	own := &c.plan.spec.Snapshot.Classes[c.number].Guard
	if own.RetryBudgetRatio == nil && own.RetryBudgetFloor == nil {
		return
	}
	c.budget = &budget{own: own}
	if old != nil && old.budget != nil && old.budget.own != nil {
		c.budget.tokens.Store(old.budget.tokens.Load())
		c.budget.rate, c.budget.answers = old.budget.rate, old.budget.answers
	}
	c.reserve = 0 // nobody else is there to leave tokens to
	c.peers.budgets = append(c.peers.budgets, c.budget)
}

// Deposit counts a request.
func (c *Class) Deposit() {
	b := c.budget
	if b == nil {
		return
	}
	b.count.Add(1)
	b.add(b.deposit.Load())
	if c.preferred.Load() {
		deposit := int64(0)
		if ratio, _ := b.limits(c.plan.guard.settings.Load()); ratio > 0 {
			deposit = tokenUnit // a retry each: the others make room for it
		}
		if n := c.tokens.Add(deposit); n > preferredTokens*tokenUnit {
			c.tokens.Store(preferredTokens * tokenUnit)
		}
	}
}

// add puts n in, up to the cap.
func (b *budget) add(n int64) {
	for n > 0 {
		have := b.tokens.Load()
		next := min(have+n, b.cap.Load())
		if next <= have || b.tokens.CompareAndSwap(have, next) {
			return
		}
	}
}

// Withdraw says whether a retry may be sent, and counts it. Classes of lower
// priority leave some tokens to the others. At saturation there are none, but
// for a class in whose favour others are refused: what its retries take, those
// have made room for.
func (c *Class) Withdraw() bool {
	b := c.budget
	if b == nil {
		return false
	}
	if c.preferred.Load() && take(&c.tokens, tokenUnit) {
		return true
	}
	if b.cap.Load() == 0 {
		return false
	}
	return take(&b.tokens, tokenUnit+min(c.reserve, b.cap.Load()/2))
}

// take takes one token if there are as many as enough.
func take(tokens *atomic.Int64, enough int64) bool {
	for {
		have := tokens.Load()
		if have < enough {
			return false
		}
		if tokens.CompareAndSwap(have, have-tokenUnit) {
			return true
		}
	}
}

// easing is the part of the budget that is left at a utilization.
func easing(utilization float64) float64 {
	return min(1, max(0, (noBudget-utilization)/(noBudget-fullBudget)))
}

// limits returns what the class says, else the agent. A class that wants no
// ratio wants no floor either, unless it says so.
func (b *budget) limits(s *Settings) (ratio, floor float64) {
	ratio, floor = s.RetryRatio, s.RetryFloor
	if b.own == nil {
		return ratio, floor
	}
	if r := b.own.RetryBudgetRatio; r != nil {
		if ratio = *r; ratio == 0 {
			floor = 0
		}
	}
	if f := b.own.RetryBudgetFloor; f != nil {
		floor = *f
	}
	return ratio, floor
}

// tick sets what requests pay in, by how full their engines are.
func (b *budget) tick(p *peers, dt time.Duration, s *Settings) {
	count := b.count.Load()
	decay := math.Exp(-dt.Seconds() / rateMemory.Seconds())
	b.rate = b.rate*decay + (1-decay)*float64(count-b.lastCount)/dt.Seconds()
	b.lastCount = count

	b.sum(p, decay)
	// Engines that say they are full are, whatever else they say.
	ease := min(easing(p.utilization()), max(0, 1-b.answers.pushbackShare()/fullPushbacks))
	ratio, floor := b.limits(s)
	ratio *= ease
	// The floor is for quiet fleets. Shared, because each agent has one.
	floor /= float64(max(1, s.Agents))
	if ease < 1 {
		floor = 0
	}
	b.deposit.Store(int64(tokenUnit * ratio))
	most := int64(0)
	if ratio+floor > 0 {
		most = int64(tokenUnit * max(1, (ratio*b.rate+floor)*budgetMemory.Seconds()))
	}
	b.cap.Store(most)
	for have := b.tokens.Load(); have > most; have = b.tokens.Load() {
		b.tokens.CompareAndSwap(have, most)
	}
	b.add(int64(tokenUnit * floor * dt.Seconds()))
}

// sum counts the answers of all endpoints, to say something where each has few.
func (b *budget) sum(p *peers, decay float64) {
	b.answers.decay(decay)
	for i := range p.members {
		b.answers.add(p.members[i].endpoint.newAnswers)
	}
}

// utilization returns that of all endpoints together, weighted by capacity;
// what is saturated counts as full, what is ejected or unknown not at all.
func (p *peers) utilization() float64 {
	sum, capacity := 0.0, 0.0
	for i := range p.members {
		m := &p.members[i]
		v := m.endpoint.utilization
		if m.endpoint.saturated {
			v = 1
		}
		if signal.Known(v) && m.weight > 0 {
			sum += v * m.capacity
			capacity += m.capacity
		}
	}
	if capacity == 0 {
		return 0
	}
	return sum / capacity
}
