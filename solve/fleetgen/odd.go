package fleetgen

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
)

// Odd makes a small program with everything that solvers stumble over: identical
// engines and sources, flat profiles, kinks, demand exactly at capacity or
// above it, one source, one engine, sources that nothing may serve, scales from
// 1e-9 to 1e9, rounded latencies of places that share a metro, and every kind of
// bound. Amounts are dyadic before scaling, so that ties are exact.
func Odd(seed uint64) *model.Problem {
	o := &oddity{rng: rand.New(rand.NewPCG(seed, 2))}
	o.rate, o.time = 1, 1
	if o.chance(0.3) {
		o.rate = math.Pow(10, float64(o.rng.IntN(19)-9))
	}
	if o.chance(0.2) {
		o.time = math.Pow(10, float64(o.rng.IntN(13)-6))
	}
	o.addEngines()
	o.addSources()
	o.addPairs()
	o.addCaps()
	o.addDemand()
	o.addBounds()
	o.addStay()
	return &o.p
}

type oddity struct {
	p          model.Problem
	rng        *rand.Rand
	rate, time float64 // scales
	bounded    bool    // shares and groups will bound routes
	regionOf   []int
	baseMs     []float64
}

func (o *oddity) chance(p float64) bool { return o.rng.Float64() < p }

// few returns a number from 1 to n, small ones and n more often.
func (o *oddity) few(n int) int {
	switch o.rng.IntN(4) {
	case 0:
		return 1
	case 1:
		return n
	}
	return 1 + o.rng.IntN(n)
}

func (o *oddity) addEngines() {
	n := o.few(9)
	regions := o.few(3)
	o.p.Work = model.WorkSingle
	same := o.chance(0.3)
	var c curves
	for e := range n {
		if e == 0 || !same {
			c = o.curves()
		}
		capacity := float64(int(1) << o.rng.IntN(5))
		if same && e > 0 {
			capacity = o.p.Engines[0].Capacity / (o.rate * referenceWork)
		}
		if o.chance(0.05) {
			capacity = 0
		}
		limit := capacity * []float64{0.5, 0.75, 0.875}[o.rng.IntN(3)]
		region := o.rng.IntN(regions)
		o.regionOf = append(o.regionOf, region)
		o.baseMs = append(o.baseMs, c.ttft.Ms[0]+refOutput*c.tbot.Ms[0])
		name := fmt.Sprintf("region-%d", region)
		node := model.EngineNode{
			Name: fmt.Sprintf("e%d", e), Region: name, Domain: name, ReferenceWork: referenceWork,
			Capacity: capacity * o.rate * referenceWork, Limit: limit * o.rate * referenceWork,
		}
		if limit > 0 {
			node.Delay = c.sink(node.Capacity, node.Limit)
		}
		o.p.Engines = append(o.p.Engines, node)
	}
}

// curves returns a profile: flat, linear, kinked or processor sharing.
func (o *oddity) curves() curves {
	table := func(v []float64, ms ...float64) profile.Curve {
		for i := range ms {
			ms[i] *= o.time
		}
		return profile.Curve{V: v, Ms: ms}
	}
	switch o.rng.IntN(6) {
	case 0:
		return curves{table([]float64{0}, 64), table([]float64{0}, 8)}
	case 1:
		return curves{table([]float64{0, 1}, 64, 64), table([]float64{0, 1}, 8, 16)}
	case 2:
		return curves{table([]float64{0, 0.5, 1}, 64, 64, 128), table([]float64{0, 0.5, 1}, 8, 8, 32)}
	case 3:
		return curves{table([]float64{0, 0.25, 0.5, 0.75, 1}, 64, 65, 70, 100, 1000), table([]float64{0, 0.5, 1}, 8, 9, 64)}
	case 4:
		return curves{
			profile.Curve{V: []float64{0}, Ms: []float64{64 * o.time}, PS: true},
			profile.Curve{V: []float64{0}, Ms: []float64{8 * o.time}, PS: true},
		}
	}
	c := randomCurves(o.rng)
	for _, ms := range [][]float64{c.ttft.Ms, c.tbot.Ms} {
		for i := range ms {
			ms[i] *= o.time
		}
	}
	return c
}

func (o *oddity) addSources() {
	sizes := []float64{1, 1, 1, 0.5, 4}
	o.p.Shed = o.chance(0.35)
	for s := range o.few(7) {
		size := sizes[o.rng.IntN(len(sizes))]
		o.p.Sources = append(o.p.Sources, model.Source{
			Cluster: fmt.Sprintf("c%d", s), Class: "chat", Priority: o.rng.IntN(3),
			PromptTokens: refPrompt * size, OutputTokens: refOutput * size, Work: referenceWork * size,
		})
	}
}

// addDemand sets demands at some part of what can be served, mostly with room
// for what bounds take away.
func (o *oddity) addDemand() {
	part := make([]float64, len(o.p.Sources))
	total := 0.0
	for s := range part {
		part[s] = float64(int(1) << o.rng.IntN(4))
		if o.chance(0.1) {
			part[s] = 1e-9
		}
		total += part[s]
	}
	o.bounded = o.chance(0.5)
	load := []float64{1.0 / 1024, 0.25, 0.5, 0.75, 1, 1, 1.25}[o.rng.IntN(7)]
	if o.bounded && !o.p.Shed && o.chance(0.8) {
		load = min(load, 0.5)
	}
	most := o.servable(part)
	if most == 0 {
		most = o.rate * referenceWork / total // some source has no engine
	}
	for s := range part {
		o.p.Sources[s].DemandRPS = load * most * part[s] / o.p.Sources[s].Work
	}
}

// servable returns the largest factor on demands in the given parts, in work/s,
// at which every set of sources fits what it reaches.
func (o *oddity) servable(part []float64) float64 {
	least := math.Inf(1)
	for set := 1; set < 1<<len(part); set++ {
		demand := 0.0
		reached := make([]bool, len(o.p.Engines))
		for s := range part {
			if set&(1<<s) == 0 {
				continue
			}
			demand += part[s]
			for _, e := range o.p.Col[o.p.Row[s]:o.p.Row[s+1]] {
				reached[e] = true
			}
		}
		least = min(least, o.capacity(reached)/demand)
	}
	return least
}

// capacity returns what a set of engines may take: caps are of one engine or
// of a region.
func (o *oddity) capacity(set []bool) (total float64) {
	limit := make([]float64, len(set))
	for e, in := range set {
		if in {
			limit[e] = o.p.Engines[e].Limit
		}
	}
	for _, c := range slices.Backward(o.p.Caps) { // inner ones first
		work := 0.0
		for _, e := range c.Engines {
			work += limit[e]
		}
		if work > c.MaxWork {
			for _, e := range c.Engines {
				limit[e] *= c.MaxWork / work
			}
		}
	}
	for _, l := range limit {
		total += l
	}
	return total
}

func (o *oddity) addPairs() {
	eligible := []float64{1, 1, 0.8, 0.4}[o.rng.IntN(4)]
	coarse := o.chance(0.5)
	lost := o.chance(0.03) // sources that nothing may serve are left so
	o.p.Row = []int{0}
	for s := range o.p.Sources {
		src := &o.p.Sources[s]
		near := o.rng.IntN(3)
		twin := s > 0 && o.chance(0.2) // routes like the source before
		sure := o.rng.IntN(len(o.p.Engines))
		for e := range o.p.Engines {
			chosen := o.chance(eligible) || e == sure && !lost || twin && o.pair(s-1, e) >= 0
			if o.p.Engines[e].Limit <= 0 || !chosen {
				continue
			}
			rtt := 200 * o.rng.Float64()
			if coarse {
				rtt = float64(2 + 40*((near+o.regionOf[e])%3))
			}
			cost := rtt*o.time + o.baseMs[e]*src.Work/referenceWork
			if k := o.pair(s-1, e); twin && k >= 0 {
				cost = o.p.CostMs[k]
			}
			o.p.Col = append(o.p.Col, int32(e))
			o.p.CostMs = append(o.p.CostMs, cost)
		}
		o.p.Row = append(o.p.Row, len(o.p.Col))
	}
}

// pair returns the pair of a source and an engine, or -1.
func (o *oddity) pair(s, e int) int {
	if s < 0 {
		return -1
	}
	for k := o.p.Row[s]; k < o.p.Row[s+1]; k++ {
		if int(o.p.Col[k]) == e {
			return k
		}
	}
	return -1
}
