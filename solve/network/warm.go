package network

import (
	"cmp"
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
			if flow := b.aboveLower(f); flow > 0 && b.supply[s] > 0 {
				left[s] -= gr.lead(int32(s), f.Pair, min(left[s], flow/total*b.supply[s]))
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
	b.span()
}

// isWorth reports whether a plan is a good start: it must route most of the work,
// and where soft choices make a start nearly all of it as it is now.
func (p *program) isWorth(plan []model.Flow) bool {
	planned := make([]float64, len(p.Sources))
	s := 0
	for _, f := range plan {
		for f.Pair >= p.Row[s+1] {
			s++
		}
		planned[s] += f.RPS
	}
	total, stray := 0.0, 0.0
	for s := range p.Sources {
		total += p.Sources[s].DemandRPS * p.Sources[s].Work
		stray += math.Abs(p.Sources[s].DemandRPS-planned[s]) * p.Sources[s].Work
	}
	if p.isCool() && p.Stay == nil {
		return stray < total*coolStray
	}
	return stray < total/2
}

// aboveLower returns the part of a flow that its lower bound does not force.
func (b *builder) aboveLower(f model.Flow) float64 {
	if b.Lower == nil {
		return f.RPS
	}
	return max(0, f.RPS-b.Lower[f.Pair])
}

// lead makes pair k of source s an arc with as much of flow as there is room
// for, and returns that.
func (gr *greedy) lead(s int32, k int, flow float64) float64 {
	if !(flow > 0) || gr.sinks[gr.Col[k]] == nil {
		return 0
	}
	return gr.route(s, k, gr.addPair(s, k, 0), flow)
}

// span builds a tree as a spanning one over the arcs within their bounds: those
// of routes before those of engines, large flows and much room before small.
func (b *builder) span() {
	var links []link
	for a := range b.arcs {
		if l, ok := b.linkOf(int32(a)); ok {
			links = append(links, l)
		}
	}
	slices.SortStableFunc(links, func(x, y link) int {
		return cmp.Or(cmp.Compare(x.class, y.class), cmp.Compare(y.size, x.size))
	})
	set := newSets(len(b.nodes))
	at := make([][]int32, len(b.nodes))
	for _, l := range links {
		x := &b.arcs[l.a]
		if set.join(x.tail, x.head) {
			at[x.tail], at[x.head] = append(at[x.tail], l.a), append(at[x.head], l.a)
		}
	}
	root := b.graph.root()
	parent, pred := make([]int32, root), make([]int32, root)
	seen := make([]bool, len(b.nodes))
	seen[root] = true
	for queue := []int32{root}; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		for _, a := range at[v] {
			u := b.arcs[a].tail + b.arcs[a].head - v
			if !seen[u] {
				seen[u], parent[u], pred[u] = true, v, a
				queue = append(queue, u)
			}
		}
	}
	for a := range b.arcs {
		b.rest(int32(a))
	}
	b.hang(parent, pred)
}

// link is an arc that a spanning tree may take: lower classes first.
type link struct {
	a     int32
	class int
	size  float64
}

func (b *builder) linkOf(a int32) (l link, ok bool) {
	x, flow := &b.arcs[a], b.state[a].flow
	room := b.endOf(a) - flow
	l = link{a: a, class: 0, size: min(flow, room)}
	switch {
	case b.bypass[x.tail] == a:
		if flow == 0 {
			l.class = 3
		}
	case x.tail >= b.engine(0) && x.tail < b.capNode(0):
		l.class, l.size = 1, room/b.endOf(a)
	case flow > 0 && room > 0 && b.isBetween(a):
	case flow > 0 && room > 0:
		l.class = 2 // at a breakpoint: one such arc per source will do
	case x.tail >= b.capNode(0) && x.tail < b.group(0):
		l.class = 2
	default:
		return l, false
	}
	return l, true
}

// isBetween reports whether a flow is not at a breakpoint of a bent cost.
func (b *builder) isBetween(a int32) bool {
	st := &b.state[a]
	if st.cost == nil {
		return true
	}
	_, above, _, _ := st.cost.segment(st.flow, false)
	_, below, _, _ := st.cost.segment(st.flow, true)
	return above == below
}

// sets are disjoint sets of nodes.
type sets []int32

func newSets(n int) sets {
	s := make(sets, n)
	for i := range s {
		s[i] = int32(i)
	}
	return s
}

func (s sets) find(v int32) int32 {
	for s[v] != v {
		s[v] = s[s[v]]
		v = s[v]
	}
	return v
}

// join puts the sets of two nodes together, and reports false if they are one.
func (s sets) join(u, v int32) bool {
	u, v = s.find(u), s.find(v)
	s[u] = v
	return u != v
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
