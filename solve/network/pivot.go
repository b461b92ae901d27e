package network

import "math"

// turn is a bent arc on the cycle of a pivot and how far the flow around the
// cycle may grow until that arc meets its next breakpoint.
type turn struct {
	a    int32
	at   float64
	grow bool // its flow grows with the flow around the cycle
	side
}

// side says where an arc of a cycle is: the node below it, and whether that is
// between k and the apex.
type side struct {
	below   int32
	onKSide bool
}

// cycle is what a pivot pushes flow around: from k over the entering arc to l,
// up to apex, and down to k again.
type cycle struct {
	enter int32
	k, l  int32
	apex  int32
	slope float64 // of the cost of the cycle, < 0
	theta float64 // flow that is pushed
	block int32   // the arc that leaves
	side
}

// pivot brings arc a into the basis. Flow is pushed around its cycle through
// the breakpoints of bent arcs for as long as that lowers the cost (a long
// step), then the arc that stopped it leaves.
//
// No cycling: the leaving arc is the last blocking one in the direction of the
// push from the apex, which keeps the tree strongly feasible. Hence a pivot
// with no flow to push blocks between k and the apex, and lowers the prices of
// the nodes between there and k by more than the tolerance of pricing; only
// finitely many such pivots can follow each other (Cunningham 1976). All other
// pivots lower the cost.
func (g *graph) pivot(a int32) {
	c := g.orient(a)
	g.findApex(&c)
	g.block(&c)
	g.longStep(&c)
	g.push(&c)
	g.exchange(&c)
	g.steps++
}

// orient chooses the direction in which arc a lowers the cost.
func (g *graph) orient(a int32) cycle {
	x := &g.arcs[a]
	drop := g.prices[x.tail] - g.prices[x.head]
	c := cycle{enter: a, k: x.tail, l: x.head, slope: x.up - drop}
	if drop-x.down < c.slope {
		c.k, c.l, c.slope = x.head, x.tail, drop-x.down
	}
	if st := &g.state[a]; st.cost != nil {
		st.lo, st.hi, _, _ = st.cost.segment(st.flow, c.k == x.tail)
	}
	return c
}

func (g *graph) findApex(c *cycle) {
	u, v := c.k, c.l
	for u != v {
		if g.nodes[u].size < g.nodes[v].size {
			u = g.nodes[u].parent
		} else {
			v = g.nodes[v].parent
		}
	}
	c.apex = u
}

// block finds the arc that limits the push if no slope ever changes, and
// collects the bent arcs of the cycle.
func (g *graph) block(c *cycle) {
	g.turns = g.turns[:0]
	c.theta, c.block = math.Inf(1), -1
	for v := c.k; v != c.apex; v = g.nodes[v].parent {
		// Met from k upwards, so the first of equal ones is the last in the
		// direction of the push.
		at := side{v, true}
		if room := g.room(g.nodes[v].pred, !g.isUp(v), at); room < c.theta {
			c.theta, c.block, c.side = room, g.nodes[v].pred, at
		}
	}
	if room := g.room(c.enter, g.arcs[c.enter].tail == c.k, side{}); room <= c.theta {
		c.theta, c.block = room, c.enter
	}
	for v := c.l; v != c.apex; v = g.nodes[v].parent {
		at := side{v, false}
		if room := g.room(g.nodes[v].pred, g.isUp(v), at); room <= c.theta {
			c.theta, c.block, c.side = room, g.nodes[v].pred, at
		}
	}
}

// room returns how far the flow of arc a can change until the end of its
// domain. A bent arc is noted for the long step.
func (g *graph) room(a int32, grow bool, where side) float64 {
	st := &g.state[a]
	end := st.hi
	if st.cost != nil {
		at := st.flow - st.lo
		if grow {
			at = st.hi - st.flow
		}
		g.turns = append(g.turns, turn{a, at, grow, where})
		end = st.cost.end()
	}
	if grow {
		return end - st.flow
	}
	return st.flow
}

// longStep finds the breakpoint at which the slope of the cycle is no longer
// negative, if that comes before the blocking arc.
func (g *graph) longStep(c *cycle) {
	for len(g.turns) > 0 {
		t := &g.turns[0]
		for i := range g.turns {
			if g.turns[i].at < t.at {
				t = &g.turns[i]
			}
		}
		if t.at >= c.theta {
			return
		}
		st := &g.state[t.a]
		y := st.lo
		if t.grow {
			y = st.hi
		}
		lo, hi, slope, ok := st.cost.segment(y, t.grow)
		if !ok {
			t.at = math.Inf(1) // the end of the domain, a breakpoint within rounding
			continue
		}
		_, _, from, _ := st.cost.segment(y, !t.grow)
		c.slope += math.Abs(slope - from)
		if c.slope >= 0 {
			c.theta, c.block, c.side = t.at, t.a, t.side
			return
		}
		st.lo, st.hi = lo, hi
		t.at += hi - lo
	}
}

// push moves the flow, and shifts prices below bent arcs that came to another
// segment.
func (g *graph) push(c *cycle) {
	if c.theta > 0 {
		for v := c.k; v != c.apex; v = g.nodes[v].parent {
			g.move(g.nodes[v].pred, c.theta, !g.isUp(v))
		}
		for v := c.l; v != c.apex; v = g.nodes[v].parent {
			g.move(g.nodes[v].pred, c.theta, g.isUp(v))
		}
		g.move(c.enter, c.theta, g.arcs[c.enter].tail == c.k)
	}
	g.settle(c)
	for _, t := range g.turns {
		if t.a != c.block && t.a != c.enter {
			g.bendTo(t.a, t.below)
		}
	}
}

// move changes a flow by theta. What rounding leaves of a difference is 0.
func (g *graph) move(a int32, theta float64, grow bool) {
	st := &g.state[a]
	if grow {
		st.flow += theta
		return
	}
	st.flow -= theta
	if st.flow < roundoff*theta {
		st.flow = 0
	}
}

const roundoff = 1e-15

// settle puts the leaving arc exactly at its bound or breakpoint.
func (g *graph) settle(c *cycle) {
	st := &g.state[c.block]
	if c.theta <= 0 {
		return
	}
	lo, hi := st.lo, st.hi
	if st.cost == nil {
		lo = 0
	}
	if st.flow-lo < hi-st.flow {
		st.flow = lo
	} else {
		st.flow = hi
	}
}

// bendTo takes the segment of the bent basic arc a above v at its present flow.
func (g *graph) bendTo(a, v int32) {
	x := &g.arcs[a]
	old, up := x.up, x.tail == v
	g.join(a, up)
	if up {
		g.shift(v, x.up-old)
	} else {
		g.shift(v, old-x.up)
	}
}

// exchange swaps the leaving arc for the entering one in the tree.
func (g *graph) exchange(c *cycle) {
	if c.block == c.enter {
		g.rest(c.enter)
		return
	}
	in, at := c.l, c.k
	if c.onKSide {
		in, at = c.k, c.l
	}
	g.rehang(c.below, in, at, c.enter)
	g.rest(c.block)
	up := g.isUp(in)
	g.join(c.enter, up)
	slope := g.arcs[c.enter].up
	if !up {
		slope = -slope
	}
	g.shift(in, g.prices[at]+slope-g.prices[in])
}
