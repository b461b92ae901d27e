package network

import "math"

// arc is what pricing reads of an arc: one more unit on it costs up, one unit
// less saves down. Both are the slope in the basis; up is +Inf at the upper
// end and down -Inf at 0.
type arc struct {
	tail, head int32
	up, down   float64
}

// arcState is the rest of an arc: its flow, in [lo, hi] where its slope stays
// the same, and where it is bent, its cost.
type arcState struct {
	flow, lo, hi float64
	cost         bend // nil: straight, [lo, hi] is its whole domain
}

// node is a node of the spanning tree, which hangs from the root. Nodes in
// thread order are a preorder walk: the subtree of v is v and the size-1 nodes
// after it, to last (Ahuja, Magnanti, Orlin, Network Flows, section 11.3).
type node struct {
	parent, pred int32 // pred is the arc to parent, in either direction
	last, size   int32
}

// graph is a network in scaled units with a spanning tree as its basis. Every
// node but the root, which is the last, has a fixed supply; the root takes all.
type graph struct {
	inflow []float64 // per node but the root
	arcs   []arc
	state  []arcState
	nodes  []node
	thread []int32   // next and previous node in preorder, circular; apart from
	back   []int32   // nodes because price shifts follow it
	prices []float64 // what a unit costs from each node to the root

	turns []turn // scratch of pivot
	steps int    // pivots so far
}

func newGraph(inflow []float64) *graph {
	return &graph{inflow: inflow, nodes: make([]node, len(inflow)+1),
		thread: make([]int32, len(inflow)+1), back: make([]int32, len(inflow)+1), prices: make([]float64, len(inflow)+1)}
}

// reserve makes room for arcs.
func (g *graph) reserve(arcs int) {
	g.arcs, g.state = make([]arc, 0, arcs), make([]arcState, 0, arcs)
}

func (g *graph) root() int32 { return int32(len(g.nodes) - 1) }

// addStraight appends an arc of one slope with flow in [0, upper], outside the
// basis.
func (g *graph) addStraight(tail, head int32, slope, upper, flow float64) int32 {
	g.arcs = append(g.arcs, arc{tail: tail, head: head, up: slope, down: slope})
	g.state = append(g.state, arcState{flow: flow, hi: upper})
	a := int32(len(g.arcs) - 1)
	g.rest(a)
	return a
}

// addBent appends an arc with a bent cost, outside the basis.
func (g *graph) addBent(tail, head int32, cost bend, flow float64) int32 {
	g.arcs = append(g.arcs, arc{tail: tail, head: head})
	g.state = append(g.state, arcState{flow: flow, cost: cost})
	a := int32(len(g.arcs) - 1)
	g.rest(a)
	return a
}

// rest sets both slopes of an arc that is outside the basis. A flow at its end
// within rounding is put there.
func (g *graph) rest(a int32) {
	x, st := &g.arcs[a], &g.state[a]
	if g.ends(a, 0, true) {
		st.flow = g.endOf(a)
	}
	if st.cost == nil {
		slope := x.up
		if math.IsInf(slope, 1) {
			slope = x.down
		}
		x.up, x.down = slope, slope
		if st.flow >= st.hi {
			x.up = math.Inf(1)
		}
		if st.flow <= 0 {
			x.down = math.Inf(-1)
		}
		return
	}
	x.up, x.down = math.Inf(1), math.Inf(-1)
	if _, _, slope, ok := st.cost.segment(st.flow, true); ok {
		x.up = slope
	}
	if _, _, slope, ok := st.cost.segment(st.flow, false); ok {
		x.down = slope
	}
}

// join makes arc a part of the basis: at a breakpoint it takes the segment in
// which its flow can move towards the root, which keeps the tree strongly
// feasible (Ahuja, Magnanti, Orlin, section 11.5).
func (g *graph) join(a int32, towardsRoot bool) {
	x, st := &g.arcs[a], &g.state[a]
	if st.cost == nil {
		slope := x.up
		if math.IsInf(slope, 1) {
			slope = x.down
		}
		x.up, x.down = slope, slope
		return
	}
	lo, hi, slope, ok := st.cost.segment(st.flow, towardsRoot)
	if !ok {
		lo, hi, slope, _ = st.cost.segment(st.flow, !towardsRoot)
	}
	st.lo, st.hi, x.up, x.down = lo, hi, slope, slope
}

// isUp reports whether the arc of v to its parent leaves v.
func (g *graph) isUp(v int32) bool { return g.arcs[g.nodes[v].pred].tail == v }

// hang builds the tree from parents: pred[v] joins v to parent[v]. Children
// hang in order of node. Prices are set from the slopes of the basis.
func (g *graph) hang(parent, pred []int32) {
	n := int32(len(g.nodes))
	root := g.root()
	first, sibling := make([]int32, n), make([]int32, n)
	for i := range first {
		first[i], sibling[i] = -1, -1
	}
	for v := root - 1; v >= 0; v-- {
		sibling[v], first[parent[v]] = first[parent[v]], v
	}
	order := make([]int32, 0, n)
	stack := []int32{root}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		order = append(order, v)
		mark := len(stack)
		for c := first[v]; c >= 0; c = sibling[c] {
			stack = append(stack, c)
		}
		for i, j := mark, len(stack)-1; i < j; i, j = i+1, j-1 {
			stack[i], stack[j] = stack[j], stack[i]
		}
	}
	for i, v := range order {
		x := &g.nodes[v]
		*x = node{parent: -1, pred: -1, size: 1, last: v}
		g.thread[v] = order[(i+1)%len(order)]
		g.back[v] = order[(i+len(order)-1)%len(order)]
		if v != root {
			x.parent, x.pred = parent[v], pred[v]
			g.join(x.pred, g.isUp(v))
		}
	}
	for i := len(order) - 1; i > 0; i-- {
		v := order[i]
		p := &g.nodes[g.nodes[v].parent]
		p.size += g.nodes[v].size
		if p.last == g.nodes[v].parent {
			p.last = g.nodes[v].last
		}
	}
	g.reprice()
}

// reprice computes all prices from the slopes of the basis; the root's is 0.
func (g *graph) reprice() {
	root := g.root()
	g.prices[root] = 0
	for v := g.thread[root]; v != root; v = g.thread[v] {
		x := &g.nodes[v]
		slope := g.arcs[x.pred].up
		if !g.isUp(v) {
			slope = -slope
		}
		g.prices[v] = g.prices[x.parent] + slope
	}
}

// reflow computes the flows of the basis from the supplies and all other flows
// by elimination of leaves, into want, one per node; size is the sum of what
// was added up for it, without signs: the scale of its rounding.
func (g *graph) reflow(want, size []float64) {
	copy(want, g.inflow)
	root := g.root()
	want[root] = 0
	for v := range g.inflow {
		size[v] = math.Abs(g.inflow[v])
	}
	for a := range g.arcs {
		x := &g.arcs[a]
		if f := g.state[a].flow; f != 0 && !g.inTree(int32(a)) {
			want[x.tail] -= f
			want[x.head] += f
			size[x.tail] += f
			size[x.head] += f
		}
	}
	for v := g.back[root]; v != root; v = g.back[v] {
		p := g.nodes[v].parent
		want[p] += want[v]
		size[p] += size[v]
		if !g.isUp(v) {
			want[v] = -want[v]
		}
	}
}

func (g *graph) inTree(a int32) bool {
	x := &g.arcs[a]
	return g.nodes[x.tail].pred == a || g.nodes[x.head].pred == a
}
