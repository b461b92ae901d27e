package certify

import (
	"cmp"
	"fmt"
	"slices"
)

// fairness judges stage 2: within a priority equal fractions of demand are
// served where reachable, that is, the smallest fraction is as large as can be,
// then the next, and so on. That holds if and only if no source could get more
// by taking it, directly or over a chain of moves, from one of its priority
// that has a larger fraction. Such a chain is a path
//
//	source s -> full engine (or cap) -> source t that uses it -> another engine of t -> ...
//
// and the search for one, from the worst served source up, visits each source
// and engine once. It is linear, and one-sided where a source has several
// groups or an engine several full caps: a chain that needs a swap inside one
// of those is not looked for. A verdict "unfair" is always right.
type fairness struct {
	*checker
	flowStart   []int     // first flow of each source, and the end
	sourceOf    []int32   // of each flow
	flowsOn     [][]int32 // flows of each engine
	capsOf      [][]int   // caps of each engine
	full        []bool    // engines at their limit
	capFull     []bool
	groupAtMax  []bool
	groupAtMin  []bool
	seenSource  []bool
	seenEngine  []bool
	seenCap     []bool
	groupsWith  map[sourceEngine][]int
	sourceQueue []int
}

type sourceEngine struct {
	source int
	engine int32
}

// slackTol is what counts as no slack, relative to the limit or to demand.
const slackTol = 1e-6

func newFairness(c *checker) *fairness {
	p := c.p
	f := &fairness{
		checker:    c,
		sourceOf:   make([]int32, len(c.s.Flows)),
		flowsOn:    make([][]int32, len(p.Engines)),
		capsOf:     make([][]int, len(p.Engines)),
		full:       make([]bool, len(p.Engines)),
		groupsWith: make(map[sourceEngine][]int),
	}
	i := 0
	for s := range p.Sources {
		f.flowStart = append(f.flowStart, i)
		for ; i < len(c.s.Flows) && c.s.Flows[i].Pair < p.Row[s+1]; i++ {
			e := p.Col[c.s.Flows[i].Pair]
			f.sourceOf[i] = int32(s)
			f.flowsOn[e] = append(f.flowsOn[e], int32(i))
		}
	}
	f.flowStart = append(f.flowStart, i)
	for e := range p.Engines {
		f.full[e] = c.work[e].value() >= p.Engines[e].Limit*(1-slackTol)
	}
	for i, k := range p.Caps {
		var work sum
		for _, e := range k.Engines {
			work.merge(c.work[e])
			f.capsOf[e] = append(f.capsOf[e], i)
		}
		f.capFull = append(f.capFull, work.value() >= k.MaxWork*(1-slackTol))
	}
	f.markGroups()
	return f
}

func (f *fairness) markGroups() {
	for g := range f.p.Groups {
		group := &f.p.Groups[g]
		s := group.Source
		var in sum
		for _, e := range group.Engines {
			f.groupsWith[sourceEngine{s, e}] = append(f.groupsWith[sourceEngine{s, e}], g)
		}
		for _, flow := range f.s.Flows[f.flowStart[s]:f.flowStart[s+1]] {
			if slices.Contains(group.Engines, f.p.Col[flow.Pair]) {
				in.add(flow.RPS)
			}
		}
		slack := f.slack(s)
		f.groupAtMax = append(f.groupAtMax, in.value() >= group.MaxRPS-slack)
		f.groupAtMin = append(f.groupAtMin, in.value() <= group.MinRPS+slack)
	}
}

// slack is what counts as no slack on a bound of source s, in req/s: a part of
// its demand, and the rounding of rates beside which its own are near 0.
func (f *fairness) slack(s int) float64 {
	source := &f.p.Sources[s]
	return slackTol*source.DemandRPS + ResidualTol*smallRow*f.totalWork/source.Work
}

// fairTol is by how much fractions of source s may differ for no reason.
func (f *fairness) fairTol(s int) float64 {
	source := &f.p.Sources[s]
	return FairTol + ResidualTol*smallRow*f.totalWork/(source.Work*source.DemandRPS)
}

// fraction is the part of its demand that source s is served.
func (f *fairness) fraction(s int) float64 { return f.s.ServedRPS[s] / f.p.Sources[s].DemandRPS }

// check searches each priority for a source that could take from a better
// served one.
func (f *fairness) check(priorities []int) error {
	for _, priority := range priorities {
		f.seenSource = make([]bool, len(f.p.Sources))
		f.seenEngine = make([]bool, len(f.p.Engines))
		f.seenCap = make([]bool, len(f.p.Caps))
		var refused []int
		for s := range f.p.Sources {
			if f.p.Sources[s].Priority == priority && f.fraction(s) < 1-f.fairTol(s) {
				refused = append(refused, s)
			}
		}
		slices.SortStableFunc(refused, func(a, b int) int { return cmp.Compare(f.fraction(a), f.fraction(b)) })
		for _, s := range refused {
			if t := f.search(s); t >= 0 {
				a, b := &f.p.Sources[s], &f.p.Sources[t]
				return fmt.Errorf("certify: shed unfairly: %s/%s is served %.6g of its demand while %s/%s of the same priority, whose place it could take, is served %.6g",
					a.Cluster, a.Class, f.fraction(s), b.Cluster, b.Class, f.fraction(t))
			}
		}
	}
	return nil
}

// search returns a source that s could take from, or -1. What was seen from a
// source worse served than s holds no such source for s either.
func (f *fairness) search(s int) int {
	if f.seenSource[s] {
		return -1
	}
	f.seenSource[s] = true
	f.sourceQueue = append(f.sourceQueue[:0], s)
	for len(f.sourceQueue) > 0 {
		from := f.sourceQueue[0]
		f.sourceQueue = f.sourceQueue[1:]
		for _, e := range f.roomWanted(from) {
			for _, i := range f.flowsOn[e] {
				t := int(f.sourceOf[i])
				if f.seenSource[t] || !f.canLower(int(i), t) {
					continue
				}
				if f.p.Sources[t].Priority == f.p.Sources[s].Priority && f.fraction(t) > f.fraction(s)+f.fairTol(t)+f.fairTol(s) {
					return t
				}
				f.seenSource[t] = true
				f.sourceQueue = append(f.sourceQueue, t)
			}
		}
	}
	return -1
}

// roomWanted returns the engines, not seen before, on which less of others
// would let source s send more.
func (f *fairness) roomWanted(s int) []int32 {
	var engines []int32
	want := func(e int32) {
		if !f.seenEngine[e] {
			f.seenEngine[e] = true
			engines = append(engines, e)
		}
	}
	i := f.flowStart[s]
	for k := f.p.Row[s]; k < f.p.Row[s+1]; k++ {
		e, x := f.p.Col[k], 0.0
		if i < f.flowStart[s+1] && f.s.Flows[i].Pair == k {
			x = f.s.Flows[i].RPS
			i++
		}
		if f.p.Upper != nil && x >= f.p.Upper[k]-f.slack(s) || f.inGroup(s, e, f.groupAtMax) {
			continue
		}
		full := -1
		several := false
		for _, c := range f.capsOf[e] {
			if f.capFull[c] {
				several = full >= 0
				full = c
			}
		}
		switch {
		case f.full[e] || several:
			want(e)
		case full >= 0 && !f.seenCap[full]:
			f.seenCap[full] = true
			for _, other := range f.p.Caps[full].Engines {
				want(other)
			}
		}
	}
	return engines
}

// canLower says whether source t could send less of flow i.
func (f *fairness) canLower(i, t int) bool {
	flow := f.s.Flows[i]
	least := f.slack(t)
	if f.p.Lower != nil {
		least += f.p.Lower[flow.Pair]
	}
	return flow.RPS > least && !f.inGroup(t, f.p.Col[flow.Pair], f.groupAtMin)
}

func (f *fairness) inGroup(s int, e int32, is []bool) bool {
	if len(f.groupsIn(s)) == 0 {
		return false
	}
	return slices.ContainsFunc(f.groupsWith[sourceEngine{s, e}], func(g int) bool { return is[g] })
}
