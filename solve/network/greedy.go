package network

import "math"

// shortlist is how many of the cheapest engines of each source are arcs from
// the start. A few suffice: prices are nearly right then, and arcs that are not
// there cannot lead pivots astray while they become so.
const shortlist = 4

// longlist is how many are at hand to fill: a source looks at all of its pairs
// only when these ask for more than the rest could.
const longlist = 16

// fullness is the part of an engine's limit that the start may fill: room
// above it keeps the first tree strongly feasible.
const fullness = 1 - 1e-6

// greedy fills engines, each source from its cheapest engine on: up to the load
// that the start price of the engine asks for, and beyond that in portions,
// for which it asks its marginal.
type greedy struct {
	*builder
	asking []float64 // price of each engine's next portion
	next   []float64 // that portion
	room   []float64 // room left above each cap and group node
	first  int32     // first arc of the source at hand
}

// portionsPerLimit is how many portions an engine's limit has.
const portionsPerLimit = 32

// start makes the first arcs, flows and tree from prices of engines and a list
// of the cheapest pairs of each source.
func (b *builder) start(prices []float64, long *offers) {
	gr := b.newGreedy()
	for e, sink := range b.sinks {
		if sink != nil {
			_, target, _ := sink.load(prices[e])
			gr.asking[e], gr.next[e] = prices[e], min(target, fullness*sink.limit)
		}
	}
	gr.passSupply()
	for _, i := range bySize(len(b.Sources), func(s int) int { return b.Row[s] - b.Row[s+1] }) {
		s := int32(i) // those with the least choice first
		gr.first = int32(len(b.arcs))
		list := long.of(s)
		for _, o := range list[:min(len(list), shortlist)] {
			gr.addPair(s, o.k, 0)
		}
		rest := math.Inf(1) // the least that any other pair asks for
		if len(list) == long.most {
			rest = list[long.most-1].price
		}
		refused := b.supply[s] * b.refused(s)
		gr.fill(s, b.supply[s]-refused, list, rest)
		b.state[b.bypass[s]].flow += refused
	}
	b.addStays()
	b.spanTree()
}

// refused returns which part of the supply of source s the start refuses: those
// that share what bypasses refuse all the same, as far as limits ask for it.
func (b *builder) refused(s int32) float64 {
	if b.fairTo == nil || b.Sources[s].Priority != *b.fairTo {
		return 0
	}
	return b.shortPart
}

// newGreedy returns a greedy whose engines take nothing yet.
func (b *builder) newGreedy() *greedy {
	gr := &greedy{builder: b, asking: make([]float64, len(b.Engines)),
		next: make([]float64, len(b.Engines)), room: make([]float64, b.rootNode())}
	for e := range gr.asking {
		gr.asking[e] = math.Inf(1)
	}
	for c := range b.Caps {
		gr.room[b.capNode(c)] = fullness * b.capRoom[c]
	}
	for i := range b.Groups {
		gr.room[b.group(i)] = b.program.room[i]
	}
	return gr
}

// addStays makes arcs of all pairs with a stay term: pricing of rows does not
// see what they save.
func (b *builder) addStays() {
	if b.Stay == nil {
		return
	}
	for s := range b.Sources {
		for k := b.Row[s]; k < b.Row[s+1]; k++ {
			if b.Stay[k] > 0 && !b.isActive(k) {
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
			limit := fullness*gr.sinks[e].limit - gr.state[gr.ownArc[v]].flow
			take := max(0, min(flow, limit, gr.roomAbove(v)))
			gr.place(e, take)
			flow -= take
		}
		gr.state[gr.bypass[v]].flow += flow
	}
}

// place leads flow from an engine to the root.
func (gr *greedy) place(e int32, flow float64) {
	v := gr.engine(e)
	st := &gr.state[gr.ownArc[v]]
	st.flow += flow
	for c := gr.above[v]; c != gr.rootNode(); c = gr.above[c] {
		gr.room[c] -= flow
		gr.state[gr.ownArc[c]].flow += flow
	}
	if gr.next[e] -= flow; gr.next[e] <= 0 {
		gr.ask(e)
	}
}

// ask sets the next portion of an engine and its price by what it carries.
func (gr *greedy) ask(e int32) {
	sink, flow := gr.sinks[e], gr.state[gr.ownArc[gr.engine(e)]].flow
	gr.next[e] = min(sink.limit/portionsPerLimit, fullness*sink.limit-flow)
	gr.asking[e] = math.Inf(1)
	if gr.next[e] > 0 {
		left, _ := sink.sides(flow + gr.next[e])
		gr.asking[e] = left
	}
}

// roomAbove returns the least room of the caps around engine node v.
func (gr *greedy) roomAbove(v int32) float64 {
	room := math.Inf(1)
	for c := gr.above[v]; c != gr.rootNode(); c = gr.above[c] {
		room = min(room, gr.room[c])
	}
	return room
}

// fill routes what is left of the supply of source s to whichever pair asks for
// the least. The long list has its cheapest pairs at the start prices, and all
// others ask for rest or more; engines only ever ask for more than that.
func (gr *greedy) fill(s int32, left float64, long []offer, rest float64) {
	for left > 0 {
		k, price := -1, math.Inf(1)
		for _, o := range long {
			if v := gr.CostMs[o.k]*gr.perWork[s] + gr.asking[gr.Col[o.k]]; v < price && gr.roomOf(s, s, o.k) > 0 {
				k, price = o.k, v
			}
		}
		if price > rest {
			k = gr.cheapestNow(s)
		}
		if k < 0 {
			break
		}
		a := gr.arcOf(k)
		if a < 0 {
			a = gr.addPair(s, k, 0)
		}
		flow := gr.route(s, s, k, a, left)
		if flow <= 0 {
			break
		}
		left -= flow
	}
	gr.state[gr.bypass[s]].flow = max(0, left)
}

// arcOf returns the arc of pair k of the source at hand, or -1.
func (gr *greedy) arcOf(k int) int32 {
	if !gr.isActive(k) {
		return -1
	}
	for i, pair := range gr.pairs[gr.first-gr.firstPair:] {
		if pair == k {
			return gr.first + int32(i)
		}
	}
	return -1
}

// cheapestNow returns the pair of source s that asks for the least, or -1.
func (gr *greedy) cheapestNow(s int32) int {
	best, least := -1, math.Inf(1)
	for k := gr.Row[s]; k < gr.Row[s+1]; k++ {
		if v := gr.CostMs[k]*gr.perWork[s] + gr.asking[gr.Col[k]]; v < least && gr.roomOf(s, s, k) > 0 {
			best, least = k, v
		}
	}
	return best
}

// roomOf returns how much pair k of source s can take from it or from one of its
// groups, but for what its engine still takes.
func (gr *greedy) roomOf(s, from int32, k int) float64 {
	room := gr.roomAbove(gr.engine(gr.Col[k]))
	if gr.Upper != nil {
		room = min(room, gr.upper(s, k))
		if a := gr.arcOf(k); a >= 0 {
			room -= gr.state[a].flow
		}
	}
	for t := gr.tail(s, k); t != from; t = gr.above[t] {
		room = min(room, gr.room[t])
	}
	return room
}

// route leads up to most from source s or one of its groups over pair k, no more
// than the engine's next portion, and returns how much it was.
func (gr *greedy) route(s, from int32, k int, a int32, most float64) float64 {
	e := gr.Col[k]
	flow := min(most, gr.next[e], gr.roomOf(s, from, k))
	if flow <= 0 {
		return 0
	}
	gr.state[a].flow += flow
	for t := gr.tail(s, k); t != from; t = gr.above[t] {
		gr.room[t] -= flow
		gr.state[gr.ownArc[t]].flow += flow
	}
	gr.place(e, flow)
	return flow
}
