package network

// canRise reports whether flow can be pushed over arc a from its tail to its
// head, and canFall whether back.
func (g *graph) canRise(a int32) bool { return g.state[a].flow < g.endOf(a) }
func (g *graph) canFall(a int32) bool { return g.state[a].flow > 0 }

// endOf returns the most that arc a can carry.
func (g *graph) endOf(a int32) float64 {
	if st := &g.state[a]; st.cost != nil {
		return st.cost.end()
	}
	return g.state[a].hi
}

// towardsRoot reports whether flow can be pushed from v to its parent.
func (g *graph) towardsRoot(v int32) bool {
	if g.isUp(v) {
		return g.canRise(g.nodes[v].pred)
	}
	return g.canFall(g.nodes[v].pred)
}

// mend makes the tree strongly feasible again where that was lost: polishing
// may leave arcs of the tree exactly at a bound. Nodes that cannot push flow to
// the root over the tree hang on any arc over which they can; there is one, as
// every flow can be taken back to a node with a bypass.
func (g *graph) mend() {
	root := g.root()
	parent, pred := make([]int32, root), make([]int32, root)
	sound := make([]bool, len(g.nodes))
	sound[root] = true
	broken := false
	queue := []int32{root}
	for v := g.thread[root]; v != root; v = g.thread[v] {
		x := &g.nodes[v]
		parent[v], pred[v] = x.parent, x.pred
		if sound[x.parent] && g.towardsRoot(v) {
			sound[v] = true
			queue = append(queue, v)
		} else {
			broken = true
		}
	}
	if !broken {
		return
	}
	at := g.incidence()
	attach := func(v, to, a int32) {
		if !sound[v] {
			sound[v], parent[v], pred[v] = true, to, a
			queue = append(queue, v)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		for _, a := range at[v] {
			switch x := &g.arcs[a]; {
			case x.head == v && g.canRise(a):
				attach(x.tail, v, a)
			case x.tail == v && g.canFall(a):
				attach(x.head, v, a)
			}
		}
	}
	for a := range g.arcs {
		g.rest(int32(a))
	}
	g.hang(parent, pred)
}

// incidence returns the arcs of each node, those of the tree first so that they
// stay in it.
func (g *graph) incidence() [][]int32 {
	at := make([][]int32, len(g.nodes))
	for _, tree := range []bool{true, false} {
		for a := range g.arcs {
			if x := &g.arcs[a]; g.inTree(int32(a)) == tree {
				at[x.tail] = append(at[x.tail], int32(a))
				at[x.head] = append(at[x.head], int32(a))
			}
		}
	}
	return at
}
