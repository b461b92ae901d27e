package solve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
)

// overloaded makes a random problem with priorities and, by chance, shares,
// rules, domains and caps, whose demand is around its capacity.
func overloaded(t *testing.T, random *rand.Rand) *model.Problem {
	sources, engines := 1+random.IntN(8), 1+random.IntN(6)
	p := &model.Problem{Work: model.WorkSingle, Shed: true, Row: []int{0}}
	var capacity float64
	for e := range engines {
		k := 10 + 90*random.Float64()
		node := model.EngineNode{Name: fmt.Sprint("e", e), ReferenceWork: 2, Capacity: k, Limit: 0.9 * k}
		sink, err := profile.NewSink(k, node.Limit, 0.5, []profile.Curve{{V: []float64{0, 0.5, 1}, Ms: []float64{10, 20, 60}}}, []float64{1})
		if err != nil {
			t.Fatal(err)
		}
		node.Delay = sink
		capacity += node.Limit
		p.Engines = append(p.Engines, node)
	}
	total := capacity * (0.6 + random.Float64())
	for s := range sources {
		source := model.Source{Cluster: fmt.Sprint("c", s), Priority: random.IntN(3), Work: 0.5 + random.Float64()}
		source.DemandRPS = total / float64(sources) / source.Work * (0.5 + random.Float64())
		p.Sources = append(p.Sources, source)
		only := random.IntN(engines)
		for e := range engines {
			if e == only || random.Float64() < 0.5 {
				p.Col = append(p.Col, int32(e))
				p.CostMs = append(p.CostMs, 100*random.Float64())
			}
		}
		p.Row = append(p.Row, len(p.Col))
	}
	bound(p, random)
	return p
}

func bound(p *model.Problem, random *rand.Rand) {
	if random.IntN(2) == 0 {
		p.Lower, p.Upper = make([]float64, p.Pairs()), make([]float64, p.Pairs())
		for s := range p.Sources {
			share := 0.3 + random.Float64()
			for k := p.Row[s]; k < p.Row[s+1]; k++ {
				p.Upper[k] = share * p.Sources[s].DemandRPS
				if random.IntN(8) == 0 {
					p.Lower[k] = 0.05 * p.Sources[s].DemandRPS
				}
			}
		}
	}
	if random.IntN(2) == 0 {
		half := int32(len(p.Engines) / 2)
		for s := range p.Sources {
			g := model.Group{Name: fmt.Sprint("g", s), Source: s, MaxRPS: (0.3 + random.Float64()) * p.Sources[s].DemandRPS}
			for k := p.Row[s]; k < p.Row[s+1]; k++ {
				if p.Col[k] <= half {
					g.Engines = append(g.Engines, p.Col[k])
				}
			}
			if len(g.Engines) > 0 {
				p.Groups = append(p.Groups, g)
			}
		}
	}
	if random.IntN(2) == 0 {
		p.Caps = []model.WorkCap{{Name: "cap", Engines: []int32{0}, MaxWork: p.Engines[0].Limit * (0.3 + random.Float64())}}
	}
}

// Whatever is shed, the certificate accepts: the most work by priority, in
// fair fractions, and the least latency for what is served.
func TestShedIsCertified(t *testing.T) {
	shed, infeasible := 0, 0
	for seed := range uint64(400) {
		p := overloaded(t, rand.New(rand.NewPCG(seed, 7)))
		solution, _, err := Certified(context.Background(), p, nil)
		var none *model.Infeasible
		if errors.As(err, &none) {
			infeasible++
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for s := range p.Sources {
			if solution.ServedRPS[s] < p.Sources[s].DemandRPS*(1-1e-9) {
				shed++
				break
			}
		}
	}
	if shed < 100 || infeasible > 100 {
		t.Errorf("%d of 400 programs shed, %d were infeasible: the generator has lost its aim", shed, infeasible)
	}
}

func TestShedAllowInTheSummary(t *testing.T) {
	fleet := readFleet(t, "../examples/two-regions")
	fleet.Policy.Shed = true
	for i := range fleet.Demand {
		fleet.Demand[i].RPS *= 2
	}
	s := build(t, plan(t, fleet, nil), nil)
	near(t, "served", s.Solver.ServedRPS, 180, 1e-6)
	near(t, "offered", s.Solver.OfferedRPS, 320, 0)
	near(t, "shed of us-east", s.Sources[0].ShedRPS, 240*(1-180/320.0), 1e-6)
	if math.Abs(s.Sources[0].ServedRPS/240-s.Sources[1].ServedRPS/80) > 1e-8 {
		t.Errorf("fractions differ: %v of 240 and %v of 80", s.Sources[0].ServedRPS, s.Sources[1].ServedRPS)
	}
	if len(s.Cuts) != 1 || len(s.Cuts[0].Engines) != 2 {
		t.Errorf("cuts are %+v", s.Cuts)
	}
}
