package model

import "slices"

// Subset is a problem with some sources and pairs left out, and the way back
// to the whole. Engines and caps keep their numbers.
type Subset struct {
	*Problem
	SourceOf []int // per source of the subset: that of the whole
	PairOf   []int // per pair
	GroupOf  []int // per group
}

// Without returns the problem without one engine, in which what can no longer
// be served is shed. Sources that it was the only engine of are left out.
func (p *Problem) Without(engine int) *Subset {
	s := p.subset(
		func(s int) bool {
			n := p.Row[s+1] - p.Row[s]
			return n > 1 || n == 1 && p.Col[p.Row[s]] != int32(engine)
		},
		func(k int) bool { return p.Col[k] != int32(engine) })
	s.Shed = true
	return s
}

// WithoutMinima returns the problem with no least share of anything.
func (s *Subset) WithoutMinima() *Subset {
	p := *s.Problem
	if p.Lower != nil {
		p.Lower = make([]float64, p.Pairs())
	}
	p.Groups = slices.Clone(p.Groups)
	for i := range p.Groups {
		p.Groups[i].MinRPS = 0
	}
	return &Subset{Problem: &p, SourceOf: s.SourceOf, PairOf: s.PairOf, GroupOf: s.GroupOf}
}

// Loosen lowers all minima by a part, so that rounding leaves them an interior.
func (s *Subset) Loosen(part float64) {
	for k := range s.Lower {
		s.Lower[k] *= 1 - part
	}
	for i := range s.Groups {
		s.Groups[i].MinRPS *= 1 - part
	}
}

// Serving returns the problem with the demand that is served, all of which
// must be; sources that are served nothing are left out.
func (p *Problem) Serving(servedRPS []float64) *Subset {
	s := p.subset(func(s int) bool { return servedRPS[s] > 0 }, func(int) bool { return true })
	s.Shed = false
	for i, whole := range s.SourceOf {
		s.Sources[i].DemandRPS = servedRPS[whole]
	}
	return s
}

func (p *Problem) subset(source func(s int) bool, pair func(k int) bool) *Subset {
	q := *p
	out := &Subset{Problem: &q}
	q.Sources, q.Row = nil, []int{0}
	number := make([]int, len(p.Sources)) // of a source in the subset, -1: left out
	for s := range p.Sources {
		number[s] = -1
		if !source(s) {
			continue
		}
		number[s] = len(q.Sources)
		q.Sources = append(q.Sources, p.Sources[s])
		out.SourceOf = append(out.SourceOf, s)
		for k := p.Row[s]; k < p.Row[s+1]; k++ {
			if pair(k) {
				out.PairOf = append(out.PairOf, k)
			}
		}
		q.Row = append(q.Row, len(out.PairOf))
	}
	q.Col = pick(p.Col, out.PairOf)
	q.CostMs = pick(p.CostMs, out.PairOf)
	q.Lower, q.Upper = pick(p.Lower, out.PairOf), pick(p.Upper, out.PairOf)
	q.Stay, q.StayPenaltyMs = pick(p.Stay, out.PairOf), pick(p.StayPenaltyMs, out.PairOf)
	q.Groups = nil
	for i, g := range p.Groups {
		if number[g.Source] >= 0 {
			g.Source = number[g.Source]
			q.Groups = append(q.Groups, g)
			out.GroupOf = append(out.GroupOf, i)
		}
	}
	return out
}

func pick[T any](from []T, index []int) []T {
	if from == nil {
		return nil
	}
	to := make([]T, len(index))
	for i, k := range index {
		to[i] = from[k]
	}
	return to
}

// Narrow returns those of the flows of the whole problem, in order of pair, that
// are on pairs of the subset.
func (s *Subset) Narrow(flows []Flow) []Flow {
	var out []Flow
	k := 0
	for _, f := range flows {
		for k < len(s.PairOf) && s.PairOf[k] < f.Pair {
			k++
		}
		if k < len(s.PairOf) && s.PairOf[k] == f.Pair {
			out = append(out, Flow{Pair: k, RPS: f.RPS})
		}
	}
	return out
}

// Widen turns a solution of the subset into one of the whole problem: what was
// left out serves nothing. A source left out has the price of its cheapest
// pair, as its first request would pay.
func (s *Subset) Widen(p *Problem, sol *Solution) *Solution {
	out := *sol
	out.Flows = make([]Flow, len(sol.Flows))
	for i, f := range sol.Flows {
		out.Flows[i] = Flow{Pair: s.PairOf[f.Pair], RPS: f.RPS}
	}
	out.ServedRPS = make([]float64, len(p.Sources))
	out.SourcePriceMs = make([]float64, len(p.Sources))
	out.GroupPriceMs = make([]float64, len(p.Groups))
	kept := make([]bool, len(p.Sources))
	for i, whole := range s.SourceOf {
		kept[whole] = true
		out.ServedRPS[whole], out.SourcePriceMs[whole] = sol.ServedRPS[i], sol.SourcePriceMs[i]
	}
	for i, whole := range s.GroupOf {
		out.GroupPriceMs[whole] = sol.GroupPriceMs[i]
	}
	for i, ok := range kept {
		if !ok {
			out.SourcePriceMs[i] = p.firstPrice(i, &out)
		}
	}
	return &out
}

// firstPrice is the least cost of a source's first request by engine and cap
// prices, in ms.
func (p *Problem) firstPrice(s int, sol *Solution) float64 {
	source := p.Sources[s]
	capPrice := make(map[int32]float64)
	for i, limit := range p.Caps {
		for _, e := range limit.Engines {
			capPrice[e] += sol.CapPrice[i]
		}
	}
	var least float64
	for k := p.Row[s]; k < p.Row[s+1]; k++ {
		e := p.Col[k]
		price := p.CostMs[k] + source.Work*(sol.EnginePrice[e]+capPrice[e])
		if sol.PrefillPrice != nil {
			price += source.PromptTokens*sol.PrefillPrice[e] + source.OutputTokens*sol.OutputPrice[e]
		}
		if k == p.Row[s] || price < least {
			least = price
		}
	}
	return least
}
