package network

// exchangeAt takes the blocked arc above v from the tree and puts in the
// smooth arc that leaves from below v whose flow would change the most.
func (p *polisher) exchangeAt(c int, v int32) {
	a := p.nodes[v].pred
	st := &p.state[a]
	lo, hi := p.span(a)
	if st.flow-lo < hi-st.flow {
		st.flow = lo
	} else {
		st.flow = hi
	}
	below := make([]bool, len(p.nodes))
	for u, n := v, p.nodes[v].size; n > 0; n-- {
		below[u] = true
		u = p.thread[u]
	}
	best := p.mostChanged(p.out[c], below)
	if best < 0 {
		best = p.mostChanged(p.curved, below) // those within the component too
	}
	if best < 0 {
		return
	}
	p.rehang(v, p.arcs[best].tail, p.arcs[best].head, best)
	p.rest(a)
	p.join(best, true)
}

// mostChanged returns the arc outside the tree that leaves from below to
// elsewhere whose flow would change the most, or -1.
func (p *polisher) mostChanged(arcs []int32, below []bool) int32 {
	best, most := int32(-1), 0.0
	for _, a := range arcs {
		if !below[p.arcs[a].tail] || below[p.arcs[a].head] || p.inTree(a) {
			continue
		}
		lo, hi, _ := p.smoothOf(a).load(p.drop(a))
		if d := max(lo-p.state[a].flow, p.state[a].flow-hi); d > most {
			best, most = a, d
		}
	}
	return best
}
