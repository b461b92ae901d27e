package network

import "math"

// builder turns a program into a graph: first the arcs that every graph has,
// then pairs as pricing asks for them.
type builder struct {
	*program
	*graph
	progress  func(stage string)
	flowOnly  bool     // costs are 0 but for the bypass: a maximum flow
	fairTo    *int     // priority whose sources share what bypasses; nil: none
	shortPart float64  // part of their supply beyond all limits together
	bigPrice  float64  // of the bypass
	final     float64  // tolerance at the end
	ownArc    []int32  // arc above each engine, cap and group node; -1: none
	bypass    []int32  // arc from a node to the root at bigPrice; -1: none
	firstPair int32    // arcs from here on are pairs
	pairs     []int    // their pairs
	active    []uint64 // bit set of pairs that are arcs
	smooth    []int32  // arcs with a grid
}

// gridPerLimit is how many pieces the first grid has up to an engine's limit.
const gridPerLimit = 16

func newBuilder(p *program, flowOnly bool, fairTo *int) *builder {
	b := &builder{program: p, flowOnly: flowOnly, fairTo: fairTo, graph: newGraph(p.supply),
		active: make([]uint64, (p.Pairs()+63)/64), progress: func(string) {}}
	switch {
	case fairTo != nil:
		b.bigPrice = 4 // above 1, what refusing all of a source costs
	case flowOnly:
		b.bigPrice = 1
	default:
		b.bigPrice = 8 * p.dearest
	}
	b.final = max(finalTolerance, priceRounding*b.bigPrice)
	n := int(p.rootNode())
	b.graph.reserve(2*n + 2*shortlist*len(p.Sources))
	b.ownArc, b.bypass = make([]int32, n), make([]int32, n)
	for v := range int32(n) {
		b.ownArc[v], b.bypass[v] = -1, -1
	}
	for e, sink := range p.sinks {
		v := p.engine(int32(e))
		switch {
		case sink == nil:
		case flowOnly:
			b.ownArc[v] = b.addStraight(v, p.above[v], 0, sink.limit, 0)
		default:
			b.ownArc[v] = b.addSmooth(v, p.above[v], sink, 0)
		}
	}
	for c := range p.Caps {
		v := p.capNode(c)
		b.ownArc[v] = b.addStraight(v, p.above[v], 0, p.capRoom[c], 0)
	}
	for i := range p.Groups {
		v := p.group(i)
		b.ownArc[v] = b.addStraight(p.above[v], v, 0, p.room[i], 0)
	}
	for v := range int32(n) {
		if v < p.engine(0) || v >= p.group(0) || p.supply[v] > 0 || b.ownArc[v] < 0 {
			b.bypass[v] = b.addBypass(v)
		}
	}
	b.firstPair = int32(len(b.arcs))
	if fairTo != nil {
		b.shortPart = p.shortPart(*fairTo)
	}
	return b
}

// shortPart returns which part of the supply of the sources of a priority all
// limits together leave no room for.
func (p *program) shortPart(priority int) float64 {
	supply := 0.0
	for s := range p.Sources {
		if p.Sources[s].Priority == priority {
			supply += p.supply[s]
		}
	}
	if supply <= 0 {
		return 0
	}
	return min(1, max(0, p.over()/supply))
}

// over returns how much more supply there is than all engines may take, < 0 if
// there is less.
func (p *program) over() float64 {
	total := 0.0
	for _, s := range p.supply {
		total += s
	}
	for _, sink := range p.sinks {
		if sink != nil {
			total -= sink.limit
		}
	}
	return total
}

// addBypass appends the arc from node v past everything. To be fair to the
// sources of a priority it costs them half the square of the part of their
// demand that takes it, times their demand: the least sum of squares has equal
// parts wherever that is possible.
func (b *builder) addBypass(v int32) int32 {
	if v < b.engine(0) && b.fairTo != nil && b.Sources[v].Priority == *b.fairTo && b.supply[v] > 0 {
		demand := b.Sources[v].DemandRPS * b.perRPS[v]
		limit := 2 * demand // never reached
		return b.addSmooth(v, b.rootNode(), &smooth{limit: limit, pieces: []slopePiece{{hi: limit, rise: 1 / demand}}}, 0)
	}
	return b.addStraight(v, b.rootNode(), b.bigPrice, math.Inf(1), 0)
}

// addSmooth appends an arc with a smooth cost.
func (b *builder) addSmooth(tail, head int32, cost *smooth, flow float64) int32 {
	a := b.addBent(tail, head, &grid{smooth: cost, even: true, step: cost.limit / gridPerLimit}, flow)
	b.smooth = append(b.smooth, a)
	return a
}

// churnTie is the least penalty of leaving, in final tolerances: of plans that
// cost the same the one that moves least is taken. It adds no more than itself
// to the gap.
const churnTie = 20

// addPair makes pair k of source s an arc with a flow and returns it.
func (b *builder) addPair(s int32, k int, flow float64) int32 {
	b.active[k/64] |= 1 << (k % 64)
	b.pairs = append(b.pairs, k)
	tail, head := b.tail(s, k), b.engine(b.Col[k])
	slope, upper := b.CostMs[k]*b.perWork[s], b.upper(s, k)
	if !b.flowOnly && b.Stay != nil && b.Stay[k] > 0 {
		kept := (b.Stay[k] - b.lower(k)) * b.perRPS[s]
		penalty := max(churnTie*b.final, b.StayPenaltyMs[k]*b.perWork[s])
		switch {
		case kept >= upper:
			slope -= penalty
		case kept > 0:
			return b.addBent(tail, head, &stay{kept: kept, limit: upper, below: slope - penalty, above: slope}, flow)
		}
	}
	return b.addStraight(tail, head, slope, upper, flow)
}

func (b *builder) isActive(k int) bool { return b.active[k/64]&(1<<(k%64)) != 0 }
