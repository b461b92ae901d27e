// Package fleetgen makes seeded random programs of routing fleets, for tests
// and benchmarks.
package fleetgen

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
)

// Config is the shape of a fleet.
type Config struct {
	Sources, Engines int
	Eligible         float64 // share of pairs that exist, (0, 1]
	Load             float64 // demand / what all engines may take
	// Tight restricts a third of the sources to a third of the engines, which
	// they fill to their limits.
	Tight bool
	// Split makes it split work, with mixes of prompt and output that differ.
	Split bool
}

// The reference request and work of an output token of all generated fleets.
const (
	refPrompt, refOutput = 1024.0, 256.0
	outputWork           = 4.0
	referenceWork        = refPrompt + outputWork*refOutput
)

// metro is a place on the map, in units of 100 km.
type metro struct{ x, y float64 }

// roundTripMs is light in fibre on a path 1.5 times the air line, and 1 ms of
// equipment.
func roundTripMs(a, b metro) float64 {
	return 1 + 1.5*math.Hypot(a.x-b.x, a.y-b.y)
}

// Fleet makes a fleet of a given shape: metros on a map of 160 x 80, engines
// and clusters around them, capacities over two orders of magnitude, measured
// tables and processor sharing formulas.
func Fleet(c Config, seed uint64) *model.Problem {
	rng := rand.New(rand.NewPCG(seed, 1))
	metros := make([]metro, max(3, min(40, c.Engines/4)))
	for i := range metros {
		metros[i] = metro{160 * rng.Float64(), 80 * rng.Float64()}
	}
	place := func() (int, metro) {
		i := rng.IntN(len(metros))
		return i, metro{metros[i].x + rng.NormFloat64(), metros[i].y + rng.NormFloat64()}
	}
	p := &model.Problem{Work: model.WorkSingle}
	if c.Split {
		p.Work = model.WorkSplit
	}
	at := make([]metro, c.Engines)
	base := make([]curves, c.Engines)
	for e := range c.Engines {
		var i int
		i, at[e] = place()
		region := fmt.Sprintf("region-%02d", i)
		base[e] = randomCurves(rng)
		capacity := 20 * math.Exp(3*rng.Float64()) * referenceWork
		limit := capacity * 0.9
		node := model.EngineNode{
			Name: fmt.Sprintf("e%05d", e), Region: region, Domain: region,
			ReferenceWork: referenceWork, Capacity: capacity, Limit: limit,
		}
		if c.Split {
			base[e].split(&node)
		} else {
			node.Delay = base[e].sink(capacity, limit)
		}
		p.Engines = append(p.Engines, node)
	}
	demand := c.addSources(p, rng)
	p.Row = append(p.Row, 0)
	for s := range p.Sources {
		_, here := place()
		p.Sources[s].DemandRPS = demand[s] / p.Sources[s].Work
		q, o := p.Sources[s].PromptTokens, p.Sources[s].OutputTokens
		for _, e := range c.eligible(s, rng) {
			p.Col = append(p.Col, e)
			p.CostMs = append(p.CostMs, roundTripMs(here, at[e])+base[e].ttft.Ms[0]*q/refPrompt+base[e].tbot.Ms[0]*o)
		}
		p.Row = append(p.Row, len(p.Col))
	}
	return p
}

// addSources appends the sources and returns the work/s that each demands.
func (c Config) addSources(p *model.Problem, rng *rand.Rand) []float64 {
	demand := make([]float64, c.Sources)
	free, kept := 0.0, 0.0 // what engines of the open and the restricted zone may take
	for e := range p.Engines {
		if c.Tight && e%3 == 0 {
			kept += p.Engines[e].Limit
		} else {
			free += p.Engines[e].Limit
		}
	}
	sumFree, sumKept := 0.0, 0.0
	for s := range demand {
		size := math.Exp(0.4 * rng.NormFloat64())
		q, o := math.Round(refPrompt*size), math.Round(refOutput*size)
		if c.Split {
			o = math.Round(o * math.Exp(0.5*rng.NormFloat64()))
		}
		p.Sources = append(p.Sources, model.Source{
			Cluster: fmt.Sprintf("c%05d", s), Class: "chat",
			PromptTokens: q, OutputTokens: o, Work: q + outputWork*o,
		})
		demand[s] = math.Exp(2 * rng.Float64())
		if c.restricted(s) {
			sumKept += demand[s]
		} else {
			sumFree += demand[s]
		}
	}
	for s := range demand {
		if c.restricted(s) {
			demand[s] *= 0.999 * kept / sumKept * max(1, c.Load)
		} else {
			demand[s] *= c.Load * free / sumFree
		}
	}
	return demand
}

func (c Config) restricted(s int) bool { return c.Tight && s%3 == 0 }

// eligible returns the engines of source s, ascending, at least two of those
// in its zone.
func (c Config) eligible(s int, rng *rand.Rand) []int32 {
	sure := [2]int{rng.IntN(c.Engines), rng.IntN(c.Engines)}
	if c.restricted(s) {
		for i := range sure {
			sure[i] -= sure[i] % 3
		}
	}
	var engines []int32
	for e := range c.Engines {
		if (e == sure[0] || e == sure[1] || rng.Float64() < c.Eligible) && !(c.restricted(s) && e%3 != 0) {
			engines = append(engines, int32(e))
		}
	}
	return engines
}

// curves is a latency profile of the reference request.
type curves struct{ ttft, tbot profile.Curve }

func (c curves) sink(capacity, limit float64) *profile.Sink {
	s, err := profile.NewSink(capacity, limit, 1/referenceWork, []profile.Curve{c.ttft, c.tbot}, []float64{1, refOutput})
	if err != nil {
		panic(err) // a fault of the generator
	}
	return s
}

// split gives an engine its sinks of split work: over prompt tokens and over
// output tokens per second, each up to the joint limit, processor sharing only
// up to its own.
func (c curves) split(n *model.EngineNode) {
	sink := func(refTokens, limit, scale float64, curve profile.Curve) *profile.Sink {
		capacity := n.Capacity / referenceWork * refTokens
		if curve.PS {
			limit = min(limit, capacity*n.Limit/n.Capacity)
		}
		s, err := profile.NewSink(capacity, limit, scale, []profile.Curve{curve}, []float64{1})
		if err != nil {
			panic(err) // a fault of the generator
		}
		return s
	}
	n.Prefill = sink(refPrompt, n.Limit, 1/refPrompt, c.ttft)
	n.Output = sink(refOutput, n.Limit/outputWork, 1, c.tbot)
}

// randomCurves returns one of three kinds of measured table, or processor
// sharing, at some speed.
func randomCurves(rng *rand.Rand) curves {
	speed := 0.6 + 0.8*rng.Float64()
	scaled := func(ms ...float64) []float64 {
		for i := range ms {
			ms[i] *= speed
		}
		return ms
	}
	v := []float64{0, 0.25, 0.5, 0.75, 0.9, 1}
	switch rng.IntN(4) {
	case 0:
		return curves{profile.Curve{V: v, Ms: scaled(80, 85, 100, 140, 220, 400)}, profile.Curve{V: v, Ms: scaled(12, 13, 15, 18, 22, 30)}}
	case 1:
		return curves{profile.Curve{V: v, Ms: scaled(150, 160, 175, 200, 250, 330)}, profile.Curve{V: v, Ms: scaled(20, 22, 25, 29, 34, 42)}}
	case 2:
		return curves{profile.Curve{V: []float64{0, 0.4, 0.8, 1}, Ms: scaled(60, 70, 120, 300)}, profile.Curve{V: []float64{0, 0.5, 1}, Ms: scaled(8, 11, 20)}}
	}
	return curves{profile.Curve{V: []float64{0}, Ms: scaled(70), PS: true}, profile.Curve{V: []float64{0}, Ms: scaled(9), PS: true}}
}
