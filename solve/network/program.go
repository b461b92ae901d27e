package network

import (
	"iter"
	"math"

	"github.com/irb-project/irb/solve/chunk"
	"github.com/irb-project/irb/solve/model"
)

// program is a Problem in the shape and the units of the graph. Nodes are
// sources, engines, caps, groups, root, in this order.
type program struct {
	*model.Problem
	flowUnit  float64   // work/s of one unit of flow, a power of two
	priceUnit float64   // ms per unit of work of one unit of price, a power of two
	perWork   []float64 // per source: CostMs[k] perWork = price units per unit of flow
	perRPS    []float64 // per source: units of flow of one req/s

	typical float64 // cost of a unit with delay, about
	dearest float64 // more than any pair and any load cost together, >= 1

	supply  []float64
	sinks   []*smooth // per engine, nil without capacity
	above   []int32   // node that takes what leaves an engine or a cap, or gives what a group gets
	capRoom []float64 // per cap
	room    []float64 // per group: most flow above its minimum
	lifted  []bool    // per group: its minimum asks for more than pairs' bounds do
	inner   []int     // groups, inner ones before those around them
	groupOf [][]int32 // per source: innermost group node of each of its pairs; nil: none
}

func (p *program) engine(e int32) int32 { return int32(len(p.Sources)) + e }
func (p *program) capNode(c int) int32  { return int32(len(p.Sources) + len(p.Engines) + c) }
func (p *program) group(i int) int32    { return p.capNode(len(p.Caps)) + int32(i) }
func (p *program) rootNode() int32      { return p.group(len(p.Groups)) }

// tail returns the node that pair k of source s leaves.
func (p *program) tail(s int32, k int) int32 {
	if t := p.groupOf[s]; t != nil {
		return t[k-p.Row[s]]
	}
	return s
}

// upper returns the most that pair k of source s takes above its lower bound.
func (p *program) upper(s int32, k int) float64 {
	if p.Upper == nil {
		return math.Inf(1)
	}
	return max(0, (p.Upper[k]-p.lower(k))*p.perRPS[s])
}

// lower returns the least that pair k takes, in req/s.
func (p *program) lower(k int) float64 {
	if p.Lower == nil {
		return 0
	}
	return p.Lower[k]
}

func newProgram(m *model.Problem) (*program, error) {
	p := &program{Problem: m, dearest: 1}
	p.scale()
	if err := p.nest(); err != nil {
		return nil, err
	}
	p.sinks = make([]*smooth, len(m.Engines))
	steepest := 0.0
	for e := range m.Engines {
		if m.Engines[e].Delay != nil && m.Engines[e].Limit > 0 {
			p.sinks[e] = newSmooth(m.Engines[e].Delay, p.flowUnit, p.priceUnit)
			top, _ := p.sinks[e].sides(p.sinks[e].limit)
			steepest = max(steepest, top)
		}
	}
	p.dearest += steepest
	p.capRoom = make([]float64, len(m.Caps))
	for c := range m.Caps {
		p.capRoom[c] = m.Caps[c].MaxWork / p.flowUnit
	}
	p.addSupply()
	return p, nil
}

// scale chooses units in which a mean source has supply 1 and costs are about 1
// on average at its cheapest engine without delay. The objective is not below
// that, so tolerances in this unit are relative to it. Powers of two, so that
// scaling is exact.
func (p *program) scale() {
	work, cost := 0.0, 0.0
	least, most := p.costRanges()
	for s := range p.Sources {
		work += p.Sources[s].Work * p.Sources[s].DemandRPS
		if least[s] <= most[s] {
			cost += least[s] * p.Sources[s].DemandRPS
		}
	}
	delay := 0.0
	for e := range p.Engines {
		if d := p.Engines[e].Delay; d != nil {
			_, half := d.Marginal(d.Limit / 2)
			delay += half * work / float64(len(p.Engines))
		}
	}
	p.flowUnit = powerOfTwo(work / float64(max(1, len(p.Sources))))
	p.priceUnit = powerOfTwo(cost / work)
	if cost == 0 {
		p.priceUnit = powerOfTwo(delay / work)
	}
	p.typical = max(1, (cost+delay)/work/p.priceUnit)
	p.perWork = make([]float64, len(p.Sources))
	p.perRPS = make([]float64, len(p.Sources))
	for s := range p.Sources {
		p.perWork[s] = 1 / (p.Sources[s].Work * p.priceUnit)
		p.perRPS[s] = p.Sources[s].Work / p.flowUnit
		p.dearest = max(p.dearest, most[s]*p.perWork[s])
	}
}

// costRanges returns the least and the most that any pair of each source costs,
// in ms per request, penalties of leaving included in the most.
func (p *program) costRanges() (least, most []float64) {
	least, most = make([]float64, len(p.Sources)), make([]float64, len(p.Sources))
	chunk.Each(p.Row, func(_, from, to int) {
		for s := from; s < to; s++ {
			lo, hi, penalty := math.Inf(1), math.Inf(-1), 0.0
			for _, c := range p.CostMs[p.Row[s]:p.Row[s+1]] {
				lo, hi = min(lo, c), max(hi, c)
			}
			if p.StayPenaltyMs != nil {
				for _, c := range p.StayPenaltyMs[p.Row[s]:p.Row[s+1]] {
					penalty = max(penalty, c)
				}
			}
			least[s], most[s] = lo, hi+penalty
		}
	})
	return least, most
}

// powerOfTwo returns the power of two next below x > 0, 1 for anything else.
func powerOfTwo(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 1) {
		return 1
	}
	_, e := math.Frexp(x)
	return math.Ldexp(1, e-1)
}

// addSupply sets what each node feeds in. What a lower bound demands is moved
// in advance: it enters at the far end of its arc.
func (p *program) addSupply() {
	p.supply = make([]float64, p.rootNode())
	for s := range p.Sources {
		p.supply[s] = p.Sources[s].DemandRPS * p.perRPS[s]
	}
	moved := make([]float64, len(p.Groups)) // through each group
	advance := func(s, from, to int32, flow float64) {
		p.supply[to] += flow
		p.supply[s] -= flow
		for t := from; t != s; t = p.above[t] {
			moved[t-p.group(0)] += flow
		}
	}
	for k, s := range p.lowerPairs() {
		advance(s, p.tail(s, k), p.engine(p.Col[k]), p.Lower[k]*p.perRPS[s])
	}
	p.room, p.lifted = make([]float64, len(p.Groups)), make([]bool, len(p.Groups))
	for _, i := range p.inner {
		g := &p.Groups[i]
		s := int32(g.Source)
		if extra := g.MinRPS*p.perRPS[s] - moved[i]; extra > boundSlack*p.supply[s] {
			advance(s, p.group(i), p.group(i), extra)
			p.lifted[i] = true
		}
		p.room[i] = g.MaxRPS*p.perRPS[s] - moved[i]
	}
	for s := range p.Sources {
		if low := p.supply[s]; low < 0 && low > -boundSlack*p.Sources[s].DemandRPS*p.perRPS[s] {
			p.supply[s] = 0
		}
	}
}

// boundSlack is how far, relative to its demand, the minimums of a source may
// exceed its demand or a maximum by rounding.
const boundSlack = 1e-12

// lowerPairs iterates over pairs with a lower bound and their sources.
func (p *program) lowerPairs() iter.Seq2[int, int32] {
	return func(yield func(int, int32) bool) {
		if p.Lower == nil {
			return
		}
		for s := range p.Sources {
			for k := p.Row[s]; k < p.Row[s+1]; k++ {
				if p.Lower[k] > 0 && !yield(k, int32(s)) {
					return
				}
			}
		}
	}
}
