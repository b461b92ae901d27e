// Package rowstest makes small seeded random programs that use all of the
// model at once, for tests of its solvers.
package rowstest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
)

// The reference request of every engine, and the work of an output token.
const (
	refPrompt  = 1024.0
	refOutput  = 256.0
	outputWork = 4.0
	refWork    = refPrompt + outputWork*refOutput
)

// Shape says what a program has.
type Shape struct {
	Sources, Engines int
	Load             float64 // demand / what all engines may take
	Split            bool
	Bounds           bool // lower and upper bounds of pairs
	Stay             bool
	Groups           bool // also such as cut across each other
	Caps             bool // likewise
	Priorities       int  // levels, 0: one
	Tables           bool // no processor sharing
	Odd              bool // identical engines, flat delays, rounded costs, rare pairs
}

// RandomShape draws a small shape.
func RandomShape(rng *rand.Rand) Shape {
	coin := func(p float64) bool { return rng.Float64() < p }
	return Shape{
		Sources: 1 + rng.IntN(8), Engines: 1 + rng.IntN(8), Load: 0.2 + 0.75*rng.Float64(),
		Split: coin(0.5), Bounds: coin(0.3), Stay: coin(0.3), Groups: coin(0.3), Caps: coin(0.3), Odd: coin(0.3),
	}
}

// Problem draws a program of a shape.
func Problem(s Shape, rng *rand.Rand) *model.Problem {
	p := &model.Problem{Work: model.WorkSingle}
	if s.Split {
		p.Work = model.WorkSplit
	}
	base := s.addEngines(p, rng)
	s.addSources(p, rng)
	s.addPairs(p, base, rng)
	if s.Bounds {
		addBounds(p, rng)
	}
	if s.Stay {
		addStay(p, rng)
	}
	if s.Groups {
		addGroups(p, rng)
	}
	if s.Caps {
		addCaps(p, rng)
	}
	return p
}

func (s Shape) addEngines(p *model.Problem, rng *rand.Rand) (base [][2]float64) {
	scale := math.Pow(10, 4*rng.Float64()-2)
	for e := range s.Engines {
		rps := scale * math.Exp(2*rng.Float64())
		kind := rng.IntN(4)
		if s.Odd {
			rps, kind = scale*float64(1+rng.IntN(2)), rng.IntN(2)*2
		}
		if s.Tables && kind == 1 {
			kind = 2
		}
		ttft, tbot := curves(kind, rng)
		n := Engine(fmt.Sprintf("e%03d", e), rps, 0.9, s.Split, ttft, tbot)
		n.Region = fmt.Sprintf("r%d", e%3)
		p.Engines = append(p.Engines, n)
		base = append(base, [2]float64{ttft.Ms[0], tbot.Ms[0]})
	}
	return base
}

// curves returns a table, a flat profile or processor sharing.
func curves(kind int, rng *rand.Rand) (ttft, tbot profile.Curve) {
	t, b := 50+50*rng.Float64(), 8+8*rng.Float64()
	switch kind {
	case 0:
		return profile.Curve{V: []float64{0}, Ms: []float64{80}}, profile.Curve{V: []float64{0}, Ms: []float64{12}}
	case 1:
		return profile.Curve{V: []float64{0}, Ms: []float64{t}, PS: true}, profile.Curve{V: []float64{0}, Ms: []float64{b}, PS: true}
	case 2:
		v := []float64{0, 0.25, 0.5, 0.75, 0.9, 1}
		return profile.Curve{V: v, Ms: []float64{80, 85, 100, 140, 220, 400}}, profile.Curve{V: v, Ms: []float64{12, 13, 15, 18, 22, 30}}
	default:
		k := 0.3 + 0.5*rng.Float64()
		return profile.Curve{V: []float64{0, k, 1}, Ms: []float64{t, t + 20, t + 200}}, profile.Curve{V: []float64{0, k, 1}, Ms: []float64{b, b + 2, b + 15}}
	}
}

// Engine is an engine of rps reference requests per second.
func Engine(name string, rps, maxUtilization float64, split bool, ttft, tbot profile.Curve) model.EngineNode {
	capacity := rps * refWork
	n := model.EngineNode{Name: name, ReferenceWork: refWork, Capacity: capacity, Limit: capacity * maxUtilization}
	sink := func(capacity, limit, scale float64, curves []profile.Curve, weight []float64) *profile.Sink {
		formula := limit
		if curves[0].PS {
			formula = min(limit, capacity*maxUtilization)
		}
		s, err := profile.NewSink(capacity, formula, scale, curves, weight)
		if err != nil {
			panic(err) // a fault of the generator
		}
		return s.ExtendTo(limit)
	}
	if split {
		n.Prefill = sink(rps*refPrompt, n.Limit, 1/refPrompt, []profile.Curve{ttft}, []float64{1})
		n.Output = sink(rps*refOutput, n.Limit/outputWork, 1, []profile.Curve{tbot}, []float64{1})
	} else {
		n.Delay = sink(capacity, n.Limit, 1/refWork, []profile.Curve{ttft, tbot}, []float64{1, refOutput})
	}
	return n
}

// Source is a source of requests of a size.
func Source(name string, rps, prompt, output float64) model.Source {
	return model.Source{Cluster: name, Class: "chat", DemandRPS: rps,
		PromptTokens: prompt, OutputTokens: output, Work: prompt + outputWork*output}
}

func (s Shape) addSources(p *model.Problem, rng *rand.Rand) {
	limit, work := 0.0, 0.0
	for e := range p.Engines {
		limit += p.Engines[e].Limit
	}
	for i := range s.Sources {
		q, o := refPrompt*math.Exp(0.5*rng.NormFloat64()), refOutput*math.Exp(0.5*rng.NormFloat64())
		if s.Odd {
			q, o = refPrompt, refOutput
		}
		src := Source(fmt.Sprintf("s%03d", i), math.Exp(rng.NormFloat64()), q, o)
		if s.Priorities > 1 {
			src.Priority = rng.IntN(s.Priorities)
		}
		work += src.DemandRPS * src.Work
		p.Sources = append(p.Sources, src)
	}
	for i := range p.Sources {
		p.Sources[i].DemandRPS *= s.Load * limit / work
	}
}

func (s Shape) addPairs(p *model.Problem, base [][2]float64, rng *rand.Rand) {
	density := 0.5 + 0.5*rng.Float64()
	p.Row = []int{0}
	for _, src := range p.Sources {
		sure := rng.IntN(s.Engines)
		for e := range s.Engines {
			if e != sure && rng.Float64() > density {
				continue
			}
			net := 2 + 150*rng.Float64()
			if s.Odd {
				net = float64(10 * rng.IntN(4))
			}
			p.Col = append(p.Col, int32(e))
			p.CostMs = append(p.CostMs, net+base[e][0]*src.PromptTokens/refPrompt+base[e][1]*src.OutputTokens)
		}
		p.Row = append(p.Row, len(p.Col))

	}
}

func addBounds(p *model.Problem, rng *rand.Rand) {
	p.Lower, p.Upper = make([]float64, p.Pairs()), make([]float64, p.Pairs())
	for s, src := range p.Sources {
		n := p.Row[s+1] - p.Row[s]
		for k := p.Row[s]; k < p.Row[s+1]; k++ {
			p.Upper[k] = math.Inf(1)
			if n > 1 && rng.Float64() < 0.5 {
				p.Upper[k] = src.DemandRPS * max(0.6, 1.2/float64(n))
			}
			if rng.Float64() < 0.1 {
				p.Lower[k] = 0.05 * src.DemandRPS
			}
		}
	}
}

func addStay(p *model.Problem, rng *rand.Rand) {
	p.Stay, p.StayPenaltyMs = make([]float64, p.Pairs()), make([]float64, p.Pairs())
	for s, src := range p.Sources {
		k := p.Row[s] + rng.IntN(p.Row[s+1]-p.Row[s])
		p.Stay[k] = src.DemandRPS * rng.Float64()
		p.StayPenaltyMs[k] = 50 * rng.Float64()
	}
}

func addGroups(p *model.Problem, rng *rand.Rand) {
	for s, src := range p.Sources {
		for range rng.IntN(3) {
			g := model.Group{Name: "group", Source: s, MaxRPS: math.Inf(1)}
			for k := p.Row[s]; k < p.Row[s+1]; k++ {
				if rng.Float64() < 0.5 {
					g.Engines = append(g.Engines, p.Col[k])
				}
			}
			switch {
			case len(g.Engines) > 0 && rng.Float64() < 0.3:
				g.MinRPS = 0.1 * src.DemandRPS
			case len(g.Engines) < p.Row[s+1]-p.Row[s]:
				g.MaxRPS = 0.7 * src.DemandRPS
			}
			p.Groups = append(p.Groups, g)
		}
	}
}

func addCaps(p *model.Problem, rng *rand.Rand) {
	for range 1 + rng.IntN(2) {
		c := model.WorkCap{Name: "cap"}
		limit := 0.0
		for e := range p.Engines {
			if rng.Float64() < 0.5 {
				c.Engines = append(c.Engines, int32(e))
				limit += p.Engines[e].Limit
			}
		}
		c.MaxWork = 0.8 * limit
		if len(c.Engines) > 0 {
			p.Caps = append(p.Caps, c)
		}
	}
}

// TwoRegions is examples/two-regions: us-east (2 ms from a-1, 65 from c-1) with
// 120 req/s and us-west (2 ms from c-1 alone) with 40, a-1 of 100 and c-1 of 80
// reference requests/s, all requests of the reference mix; with its flat
// profile, or with the table of examples/two-regions-queueing.
func TwoRegions(maxUtilization float64, split, flat bool) *model.Problem {
	v := []float64{0, 0.25, 0.5, 0.75, 0.9, 1}
	ttft := profile.Curve{V: v, Ms: []float64{80, 85, 100, 140, 220, 400}}
	tbot := profile.Curve{V: v, Ms: []float64{12, 13, 15, 18, 22, 30}}
	if flat {
		ttft, tbot = profile.Curve{V: []float64{0}, Ms: []float64{80}}, profile.Curve{V: []float64{0}, Ms: []float64{12}}
	}
	base := ttft.Ms[0] + refOutput*tbot.Ms[0]
	p := &model.Problem{
		Work:    model.WorkSingle,
		Sources: []model.Source{Source("us-east", 120, refPrompt, refOutput), Source("us-west", 40, refPrompt, refOutput)},
		Engines: []model.EngineNode{
			Engine("a-1", 100, maxUtilization, split, ttft, tbot),
			Engine("c-1", 80, maxUtilization, split, ttft, tbot),
		},
		Row: []int{0, 2, 3}, Col: []int32{0, 1, 1},
		CostMs: []float64{2 + base, 65 + base, 2 + base},
	}
	if split {
		p.Work = model.WorkSplit
	}
	return p
}
