package solve

import (
	"math"
	"slices"

	"github.com/irb-project/irb/solve/model"
)

// oneMore sets the price of each source to the cost of one more request. It is
// an interval where conversations stay for their caches: one request less at an
// engine saves less than one more costs. Solvers return any price of it.
func oneMore(p *model.Problem, s *model.Solution) {
	if p.Stay == nil {
		return
	}
	m := newMarginals(p, s)
	next := 0 // of the flows, in order of pair
	for i := range p.Sources {
		first := next
		for next < len(s.Flows) && s.Flows[next].Pair < p.Row[i+1] {
			next++
		}
		least := m.next(i, s.Flows[first:next])
		if least > s.SourcePriceMs[i] && !math.IsInf(least, 1) && m.needed(i, least) {
			s.SourcePriceMs[i] = least
		}
	}
}

// marginals is what pairs cost by the prices of a solution.
type marginals struct {
	p        *model.Problem
	s        *model.Solution
	groups   []float64 // per pair, ms per request; nil: there are none
	capPrice []float64 // per engine, ms per unit of work
}

func newMarginals(p *model.Problem, s *model.Solution) *marginals {
	m := &marginals{p: p, s: s, capPrice: make([]float64, len(p.Engines))}
	if len(p.Groups) > 0 {
		m.groups = make([]float64, p.Pairs())
	}
	for i, g := range p.Groups {
		for k := p.Row[g.Source]; k < p.Row[g.Source+1]; k++ {
			if slices.Contains(g.Engines, p.Col[k]) {
				m.groups[k] += s.GroupPriceMs[i]
			}
		}
	}
	for i, limit := range p.Caps {
		for _, e := range limit.Engines {
			m.capPrice[e] += s.CapPrice[i]
		}
	}
	return m
}

// cost is what a request of source i pays on pair k, before its cache term.
func (m *marginals) cost(i, k int) float64 {
	source, e := &m.p.Sources[i], m.p.Col[k]
	cost := m.p.CostMs[k] + source.Work*(m.s.EnginePrice[e]+m.capPrice[e])
	if m.groups != nil {
		cost += m.groups[k]
	}
	if m.s.PrefillPrice != nil {
		cost += source.PromptTokens*m.s.PrefillPrice[e] + source.OutputTokens*m.s.OutputPrice[e]
	}
	return cost
}

// next returns the least that one more request of source i costs where its
// flows leave room, +Inf if nowhere.
func (m *marginals) next(i int, flows []model.Flow) float64 {
	rounding := roundingRPS * m.p.Sources[i].DemandRPS
	least := math.Inf(1)
	for k := m.p.Row[i]; k < m.p.Row[i+1]; k++ {
		var x float64
		if len(flows) > 0 && flows[0].Pair == k {
			x, flows = flows[0].RPS, flows[1:]
		}
		if m.p.Upper != nil && x >= m.p.Upper[k]-rounding {
			continue
		}
		cost := m.cost(i, k)
		if x < m.p.Stay[k]-rounding {
			cost -= m.p.StayPenaltyMs[k]
		}
		least = min(least, cost)
	}
	return least
}

// sumRounding is the rounding of a sum of bounds, relative. A flow that is at its
// bound but for roundingRPS may be short of it by all of a tiny one.
const sumRounding = 1e-12

// needed says whether all that is cheaper than a price together serves no more
// than source i is served. Else one more request costs less: a flow is short of
// a bound by more than it seems to be.
func (m *marginals) needed(i int, price float64) bool {
	p := m.p
	room := m.s.ServedRPS[i] * (1 + sumRounding)
	for k := p.Row[i]; k < p.Row[i+1]; k++ {
		lo, hi := 0.0, math.Inf(1)
		if p.Upper != nil {
			lo, hi = p.Lower[k], p.Upper[k]
		}
		room -= lo
		cost := m.cost(i, k)
		knee := min(max(lo, p.Stay[k]), hi)
		if cost-p.StayPenaltyMs[k] < price {
			room -= knee - lo
		}
		if cost < price && hi > knee {
			room -= hi - knee
		}
	}
	return room >= 0
}
