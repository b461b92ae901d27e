package guard

import (
	"slices"
	"time"
)

// marks is what peers publish for requests. It is not changed once published.
type marks struct {
	stay []uint64   // by engine, see pick.Request
	keep [][]uint64 // by engine and endpoint: of the keys that come to it, those that stay
	full [][]bool   // by engine and endpoint: that it refused is no reason to pass it over
}

// makeMarks turns weights into thresholds. An engine keeps the keys that its
// best endpoint would keep; of those each endpoint keeps its part. An engine
// that gets a probe is passed by no key until the probe is taken.
func (p *peers) makeMarks(now time.Time) *marks {
	m := &marks{stay: slices.Clone(p.plan.spec.Stay), keep: make([][]uint64, len(p.plan.engines)), full: make([][]bool, len(p.plan.engines))}
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
			m.full[b.engine] = make([]bool, len(p.plan.endpoints[b.engine]))
			// 0 would mean that not even the last resort is there.
			m.stay[b.engine] = min(m.stay[b.engine], max(1, threshold(best[b.engine])))
		}
		m.full[b.engine][b.index] = b.alikeFull
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

// alikeFull says whether the peers of an endpoint refuse as often as it does.
func (m *marks) alikeFull(engine, i int) bool {
	list := m.full[engine]
	return list != nil && list[i]
}

func (m *marks) equal(o *marks) bool {
	return slices.Equal(m.stay, o.stay) && slices.EqualFunc(m.keep, o.keep, slices.Equal[[]uint64]) &&
		slices.EqualFunc(m.full, o.full, slices.Equal[[]bool])
}
