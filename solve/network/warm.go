package network

import (
	"math"
	"slices"

	"github.com/irb-project/irb/solve/model"
)

// A warm start takes the flows of a plan of nearly the same problem: each
// source spreads its present supply as it did then. What does not fit any more
// goes where it is cheapest. The pairs in use are nearly those of the optimum,
// and so nearly its basis: the first tree is a spanning tree over them, and
// the polish finds the loads and prices of that tree at once.

// startFrom makes the first arcs, flows and tree from the flows of a plan, in
// order of pair.
func (b *builder) startFrom(plan []model.Flow) {
	gr := b.newGreedy()
	for e, sink := range b.sinks {
		if sink != nil {
			gr.next[e] = fullness * sink.limit
		}
	}
	gr.passSupply()
	asked := b.asked()
	left, first := make([]float64, len(b.Sources)), make([]int32, len(b.Sources))
	next := 0 // in plan
	for s := range b.Sources {
		from := next
		total := 0.0
		for ; next < len(plan) && plan[next].Pair < b.Row[s+1]; next++ {
			total += b.aboveLower(plan[next])
		}
		left[s] = b.supply[s]
		gr.first = int32(len(b.arcs))
		first[s] = gr.first
		for _, f := range plan[from:next] {
			if flow := b.aboveLower(f); flow > 0 && asked[s] > 0 {
				left[s] -= gr.lead(int32(s), f.Pair, flow/total*asked[s], left[s])
			}
		}
	}
	for e, sink := range b.sinks {
		if sink != nil {
			gr.ask(int32(e))
		}
	}
	for s := range b.Sources {
		if left[s] <= roundoff*b.supply[s] {
			left[s] = 0
		}
		gr.first = first[s]
		gr.fill(int32(s), left[s], nil, math.Inf(-1))
	}
	b.addStays()
	b.spanTree()
}

// isWorth reports whether a plan is a good start: it must route most of what is
// to be served, and where soft choices make a start nearly all of it.
func (p *program) isWorth(plan []model.Flow) bool {
	left := p.asked()
	total := 0.0
	for _, flow := range left {
		total += flow
	}
	s := 0
	for _, f := range plan {
		for f.Pair >= p.Row[s+1] {
			s++
		}
		left[s] -= p.aboveLower(f) * p.perRPS[s]
	}
	stray := 0.0
	for _, flow := range left {
		stray += math.Abs(flow)
	}
	if p.isCool() && p.Stay == nil {
		return stray < total*coolStray
	}
	return stray < total/2
}

// asked returns what sources feed in, with what minimums of their groups do.
func (p *program) asked() []float64 {
	flow := slices.Clone(p.supply[:len(p.Sources)])
	for i, g := range p.Groups {
		flow[g.Source] += p.supply[p.group(i)]
	}
	return flow
}

// aboveLower returns the part of a flow that its lower bound does not force.
func (p *program) aboveLower(f model.Flow) float64 { return max(0, f.RPS-p.lower(f.Pair)) }

// lead makes pair k of source s an arc with as much of flow as there is room
// for: what minimums of its groups feed in first, then up to left of the source's
// own. It returns how much of its own it was.
func (gr *greedy) lead(s int32, k int, flow, left float64) float64 {
	if !(flow > 0) || gr.sinks[gr.Col[k]] == nil {
		return 0
	}
	a := gr.addPair(s, k, 0)
	for t := gr.tail(s, k); t != s; t = gr.above[t] {
		waits := &gr.state[gr.bypass[t]].flow
		sent := gr.route(s, t, k, a, min(flow, *waits))
		*waits -= sent
		flow -= sent
	}
	return gr.route(s, s, k, a, min(flow, left))
}

// previous returns the flows of the plan before, scaled to present demand: what
// the stay terms would keep.
func previous(m *model.Problem) []model.Flow {
	var flows []model.Flow
	for k, stay := range m.Stay {
		if stay > 0 && !math.IsInf(stay, 1) {
			flows = append(flows, model.Flow{Pair: k, RPS: stay})
		}
	}
	return flows
}
