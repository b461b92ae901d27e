package guard

import (
	"math"
	"slices"
	"sync/atomic"
	"time"
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

// refuses says whether anything of the class is refused.
func (c *Class) refuses() bool {
	return c.gates[fresh].part.Load() != stayAll || c.gates[underWay].part.Load() != stayAll
}

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

// doubt is by how many standard deviations of the measured rate, which is that
// of a Poisson count, demand must exceed what may be let in before anything is
// refused: an agent that sees a few requests per second sees bunches of them.
const doubt = 1

// setGates divides what may be let in, highest priority first, and returns
// whether anything is refused. Classes that reach engines with room pass free.
func (a *admission) setGates(pressed []int, now time.Time, dt time.Duration, s *Settings) (refused bool) {
	allowed, demand := a.allowed(pressed, dt, s)
	spread := int64(1e9 * min(maxReturn.Seconds(), max(1, 2*demand/max(allowed, 1e-9))))
	left := allowed
	list := a.levels(pressed)
	variance := 0.0
	for n, level := range list {
		want, refusing := 0.0, false
		for _, r := range level {
			rate, work := a.demand[r.class][r.level], a.classes[r.class].meanWork()
			want += rate * work
			variance += rate * work * work / (2 * demandMemory.Seconds())
			refusing = refusing || a.classes[r.class].gates[r.level].part.Load() != stayAll
		}
		margin := doubt * math.Sqrt(variance)
		if refusing {
			margin = 0
		}
		fraction := 1.0
		if want > left+margin && a.mayRefuse(list[n+1:], now) {
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
