package pool

import (
	"maps"
	"slices"

	"github.com/irb-project/irb/solve/model"
)

// Expand turns the solution of the smaller problem into one of the whole: a
// flow is divided among sources by demand and among engines equally.
func (p *Pooling) Expand(x *model.Solution) *model.Solution {
	m := p.whole
	out := *x
	out.Flows = p.expandFlows(x.Flows)
	out.ServedRPS = make([]float64, len(m.Sources))
	out.SourcePriceMs = make([]float64, len(m.Sources))
	for i, list := range p.sources {
		for _, s := range list {
			out.ServedRPS[s] = x.ServedRPS[i] * p.part(i, s)
			out.SourcePriceMs[s] = x.SourcePriceMs[i]
		}
	}
	out.EnginePrice = p.expandPrices(x.EnginePrice)
	out.PrefillPrice, out.OutputPrice = p.expandPrices(x.PrefillPrice), p.expandPrices(x.OutputPrice)
	out.ShedCuts = slices.Clone(x.ShedCuts)
	for i := range out.ShedCuts {
		c := &out.ShedCuts[i]
		c.Sources, c.Engines = expandAll(c.Sources, p.sources), expandAll(c.Engines, p.engines)
	}
	return &out
}

// expandPrices gives each engine the price of its pool; nil stays nil.
func (p *Pooling) expandPrices(price []float64) []float64 {
	if price == nil {
		return nil
	}
	out := make([]float64, len(p.whole.Engines))
	for i, list := range p.engines {
		for _, e := range list {
			out[e] = price[i]
		}
	}
	return out
}

// part returns what part of merged source i is source s of the whole.
func (p *Pooling) part(i int, s int32) float64 {
	return p.whole.Sources[s].DemandRPS / p.Sources[i].DemandRPS
}

func (p *Pooling) expandFlows(flows []model.Flow) []model.Flow {
	var out []model.Flow
	i := 0
	for _, f := range flows {
		for f.Pair >= p.Row[i+1] {
			i++
		}
		pool := p.engines[p.Col[f.Pair]]
		for _, s := range p.sources[i] {
			rps := f.RPS * p.part(i, s) / float64(len(pool))
			for _, e := range pool {
				out = append(out, model.Flow{Pair: p.pairOf(s, e), RPS: rps})
			}
		}
	}
	slices.SortFunc(out, func(a, b model.Flow) int { return a.Pair - b.Pair })
	return out
}

// pairOf returns the pair of a source and an engine of the whole.
func (p *Pooling) pairOf(s, e int32) int {
	lo, hi := p.whole.Row[s], p.whole.Row[s+1]
	i, _ := slices.BinarySearch(p.whole.Col[lo:hi], e)
	return lo + i
}

// ExpandError names all members of what cannot be served.
func (p *Pooling) ExpandError(x *model.Infeasible) *model.Infeasible {
	out := *x
	out.Sources, out.Engines = expandAll(x.Sources, p.sources), expandAll(x.Engines, p.engines)
	out.Pairs = nil
	for _, k := range x.Pairs {
		i, _ := slices.BinarySearch(p.Row, k+1)
		for _, s := range p.sources[i-1] {
			for _, e := range p.engines[p.Col[k]] {
				out.Pairs = append(out.Pairs, p.pairOf(s, e))
			}
		}
	}
	slices.Sort(out.Pairs)
	return &out
}

func expandAll(list []int, members [][]int32) []int {
	var out []int
	for _, i := range list {
		for _, x := range members[i] {
			out = append(out, int(x))
		}
	}
	slices.Sort(out)
	return out
}

// Gather adds up flows of the whole, in order of pair, to flows of the pools.
func (p *Pooling) Gather(flows []model.Flow) []model.Flow {
	engine := make([]int32, len(p.whole.Engines))
	for i, list := range p.engines {
		for _, e := range list {
			engine[e] = int32(i)
		}
	}
	source := make([]int, len(p.whole.Sources))
	for i, list := range p.sources {
		for _, s := range list {
			source[s] = i
		}
	}
	sum := make(map[int]float64, len(flows))
	s := 0
	for _, f := range flows {
		for f.Pair >= p.whole.Row[s+1] {
			s++
		}
		i := source[s]
		lo, hi := p.Row[i], p.Row[i+1]
		j, _ := slices.BinarySearch(p.Col[lo:hi], engine[p.whole.Col[f.Pair]])
		sum[lo+j] += f.RPS
	}
	out := make([]model.Flow, 0, len(sum))
	for _, k := range slices.Sorted(maps.Keys(sum)) {
		out = append(out, model.Flow{Pair: k, RPS: sum[k]})
	}
	return out
}
