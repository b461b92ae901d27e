package network

// polisher moves engine loads from the breakpoints of the grid to where the
// true marginals agree with the prices of the tree.
//
// Arcs of one slope in the tree fix the differences of prices inside a
// component; one shift per component is free. The shift at which the loads
// F'^-1(price) of its engines take exactly what enters the component is the
// optimum over all flows on the present arcs of the tree.
type polisher struct {
	*builder
	part   []int32   // component of each node; 0 is the root's
	offset []float64 // price of each node less the shift of its component
	shift  []float64 // per component
	enter  []float64 // per component: what it must lead to its engines
	sinks  [][]int32 // per component: engines in it with capacity
	before []float64 // per engine: load before
	want   []float64 // per node: flow of its tree arc after
	basic  []bool    // per engine: its own arc is in the tree
}

func newPolisher(b *builder) *polisher {
	n := len(b.nodes)
	return &polisher{builder: b, part: make([]int32, n), offset: make([]float64, n),
		before: make([]float64, len(b.Engines)), want: make([]float64, n), basic: make([]bool, len(b.Engines))}
}

// polish moves towards the optimum on the present tree. It stops where an arc
// of the tree would go beyond a bound: that arc leaves for the own arc of an
// engine, and another try is made, at most tries in all. It reports whether it
// arrived; prices are then exact.
func (b *builder) polish(tries int) bool {
	p := newPolisher(b)
	for range tries {
		p.split()
		for c := 1; c < len(p.shift); c++ {
			p.shift[c] = balance(p.shift[c], func(x float64) (least, most, growth float64) {
				return p.excess(c, x)
			})
		}
		p.aim()
		if p.advance() {
			p.setPrices()
			return true
		}
	}
	return false
}

// split finds the components.
func (p *polisher) split() {
	root := p.graph.root()
	p.shift = append(p.shift[:0], 0)
	p.enter = append(p.enter[:0], 0)
	p.sinks = append(p.sinks[:0], nil)
	for e := range p.basic {
		p.basic[e] = false
	}
	p.part[root], p.offset[root] = 0, 0
	for v := p.nodes[root].thread; v != root; v = p.nodes[v].thread {
		x := &p.nodes[v]
		if e := p.engineOf(x.pred); e >= 0 {
			p.basic[e] = true
			p.part[v], p.offset[v] = int32(len(p.shift)), 0
			p.shift = append(p.shift, p.prices[v]-p.prices[root])
			p.enter = append(p.enter, 0)
			p.sinks = append(p.sinks, nil)
		} else {
			slope := p.arcs[x.pred].up
			if !p.isUp(v) {
				slope = -slope
			}
			p.part[v], p.offset[v] = p.part[x.parent], p.offset[x.parent]+slope
		}
		c := p.part[v]
		p.enter[c] += p.inflow[v]
		if e := v - p.engine(0); e >= 0 && e < int32(len(p.Engines)) && p.ownArc[v] >= 0 {
			p.sinks[c] = append(p.sinks[c], e)
			p.before[e] = p.state[p.ownArc[v]].flow
		}
	}
	for a := range p.arcs {
		x := &p.arcs[a]
		if f := p.state[a].flow; f != 0 && p.engineOf(int32(a)) < 0 && !p.inTree(int32(a)) {
			p.enter[p.part[x.tail]] -= f
			p.enter[p.part[x.head]] += f
		}
	}
}

// engineOf returns the engine whose own arc a is, or -1.
func (p *polisher) engineOf(a int32) int32 {
	if e := p.arcs[a].tail - p.engine(0); a < p.firstPair && e >= 0 && e < int32(len(p.Engines)) && p.ownArc[p.arcs[a].tail] == a {
		return e
	}
	return -1
}

// excess returns by how much the loads of component c at a shift exceed what
// enters it: the least and the most, and how fast that grows.
func (p *polisher) excess(c int, shift float64) (least, most, growth float64) {
	least, most = -p.enter[c], -p.enter[c]
	for _, e := range p.sinks[c] {
		lo, hi, g := p.program.sinks[e].load(p.priceAt(e, shift))
		least, most, growth = least+lo, most+hi, growth+g
	}
	return least, most, growth
}

// priceAt returns the marginal delay that engine e has if its component is
// shifted.
func (p *polisher) priceAt(e int32, shift float64) float64 {
	v := p.engine(e)
	return p.offset[v] + shift - p.nodePrice(p.above[v])
}

func (p *polisher) nodePrice(v int32) float64 { return p.offset[v] + p.shift[p.part[v]] }

// aim sets the loads of engines outside the tree to what their prices ask for
// and computes the flows of the tree that follow.
func (p *polisher) aim() {
	for c := range p.sinks {
		for _, e := range p.sinks[c] {
			if st := &p.state[p.ownArc[p.engine(e)]]; !p.basic[e] {
				lo, hi, _ := p.program.sinks[e].load(p.priceAt(e, p.shift[c]))
				st.flow = min(max(st.flow, lo), hi)
			}
		}
	}
	p.reflow(p.want)
}

// advance goes as far towards the aim as bounds allow and reports whether it
// arrived.
func (p *polisher) advance() bool {
	part := make([]float64, len(p.shift)) // how far each component may go
	block := make([]int32, len(p.shift))
	for c := range part {
		part[c], block[c] = 1, -1
	}
	root := p.graph.root()
	for v := p.nodes[root].thread; v != root; v = p.nodes[v].thread {
		st := &p.state[p.nodes[v].pred]
		lo, hi := 0.0, st.hi
		switch st.cost.(type) {
		case *grid:
			hi = st.cost.end()
		case *stay:
			lo = st.lo
		}
		c := p.part[v]
		if t := reach(st.flow, p.want[v], lo, hi); t < part[c] {
			part[c], block[c] = t, v
		}
	}
	p.moveTo(part)
	arrived := true
	for c, v := range block {
		if v >= 0 {
			arrived = false
			p.drop(c, v)
		}
	}
	return arrived
}

// reach returns which part of the way from one flow to another stays within
// [lo, hi].
func reach(from, to, lo, hi float64) float64 {
	slack := 1e-14 * max(from, to)
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
	for v := p.nodes[root].thread; v != root; v = p.nodes[v].thread {
		st := &p.state[p.nodes[v].pred]
		t := part[p.part[v]]
		st.flow = max(0, st.flow+t*(p.want[v]-st.flow))
		if t == 1 {
			st.flow = max(0, p.want[v])
		}
	}
	for c := range p.sinks {
		for _, e := range p.sinks[c] {
			if st := &p.state[p.ownArc[p.engine(e)]]; !p.basic[e] && part[c] < 1 {
				st.flow = p.before[e] + part[c]*(st.flow-p.before[e])
			}
		}
	}
}

// drop takes the blocked arc above v from the tree and puts in the own arc of
// the engine below v whose load would change the most.
func (p *polisher) drop(c int, v int32) {
	a := p.nodes[v].pred
	st := &p.state[a]
	lo := 0.0
	if _, ok := st.cost.(*stay); ok {
		lo = st.lo
	}
	if st.flow-lo < st.hi-st.flow {
		st.flow = lo
	} else {
		st.flow = st.hi
	}
	best, most := int32(-1), -1.0
	u := v
	for range p.nodes[v].size {
		if e := u - p.engine(0); int(p.part[u]) == c && e >= 0 && e < int32(len(p.Engines)) && p.ownArc[u] >= 0 && !p.basic[e] {
			lo, hi, _ := p.program.sinks[e].load(p.priceAt(e, p.shift[c]))
			load := p.state[p.ownArc[u]].flow
			if d := max(lo-load, load-hi); d > most {
				best, most = u, d
			}
		}
		u = p.nodes[u].thread
	}
	if best < 0 {
		return
	}
	p.rehang(v, best, p.above[best], p.ownArc[best])
	p.rest(a)
	p.join(p.ownArc[best], true)
}

func (p *polisher) setPrices() {
	for v := range p.nodes {
		p.prices[v] = p.nodePrice(int32(v))
	}
}

// regrid puts every engine's breakpoints where its load is, step apart: for an
// engine outside the tree on it, for one in the tree on both sides, so that
// its slope is its marginal.
func (b *builder) regrid(shrink float64) {
	for e, g := range b.grids {
		if g == nil {
			continue
		}
		a := b.ownArc[b.engine(int32(e))]
		g.step *= shrink
		g.origin = b.state[a].flow
		if b.inTree(a) {
			g.origin -= g.step / 2
		}
	}
	for e, g := range b.grids {
		if g == nil {
			continue
		}
		if a := b.ownArc[b.engine(int32(e))]; b.inTree(a) {
			b.join(a, true)
		} else {
			b.rest(a)
		}
	}
	b.reprice()
}
