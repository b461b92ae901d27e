package network

// shift adds delta to the prices of the subtree of v, or takes it from all
// others if they are fewer: only differences of prices count until reprice. It
// walks from both ends, as each step waits for the memory of the one before.
func (g *graph) shift(v int32, delta float64) {
	if delta == 0 {
		return
	}
	first, last, n := v, g.nodes[v].last, g.nodes[v].size
	if 2*n > int32(len(g.nodes)) {
		first, last, n, delta = g.thread[last], g.back[v], int32(len(g.nodes))-n, -delta
	}
	for ; n > 1; n -= 2 {
		g.prices[first] += delta
		g.prices[last] += delta
		first, last = g.thread[first], g.back[last]
	}
	if n > 0 {
		g.prices[first] += delta
	}
}

// rehang cuts the subtree of out from its parent, makes its node in the new
// top of it, and hangs that on at by arc pred. The work is the length of the
// path from in to out plus the depths of out and at.
func (g *graph) rehang(out, in, at, pred int32) {
	g.cut(out)
	size := g.nodes[out].size
	tail := g.turnOver(out, in)
	top := &g.nodes[in]
	top.parent, top.pred, top.size = at, pred, size

	after := g.thread[at]
	g.link(at, in)
	g.link(tail, after)
	for v := at; v >= 0; v = g.nodes[v].parent {
		g.nodes[v].size += size
	}
	for v := at; v >= 0 && g.nodes[v].last == at; v = g.nodes[v].parent {
		g.nodes[v].last = tail
	}
}

func (g *graph) link(a, b int32) {
	g.thread[a] = b
	g.back[b] = a
}

// cut takes the subtree of out from the thread and from the sizes and last
// nodes of its ancestors.
func (g *graph) cut(out int32) {
	x := &g.nodes[out]
	before, end := g.back[out], x.last
	g.link(before, g.thread[end])
	for v := x.parent; v >= 0; v = g.nodes[v].parent {
		g.nodes[v].size -= x.size
	}
	for v := x.parent; v >= 0 && g.nodes[v].last == end; v = g.nodes[v].parent {
		g.nodes[v].last = before
	}
}

// turnOver makes in the top of the cut subtree of out: each node on the path
// from in to out becomes a child of the one before it. The new preorder is the
// subtree of in, then for each node of the path what is left of its subtree.
// It returns the last node of that order.
func (g *graph) turnOver(out, in int32) int32 {
	total := g.nodes[out].size
	child, childEnd := in, g.nodes[in].last
	childBack, childNext := g.back[in], g.thread[childEnd]
	tail := childEnd
	v, pred, below := g.nodes[in].parent, g.nodes[in].pred, g.nodes[in].size
	if in == out {
		return tail
	}
	for {
		x := &g.nodes[v]
		end, back, next := x.last, g.back[v], childNext
		if end != childEnd {
			next = g.thread[end]
		}
		g.link(tail, v)
		tail = childBack // v to childBack is a run of the old order
		if end != childEnd {
			g.link(tail, childNext)
			tail = end
		}
		up, upPred, size := x.parent, x.pred, x.size
		x.parent, x.pred, x.size = child, pred, total-below
		if v == out {
			break
		}
		child, childEnd, childBack, childNext = v, end, back, next
		v, pred, below = up, upPred, size
	}
	// Everything after a node of the path hangs below it now.
	for u := out; ; u = g.nodes[u].parent {
		g.nodes[u].last = tail
		if u == in {
			return tail
		}
	}
}
