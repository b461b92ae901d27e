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
	order int     // how many bent arcs come before it, on the way from k
	side
}

// pivot brings arc a into the basis. Flow is pushed around its cycle through
// the breakpoints of bent arcs for as long as that lowers the cost (a long
// step), by more than tolerance per unit, then the arc that stopped it leaves.
//
// No cycling: the leaving arc is the last blocking one in the direction of the
// push from the apex, which keeps the tree strongly feasible. Hence a pivot
// with no flow to push blocks between k and the apex. There, on the way from k
// to the apex, it goes through breakpoints one by one, and ends at the first
// arc that blocks or whose breakpoint makes the cycle not worth it: so the
// prices of all nodes that change their place in the tree fall by more than the
// tolerance, and no others change. Only finitely many such pivots can follow
// each other (Cunningham 1976). All other pivots lower the cost.
func (g *graph) pivot(a int32, tolerance float64) {
	c := g.orient(a)
	g.findApex(&c)
	g.block(&c)
	g.longStep(&c, tolerance)
	if c.theta > 0 {
		g.lastBlocked(&c)
	}
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

// block finds how far the push can go if no slope ever changes, and collects
// the bent arcs of the cycle.
func (g *graph) block(c *cycle) {
	g.turns = g.turns[:0]
	c.theta, c.block = math.Inf(1), -1
	see := func(a int32, grow bool, at side) {
		before := len(g.turns)
		if room := g.room(a, grow, at); room < c.theta {
			c.theta, c.block, c.order, c.side = room, a, before, at
		}
	}
	for v := c.k; v != c.apex; v = g.nodes[v].parent {
		see(g.nodes[v].pred, !g.isUp(v), side{v, true})
	}
	see(c.enter, g.arcs[c.enter].tail == c.k, side{})
	for v := c.l; v != c.apex; v = g.nodes[v].parent {
		see(g.nodes[v].pred, g.isUp(v), side{v, false})
	}
}

// lastBlocked chooses the arc that leaves among those that the push brings to
// the end of their domain: the last one in the direction of the push from the
// apex.
func (g *graph) lastBlocked(c *cycle) {
	block, at := int32(-1), side{}
	for v := c.k; v != c.apex && block < 0; v = g.nodes[v].parent {
		if g.ends(g.nodes[v].pred, c.theta, !g.isUp(v)) {
			block, at = g.nodes[v].pred, side{v, true}
		}
	}
	if g.ends(c.enter, c.theta, g.arcs[c.enter].tail == c.k) {
		block, at = c.enter, side{}
	}
	for v := c.l; v != c.apex; v = g.nodes[v].parent {
		if g.ends(g.nodes[v].pred, c.theta, g.isUp(v)) {
			block, at = g.nodes[v].pred, side{v, false}
		}
	}
	if block >= 0 {
		c.block, c.side = block, at
	}
}

// roundoff is the part of a flow that adding to it may lose.
const roundoff = 1e-15

// ends reports whether a push of theta brings arc a to the end of its domain,
// give or take rounding.
func (g *graph) ends(a int32, theta float64, grow bool) bool {
	flow := g.state[a].flow
	if !grow {
		return flow-theta <= roundoff*flow
	}
	end := g.endOf(a)
	return end-(flow+theta) <= roundoff*end && !math.IsInf(end, 1)
}

// room returns how far the flow of arc a can change until the end of its
// domain. A bent arc is noted for the long step.
func (g *graph) room(a int32, grow bool, where side) float64 {
	st := &g.state[a]
	if st.cost != nil {
		at := st.flow - st.lo
		if grow {
			at = st.hi - st.flow
		}
		g.turns = append(g.turns, turn{a, at, grow, where})
	}
	if grow {
		return max(0, g.endOf(a)-st.flow)
	}
	return st.flow
}

// longStep finds the breakpoint from which on the cycle is not worth the push, if
// that comes before the blocking arc. Where nothing can be pushed, before means
// nearer to k.
func (g *graph) longStep(c *cycle, tolerance float64) {
	for len(g.turns) > 0 {
		i := 0
		for j := range g.turns {
			if g.turns[j].at < g.turns[i].at {
				i = j
			}
		}
		t := &g.turns[i]
		if t.at > c.theta || t.at == c.theta && (t.at > 0 || i >= c.order) {
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
		if c.slope >= -tolerance {
			c.theta, c.block, c.side = t.at, t.a, t.side
			return
		}
		st.lo, st.hi = lo, hi
		t.at += hi - lo
	}
}

// push moves the flow.
func (g *graph) push(c *cycle) {
	if c.theta <= 0 {
		return
	}
	for v := c.k; v != c.apex; v = g.nodes[v].parent {
		g.move(g.nodes[v].pred, c.theta, !g.isUp(v))
	}
	for v := c.l; v != c.apex; v = g.nodes[v].parent {
		g.move(g.nodes[v].pred, c.theta, g.isUp(v))
	}
	g.move(c.enter, c.theta, g.arcs[c.enter].tail == c.k)
	g.settle(c)
}

// move changes a flow by theta; at the end of its domain it is exactly there.
func (g *graph) move(a int32, theta float64, grow bool) {
	st := &g.state[a]
	switch ends := g.ends(a, theta, grow); {
	case ends && grow:
		st.flow = g.endOf(a)
	case ends:
		st.flow = 0
	case grow:
		st.flow += theta
	default:
		st.flow -= theta
	}
}

// settle puts the leaving arc exactly at its bound or breakpoint.
func (g *graph) settle(c *cycle) {
	st := &g.state[c.block]
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

// exchange swaps the leaving arc for the entering one in the tree and sets the
// prices that follow.
func (g *graph) exchange(c *cycle) {
	in, at := c.l, c.k
	if c.onKSide {
		in, at = c.k, c.l
	}
	if c.block != c.enter {
		g.rehang(c.below, in, at, c.enter)
	}
	g.rest(c.block)
	// Only now: an arc that was turned over takes the segment in which it can
	// move towards the root the other way round.
	for _, t := range g.turns {
		if t.a != c.block && t.a != c.enter {
			g.bendTo(t.a)
		}
	}
	if c.block == c.enter {
		return
	}
	up := g.isUp(in)
	g.join(c.enter, up)
	slope := g.arcs[c.enter].up
	if !up {
		slope = -slope
	}
	g.shift(in, g.prices[at]+slope-g.prices[in])
}

// bendTo takes the segment of the bent arc a of the tree at its present flow.
func (g *graph) bendTo(a int32) {
	x := &g.arcs[a]
	v := x.tail
	up := g.nodes[v].pred == a
	if !up {
		v = x.head
	}
	old := x.up
	g.join(a, up)
	if up {
		g.shift(v, x.up-old)
	} else {
		g.shift(v, old-x.up)
	}
}
