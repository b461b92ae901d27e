// Package pool makes a program smaller by merging what is identical in it,
// exactly, and its answer whole again.
package pool

import (
	"hash/maphash"
	"math"
	"slices"

	"github.com/irb-project/irb/solve/chunk"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
)

// Pooling is a program in which what is identical is merged: engines that are
// the same to every source become one of n times the size, loaded equally, which
// is optimal because costs are convex; sources with the same routes become one
// that demands the sum, and share its routes by demand. Its problem is the
// smaller one; indices below are its.
type Pooling struct {
	*model.Problem
	whole   *model.Problem
	engines [][]int32 // members in the whole, in order; the first stands for all
	sources [][]int32
	pair    []int // pair of the first source and engine in the whole
}

// Of returns the pooling of m, nil if nothing in it is identical.
func Of(m *model.Problem) *Pooling {
	p := &Pooling{whole: m}
	p.engines = p.findEngines()
	p.sources = p.findSources()
	if len(p.engines) == len(m.Engines) && len(p.sources) == len(m.Sources) {
		return nil
	}
	p.reduce()
	return p
}

// sinkKey is what engines must agree on by themselves.
type sinkKey struct {
	capacity, limit float64
	shape           uint64 // hash of the marginals
	caps            uint64 // hash of the caps
}

// findEngines groups engines by their sinks and caps, then by their columns.
func (p *Pooling) findEngines() [][]int32 {
	seed := maphash.MakeSeed()
	caps := make([]uint64, len(p.whole.Engines))
	for c := range p.whole.Caps {
		for _, e := range p.whole.Caps[c].Engines {
			caps[e] += maphash.Comparable(seed, c)
		}
	}
	alike := make(map[sinkKey][]int32)
	for e := range p.whole.Engines {
		n := &p.whole.Engines[e]
		if n.Limit <= 0 {
			continue
		}
		key := sinkKey{capacity: n.Capacity, limit: n.Limit, caps: caps[e], shape: shapeOf(n, seed)}
		alike[key] = append(alike[key], int32(e))
	}
	single := len(p.whole.Engines) == 0
	for _, list := range alike {
		single = single || len(list) > 1
	}
	group := make([]int32, len(p.whole.Engines)) // first engine of each one's group
	for e := range group {
		group[e] = int32(e)
	}
	if single {
		columns := p.hashColumns(seed)
		for _, list := range alike {
			first := make(map[uint64]int32)
			for _, e := range list {
				if f, ok := first[columns[e]]; ok {
					group[e] = f
				} else {
					first[columns[e]] = e
				}
			}
		}
	}
	return collect(group)
}

// collect turns the first member of each group into lists of members.
func collect(first []int32) [][]int32 {
	var lists [][]int32
	at := make(map[int32]int)
	for i, f := range first {
		if int32(i) == f {
			at[f] = len(lists)
			lists = append(lists, nil)
		}
		lists[at[f]] = append(lists[at[f]], int32(i))
	}
	return lists
}

// shapeOf hashes the marginals of an engine at their kinks; with capacity and
// limit they determine its costs.
func shapeOf(n *model.EngineNode, seed maphash.Seed) uint64 {
	var shape uint64
	for i, sink := range []*profile.Sink{n.Delay, n.Prefill, n.Output} {
		if sink == nil {
			continue
		}
		ps, end := sink.ProcessorSharing()
		shape += maphash.Comparable(seed, [5]float64{float64(-1 - i), sink.Capacity, sink.Limit, ps, end})
		for j, y := range append([]float64{0, sink.Limit}, sink.Kinks()...) {
			left, right := sink.Marginal(y)
			shape += maphash.Comparable(seed, [5]float64{float64(i), float64(j), y, left, right})
		}
	}
	return shape
}

// hashColumns hashes, per engine, all that its pairs say: sums of hashes, so
// that the order does not matter.
func (p *Pooling) hashColumns(seed maphash.Seed) []uint64 {
	m := p.whole
	parts := make([][]uint64, chunk.Count)
	chunk.Each(m.Row, func(c, from, to int) {
		sum := make([]uint64, len(m.Engines))
		for s := from; s < to; s++ {
			for k := m.Row[s]; k < m.Row[s+1]; k++ {
				sum[m.Col[k]] += maphash.Comparable(seed, pairKey(m, s, k))
			}
		}
		parts[c] = sum
	})
	total := make([]uint64, len(m.Engines))
	for _, part := range parts {
		for e, h := range part {
			total[e] += h
		}
	}
	for i := range m.Groups {
		for _, e := range m.Groups[i].Engines {
			total[e] += maphash.Comparable(seed, -1-i)
		}
	}
	return total
}

// pairKey is all that pair k of source s says.
func pairKey(m *model.Problem, s, k int) (key [6]float64) {
	key[0], key[1], key[3] = float64(s), m.CostMs[k], math.Inf(1)
	if m.Upper != nil {
		key[2], key[3] = m.Lower[k], m.Upper[k]
	}
	if m.Stay != nil {
		key[4], key[5] = m.Stay[k], m.StayPenaltyMs[k]
	}
	return key
}

// findSources groups sources with the same contents, priority and routes. Those
// with bounds, groups or a previous plan stay alone.
func (p *Pooling) findSources() [][]int32 {
	m := p.whole
	alone := m.BoundSources()
	type key struct {
		work, prompt, output, first, last float64
		priority, pairs                   int
	}
	alike := make(map[key][]int32)
	group := make([]int32, len(m.Sources))
	for s := range m.Sources {
		group[s] = int32(s)
		lo, hi := m.Row[s], m.Row[s+1]
		if alone[s] || lo == hi {
			continue
		}
		src := &m.Sources[s]
		k := key{src.Work, src.PromptTokens, src.OutputTokens, m.CostMs[lo], m.CostMs[hi-1], src.Priority, hi - lo}
		for _, f := range alike[k] {
			if p.sameRow(int(f), s) {
				group[s] = f
				break
			}
		}
		if group[s] == int32(s) {
			alike[k] = append(alike[k], int32(s))
		}
	}
	return collect(group)
}

func (p *Pooling) sameRow(a, b int) bool {
	m := p.whole
	x, y := m.Row[a], m.Row[b]
	n := m.Row[a+1] - x
	return slices.Equal(m.Col[x:x+n], m.Col[y:y+n]) && slices.Equal(m.CostMs[x:x+n], m.CostMs[y:y+n])
}

// reduce builds the smaller problem.
func (p *Pooling) reduce() {
	m := p.whole
	p.Problem = &model.Problem{Work: m.Work, Shed: m.Shed, Row: []int{0}}
	engine := make([]int32, len(m.Engines)) // pool that an engine stands for, or -1
	for i, list := range p.engines {
		for _, e := range list {
			engine[e] = -1
		}
		engine[list[0]] = int32(i)
		p.Engines = append(p.Engines, times(m.Engines[list[0]], float64(len(list))))
	}
	source := make([]int, len(m.Sources))
	for i, list := range p.sources {
		src := m.Sources[list[0]]
		for _, s := range list[1:] {
			src.DemandRPS += m.Sources[s].DemandRPS
		}
		source[list[0]] = i
		p.Sources = append(p.Sources, src)
		p.addRow(int(list[0]), engine)
	}
	for _, g := range m.Groups {
		g.Source, g.Engines = source[g.Source], pooled(g.Engines, engine)
		p.Groups = append(p.Groups, g)
	}
	for _, c := range m.Caps {
		c.Engines = pooled(c.Engines, engine)
		p.Caps = append(p.Caps, c)
	}
}

func (p *Pooling) addRow(s int, engine []int32) {
	m := p.whole
	for k := m.Row[s]; k < m.Row[s+1]; k++ {
		e := engine[m.Col[k]]
		if e < 0 {
			continue
		}
		n := float64(len(p.engines[e]))
		p.Col = append(p.Col, e)
		p.CostMs = append(p.CostMs, m.CostMs[k])
		p.pair = append(p.pair, k)
		if m.Upper != nil {
			p.Lower = append(p.Lower, n*m.Lower[k])
			p.Upper = append(p.Upper, n*m.Upper[k])
		}
		if m.Stay != nil {
			p.Stay = append(p.Stay, n*m.Stay[k])
			p.StayPenaltyMs = append(p.StayPenaltyMs, m.StayPenaltyMs[k])
		}
	}
	p.Row = append(p.Row, len(p.Col))
}

// times returns n engines as one.
func times(e model.EngineNode, n float64) model.EngineNode {
	if n == 1 {
		return e
	}
	e.Capacity, e.Limit = n*e.Capacity, n*e.Limit
	for _, sink := range []**profile.Sink{&e.Delay, &e.Prefill, &e.Output} {
		if *sink != nil {
			*sink = (*sink).Times(n)
		}
	}
	return e
}

func pooled(engines, engine []int32) []int32 {
	var out []int32
	for _, e := range engines {
		if engine[e] >= 0 {
			out = append(out, engine[e])
		}
	}
	return out
}
