package guard

import (
	"sync/atomic"
	"time"
)

// absorb is what a fallback engine may still take of one class: a bucket that
// fills at the rate which the snapshot says it can absorb, divided by the
// number of agents.
type absorb struct {
	rps    float64
	tokens atomic.Int64 // in 1/absorbUnit
}

// absorbUnit is one request, fine enough for a rate of one in hours.
const absorbUnit = 1e6

// refill is called by ticks.
func (c *Class) refill(dt time.Duration, s *Settings) {
	for n := range c.absorbs {
		a := &c.absorbs[n]
		if a.rps <= 0 {
			continue
		}
		rps := a.rps / float64(max(1, s.Agents))
		full := int64(absorbUnit * max(1, rps)) // a second's worth
		add := min(int64(absorbUnit*rps*dt.Seconds()), full-a.tokens.Load())
		a.tokens.Add(max(0, add))
	}
}

// spent says whether nothing more can be taken at the moment.
func (a *absorb) spent() bool { return a.tokens.Load() < absorbUnit }

// Absorb says whether a fallback engine may take one more request of the class
// beyond plan, and counts it.
func (c *Class) Absorb(engine int) bool {
	if engine >= len(c.absorbs) {
		return false
	}
	a := &c.absorbs[engine]
	for {
		have := a.tokens.Load()
		if have < absorbUnit {
			return false
		}
		if a.tokens.CompareAndSwap(have, have-absorbUnit) {
			return true
		}
	}
}
