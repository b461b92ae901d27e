package network

import (
	"cmp"
	"slices"
)

// spanTree builds a tree as a spanning one over the arcs within their bounds: those
// of routes before those of engines, large flows and much room before small.
func (b *builder) spanTree() {
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
	_, below, _, _ := st.cost.segment(st.flow, false)
	_, above, _, _ := st.cost.segment(st.flow, true)
	return below == above // the same piece
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
