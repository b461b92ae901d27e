package network

import "math"

// shortlist is how many of the cheapest engines of each source are arcs from
// the start.
const shortlist = 8

// fullness is the part of an engine's limit that the start may fill: room
// above it keeps the first tree strongly feasible.
const fullness = 1 - 1e-6

// greedy fills engines up to the load that their price asks for, each source
// from its cheapest engine on, then up to their limits, then past everything.
type greedy struct {
	*builder
	target []float64 // room left per engine
	rest   []float64 // room left between target and limit
	room   []float64 // room left above each cap and group node
}

// start makes the first arcs, flows and tree from prices of engines and a
// shortlist of pairs.
func (b *builder) start(prices []float64, short *offers) {
	gr := &greedy{builder: b, target: make([]float64, len(b.Engines)),
		rest: make([]float64, len(b.Engines)), room: make([]float64, b.rootNode())}
	for e, sink := range b.sinks {
		if sink == nil {
			continue
		}
		_, target, _ := sink.load(prices[e])
		limit := fullness * sink.limit
		gr.target[e] = min(target, limit)
		gr.rest[e] = limit - gr.target[e]
	}
	for c := range b.Caps {
		gr.room[b.capNode(c)] = fullness * b.capRoom[c]
	}
	for i := range b.Groups {
		gr.room[b.group(i)] = b.program.room[i]
	}
	gr.passSupply()
	for s := range b.Sources {
		gr.fill(int32(s), short.of(int32(s)))
	}
	b.addStays()
	b.crash()
}

// addStays makes arcs of all pairs with a stay term: pricing of rows does not
// see what they save.
func (b *builder) addStays() {
	if b.Stay == nil {
		return
	}
	for s := range b.Sources {
		for k := b.Row[s]; k < b.Row[s+1]; k++ {
			if b.Stay[k] > 0 && !b.isActive(k) && b.sinks[b.Col[k]] != nil {
				b.addPair(int32(s), k, 0)
			}
		}
	}
}

// passSupply leads what lower bounds moved to engines, caps and groups on to
// the root.
func (gr *greedy) passSupply() {
	for v := gr.engine(0); v < gr.rootNode(); v++ {
		flow := gr.supply[v]
		if flow <= 0 {
			continue
		}
		if v < gr.capNode(0) && gr.ownArc[v] >= 0 {
			e := v - gr.engine(0)
			take := max(0, min(flow, gr.target[e]+gr.rest[e], gr.roomAbove(v)))
			gr.place(e, take)
			gr.state[gr.ownArc[v]].flow += take
			gr.carry(gr.above[v], take)
			flow -= take
		}
		gr.state[gr.bypass[v]].flow += flow
	}
}

// place takes room from an engine, below its target first.
func (gr *greedy) place(e int32, flow float64) {
	first := min(flow, gr.target[e])
	gr.target[e] -= first
	gr.rest[e] -= flow - first
}

// roomAbove returns the least room of the caps around engine node v.
func (gr *greedy) roomAbove(v int32) float64 {
	room := math.Inf(1)
	for c := gr.above[v]; c != gr.rootNode(); c = gr.above[c] {
		room = min(room, gr.room[c])
	}
	return room
}

// carry adds flow on the arcs of cap node c and those around it.
func (gr *greedy) carry(c int32, flow float64) {
	for ; c != gr.rootNode(); c = gr.above[c] {
		gr.room[c] -= flow
		gr.state[gr.ownArc[c]].flow += flow
	}
}

// fill routes the supply of source s over its shortlist.
func (gr *greedy) fill(s int32, offers []offer) {
	arcs := make([]int32, len(offers))
	left := gr.supply[s]
	for pass := range 2 {
		for i, o := range offers {
			if pass == 0 {
				arcs[i] = gr.addPair(s, o.k, 0)
			}
			if left <= 0 {
				continue
			}
			e := gr.Col[o.k]
			room := gr.target[e]
			if pass == 1 {
				room += gr.rest[e]
			}
			flow := min(left, room, gr.roomAbove(gr.engine(e)), gr.roomOf(s, o.k, arcs[i]))
			if flow > 0 {
				gr.route(s, o.k, arcs[i], flow)
				left -= flow
			}
		}
	}
	gr.state[gr.bypass[s]].flow = left
}

// roomOf returns the room of the groups of a pair and of the pair itself.
func (gr *greedy) roomOf(s int32, k int, a int32) float64 {
	room := gr.upper(s, k) - gr.state[a].flow
	for t := gr.tail(s, k); t != s; t = gr.above[t] {
		room = min(room, gr.room[t])
	}
	return room
}

func (gr *greedy) route(s int32, k int, a int32, flow float64) {
	e := gr.Col[k]
	gr.state[a].flow += flow
	for t := gr.tail(s, k); t != s; t = gr.above[t] {
		gr.room[t] -= flow
		gr.state[gr.ownArc[t]].flow += flow
	}
	gr.place(e, flow)
	gr.state[gr.ownArc[gr.engine(e)]].flow += flow
	gr.carry(gr.above[gr.engine(e)], flow)
}

// crash builds the first tree: every engine and cap hangs on its own arc,
// every source and group on the arc with the largest flow that still has room
// towards the root.
func (b *builder) crash() {
	n := b.rootNode()
	parent, pred := make([]int32, n), make([]int32, n)
	most := make([]float64, n)
	for v := range n {
		pred[v], parent[v], most[v] = b.bypass[v], n, -1
		if v >= b.engine(0) && v < b.group(0) && b.ownArc[v] >= 0 && b.bypassFlow(v) == 0 {
			pred[v], parent[v] = b.ownArc[v], b.above[v]
		}
		if flow := b.bypassFlow(v); flow > 0 {
			most[v] = math.Inf(1)
		}
	}
	for a := range b.arcs {
		x, st := &b.arcs[a], &b.state[a]
		own := x.tail >= b.engine(0) && x.tail < b.group(0)
		if own || x.head == n || st.flow <= most[x.tail] || st.flow >= b.endOf(int32(a)) {
			continue
		}
		most[x.tail], parent[x.tail], pred[x.tail] = st.flow, x.head, int32(a)
	}
	for a := range b.arcs {
		b.rest(int32(a))
	}
	b.hang(parent, pred)
}

func (b *builder) bypassFlow(v int32) float64 {
	if b.bypass[v] < 0 {
		return 0
	}
	return b.state[b.bypass[v]].flow
}
