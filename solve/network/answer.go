package network

import (
	"slices"

	"github.com/irb-project/irb/solve/model"
)

// solution reads the answer off the graph, in original units.
func (b *builder) solution(cuts []model.ShedCut) *model.Solution {
	b.settle()
	p := b.program
	out := &model.Solution{
		Method: "network simplex", Iterations: b.steps, ShedCuts: cuts,
		ServedRPS:     make([]float64, len(p.Sources)),
		SourcePriceMs: make([]float64, len(p.Sources)),
		EnginePrice:   make([]float64, len(p.Engines)),
		GroupPriceMs:  make([]float64, len(p.Groups)),
		CapPrice:      make([]float64, len(p.Caps)),
	}
	price := func(v int32) float64 { return b.prices[v] * p.priceUnit }
	b.flows(out)
	for s := range p.Sources {
		out.SourcePriceMs[s] = price(int32(s)) * p.Sources[s].Work
	}
	for e := range p.Engines {
		if p.sinks[e] != nil {
			v := p.engine(int32(e))
			out.EnginePrice[e] = price(v) - price(p.above[v])
		}
	}
	for c := range p.Caps {
		v := p.capNode(c)
		out.CapPrice[c] = price(v) - price(p.above[v])
	}
	for i := range p.Groups {
		v := p.group(i)
		out.GroupPriceMs[i] = (price(p.above[v]) - price(v)) * p.Sources[p.Groups[i].Source].Work
		if !p.lifted[i] {
			// Its pairs are at their own lower bounds, which hold the group up.
			out.GroupPriceMs[i] = max(0, out.GroupPriceMs[i])
		}
	}
	return out
}

func (b *builder) flows(out *model.Solution) {
	for k := range b.lowerPairs() {
		out.Flows = append(out.Flows, model.Flow{Pair: k, RPS: b.Lower[k]})
	}
	for i, k := range b.pairs {
		a := b.firstPair + int32(i)
		if flow := b.state[a].flow; flow > 0 {
			s := b.sourceOf(b.arcs[a].tail)
			out.Flows = append(out.Flows, model.Flow{Pair: k, RPS: flow / b.perRPS[s]})
		}
	}
	slices.SortStableFunc(out.Flows, func(x, y model.Flow) int { return x.Pair - y.Pair })
	merged := out.Flows[:0]
	for _, f := range out.Flows {
		if n := len(merged); n > 0 && merged[n-1].Pair == f.Pair {
			merged[n-1].RPS += f.RPS
			continue
		}
		merged = append(merged, f)
	}
	out.Flows = merged
	s := 0
	for _, f := range merged {
		for f.Pair >= b.Row[s+1] {
			s++
		}
		out.ServedRPS[s] += f.RPS
	}
}

// sourceOf returns the source above a group node.
func (p *program) sourceOf(v int32) int32 {
	if v >= p.group(0) {
		return int32(p.Groups[v-p.group(0)].Source)
	}
	return v
}
