package network

import "math"

// polisher moves the flows of smooth arcs from the breakpoints of their grids
// to where their true marginals agree with the prices of the tree.
//
// Arcs of one slope in the tree (routes, and engines with a flat profile) fix the
// differences of prices inside a component; one shift per component is free. The
// shifts at which the flows F'^-1(price) of the smooth arcs balance what enters
// each component are the optimum over all flows on the present tree.
type polisher struct {
	*builder
	curved []int32   // smooth arcs but those of the tree whose slope stays the same
	part   []int32   // component of each node; 0 is the root's
	offset []float64 // price of each node less the shift of its component
	shift  []float64 // per component
	enter  []float64 // per component: what its smooth arcs must lead out
	out    [][]int32 // per component: smooth arcs that leave it
	in     [][]int32 // and that enter it from others; 0 has none listed
	before []float64 // per node: flow of its smooth arc before
	want   []float64 // per node: flow of its tree arc after
	size   []float64 // per node: scale of the rounding of want
	gross  []float64 // per component: scale of the rounding of enter
}

// polish moves towards the optimum on the present tree. It stops where an arc
// of the tree would go beyond a bound: that arc leaves for a smooth arc, and
// another try is made, at most tries in all. It reports whether it arrived;
// prices are then exact.
func (b *builder) polish(tries int) bool {
	p := newPolisher(b)
	for range tries {
		p.split()
		p.balance()
		p.aim()
		if p.advance() {
			p.setPrices()
			return true
		}
	}
	return false
}

func newPolisher(b *builder) *polisher {
	n := len(b.nodes)
	return &polisher{builder: b, part: make([]int32, n), offset: make([]float64, n),
		before: make([]float64, n), want: make([]float64, n), size: make([]float64, n)}
}

func (b *builder) smoothOf(a int32) *smooth {
	if g, ok := b.state[a].cost.(*grid); ok {
		return g.smooth
	}
	return nil
}

// isFlat reports whether the slope of a smooth arc stays the same around its
// flow, which is in its present segment.
func (b *builder) isFlat(a int32) bool {
	c := b.smoothOf(a)
	return c.ps == 0 && c.pieces[c.piece(b.state[a].lo, true)].rise == 0
}

// isCurved reports whether arc a of the tree has a slope that grows with its
// flow.
func (b *builder) isCurved(a int32) bool { return b.smoothOf(a) != nil && !b.isFlat(a) }

// rounding is the part of a sum that may be lost in it.
const rounding = 1e-14

// split finds the components.
func (p *polisher) split() {
	root := p.graph.root()
	p.curved = p.curved[:0]
	for _, a := range p.smooth {
		if !p.inTree(a) || !p.isFlat(a) {
			p.curved = append(p.curved, a)
		}
	}
	p.shift, p.enter, p.gross = append(p.shift[:0], 0), append(p.enter[:0], 0), append(p.gross[:0], 0)
	p.part[root], p.offset[root] = 0, 0
	for v := p.thread[root]; v != root; v = p.thread[v] {
		x := &p.nodes[v]
		if p.isCurved(x.pred) {
			p.part[v], p.offset[v] = int32(len(p.shift)), 0
			p.shift = append(p.shift, p.graph.prices[v]-p.graph.prices[root])
			p.enter = append(p.enter, 0)
			p.gross = append(p.gross, 0)
		} else {
			slope := p.arcs[x.pred].up
			if !p.isUp(v) {
				slope = -slope
			}
			p.part[v], p.offset[v] = p.part[x.parent], p.offset[x.parent]+slope
		}
		p.enter[p.part[v]] += p.inflow[v]
		p.gross[p.part[v]] += math.Abs(p.inflow[v])
	}
	p.out, p.in = make([][]int32, len(p.shift)), make([][]int32, len(p.shift))
	for _, a := range p.curved {
		from, to := p.part[p.arcs[a].tail], p.part[p.arcs[a].head]
		if from != to { // else its price is fixed
			p.out[from] = append(p.out[from], a)
			if to != 0 {
				p.in[to] = append(p.in[to], a)
			}
		}
		p.before[p.arcs[a].tail] = p.state[a].flow
	}
	for a := range p.arcs {
		x := &p.arcs[a]
		if f := p.state[a].flow; f != 0 && p.part[x.tail] != p.part[x.head] && p.smoothOf(int32(a)) == nil {
			p.enter[p.part[x.tail]] -= f
			p.enter[p.part[x.head]] += f
			p.gross[p.part[x.tail]] += f
			p.gross[p.part[x.head]] += f
		}
	}
}

// balance finds the shifts.
func (p *polisher) balance() {
	c := p.newCoupling()
	for i := 1; i < len(p.shift); i++ {
		if c.index[i] < 0 {
			p.shift[i] = balance(p.shift[i], func(x float64) (least, most, growth float64) { return p.excess(i, x) })
		}
	}
	if len(c.comps) > 0 {
		c.solve()
	}
}

// excess returns by how much the flows out of component c at a shift exceed
// what enters it: the least and the most, and how fast that grows.
func (p *polisher) excess(c int, shift float64) (least, most, growth float64) {
	p.shift[c] = shift
	slack := rounding * p.gross[c]
	least, most = -p.enter[c]-slack, -p.enter[c]+slack
	for _, a := range p.out[c] {
		lo, hi, g := p.smoothOf(a).load(p.drop(a))
		least, most, growth = least+lo, most+hi, growth+g
	}
	for _, a := range p.in[c] {
		lo, hi, g := p.smoothOf(a).load(p.drop(a))
		least, most, growth = least-hi, most-lo, growth+g
	}
	return least, most, growth
}

// drop returns the price that arc a pays: its tail's less its head's.
func (p *polisher) drop(a int32) float64 {
	return p.nodePrice(p.arcs[a].tail) - p.nodePrice(p.arcs[a].head)
}

func (p *polisher) nodePrice(v int32) float64 { return p.offset[v] + p.shift[p.part[v]] }

// aim sets the flows of smooth arcs outside the tree to what their prices ask
// for, and computes the flows of the tree that follow.
func (p *polisher) aim() {
	for _, a := range p.curved {
		if st := &p.state[a]; !p.inTree(a) {
			lo, hi, _ := p.smoothOf(a).load(p.drop(a))
			st.flow = min(max(st.flow, lo), hi)
		}
	}
	p.reflow(p.want, p.size)
}

// advance goes as far towards the aim as bounds allow and reports whether it
// arrived. Components advance each on its own unless they feed each other.
func (p *polisher) advance() bool {
	part := make([]float64, len(p.shift)) // how far each component may go
	block := make([]int32, len(p.shift))
	for c := range part {
		part[c], block[c] = 1, -1
	}
	root := p.graph.root()
	for v := p.thread[root]; v != root; v = p.thread[v] {
		st := &p.state[p.nodes[v].pred]
		lo, hi := p.span(p.nodes[v].pred)
		c := p.part[v]
		if t := reach(st.flow, p.want[v], lo, hi, rounding*p.size[v]); t < part[c] {
			part[c], block[c] = t, v
		}
	}
	if len(p.Caps) > 0 {
		least := 0
		for c := range part {
			if part[c] < part[least] {
				least = c
			}
		}
		for c := range part {
			if part[c] = part[least]; c != least {
				block[c] = -1
			}
		}
	}
	p.moveTo(part)
	arrived := true
	for c, v := range block {
		if v >= 0 {
			arrived = false
			p.exchangeAt(c, v)
		}
	}
	return arrived
}

// span returns within which flows the slope of arc a stays, or for a smooth
// arc those of its domain.
func (p *polisher) span(a int32) (lo, hi float64) {
	st := &p.state[a]
	switch st.cost.(type) {
	case nil:
		return 0, st.hi
	case *grid:
		if !p.isFlat(a) {
			return 0, st.cost.end()
		}
	}
	return st.lo, st.hi
}

// reach returns which part of the way from one flow to another stays within
// [lo, hi], give or take slack.
func reach(from, to, lo, hi, slack float64) float64 {
	switch {
	case to < lo-slack:
		return max(0, (from-lo)/(from-to))
	case to > hi+slack:
		return max(0, (hi-from)/(to-from))
	}
	return 1
}

func (p *polisher) moveTo(part []float64) {
	root := p.graph.root()
	for v := p.thread[root]; v != root; v = p.thread[v] {
		st := &p.state[p.nodes[v].pred]
		t := part[p.part[v]]
		if t == 1 {
			// A bound within rounding is the bound: pivots must know.
			lo, hi := p.span(p.nodes[v].pred)
			slack := rounding * p.size[v]
			switch st.flow = p.want[v]; {
			case st.flow <= lo+slack:
				st.flow = lo
			case st.flow >= hi-slack:
				st.flow = hi
			}
		} else {
			st.flow = max(0, st.flow+t*(p.want[v]-st.flow))
		}
	}
	for _, a := range p.curved {
		v := p.arcs[a].tail
		if t := part[p.part[v]]; t < 1 && !p.inTree(a) {
			p.state[a].flow = p.before[v] + t*(p.state[a].flow-p.before[v])
		}
	}
}

func (p *polisher) setPrices() {
	for v := range p.nodes {
		p.graph.prices[v] = p.nodePrice(int32(v))
	}
}
