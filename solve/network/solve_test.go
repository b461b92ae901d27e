package network

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/irb-project/irb/solve/fleetgen"
	"github.com/irb-project/irb/solve/model"
)

// gap returns the objective of a solution and how far it is above the bound
// that its prices give, relative; pair bounds and stay terms included.
func gap(t *testing.T, p *model.Problem, s *model.Solution) (objective, rel float64) {
	t.Helper()
	flow := make([]float64, p.Pairs())
	load := make([]float64, len(p.Engines))
	for _, f := range s.Flows {
		flow[f.Pair] = f.RPS
	}
	bound := 0.0
	for src := range p.Sources {
		sum := 0.0
		for k := p.Row[src]; k < p.Row[src+1]; k++ {
			e := p.Col[k]
			w := p.Sources[src].Work
			rc := p.CostMs[k] + w*s.EnginePrice[e] - s.SourcePriceMs[src]
			lo, hi := 0.0, s.ServedRPS[src]
			if p.Upper != nil {
				lo, hi = p.Lower[k], min(hi, p.Upper[k])
			}
			objective += p.CostMs[k] * flow[k]
			at := func(x float64) float64 {
				v := rc * x
				if p.Stay != nil {
					v += p.StayPenaltyMs[k] * max(0, p.Stay[k]-x)
				}
				return v
			}
			least := min(at(lo), at(hi))
			if p.Stay != nil {
				objective += p.StayPenaltyMs[k] * max(0, p.Stay[k]-flow[k])
				if p.Stay[k] > lo && p.Stay[k] < hi {
					least = min(least, at(p.Stay[k]))
				}
			}
			bound += least
			sum += flow[k]
			load[e] += w * flow[k]
			if flow[k] < lo-1e-9*(1+lo) || flow[k] > hi+1e-9*(1+hi) {
				t.Fatalf("pair %d has %g, want within [%g, %g]", k, flow[k], lo, hi)
			}
		}
		if d := s.ServedRPS[src]; math.Abs(sum-d) > 1e-9*d || math.Abs(d-p.Sources[src].DemandRPS) > 1e-9*d {
			t.Fatalf("source %d serves %g of %g", src, sum, p.Sources[src].DemandRPS)
		}
		bound += s.SourcePriceMs[src] * s.ServedRPS[src]
	}
	for e := range p.Engines {
		if p.Engines[e].Delay == nil {
			continue
		}
		if load[e] > p.Engines[e].Limit*(1+1e-9) {
			t.Fatalf("engine %d carries %g above %g", e, load[e], p.Engines[e].Limit)
		}
		objective += p.Engines[e].Delay.Value(min(load[e], p.Engines[e].Limit))
		bound -= p.Engines[e].Delay.Conjugate(s.EnginePrice[e])
	}
	return objective, (objective - bound) / objective
}

func TestRandomFleets(t *testing.T) {
	for seed := range uint64(60) {
		for _, load := range []float64{0.5, 0.75, 0.95} {
			c := fleetgen.Config{Sources: 3 + int(seed%20), Engines: 4 + int(seed%37), Eligible: 0.3 + 0.7*float64(seed%3)/2, Load: load}
			t.Run(fmt.Sprintf("%d/%v", seed, load), func(t *testing.T) {
				p := fleetgen.Fleet(c, seed)
				s, err := Solve(context.Background(), p, Options{})
				var short *model.Infeasible
				if errors.As(err, &short) {
					checkCut(t, p, short)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if obj, g := gap(t, p, s); !(g < 1e-9 && g > -1e-9) {
					t.Errorf("gap is %g of %g", g, obj)
				}
			})
		}
	}
}

// However few pivots there are, a solve ends with its context.
func TestSolveIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m := fleetgen.Fleet(fleetgen.Config{Sources: 50, Engines: 50, Eligible: 1, Load: 0.75}, 1)
	if _, err := Solve(ctx, m, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

// checkCut proves that the sources of e cannot be served: all that they may
// use is among its engines, whose limits are too small by ShortWork.
func checkCut(t *testing.T, p *model.Problem, e *model.Infeasible) {
	t.Helper()
	in := map[int]bool{}
	room, demand := 0.0, 0.0
	for _, i := range e.Engines {
		in[i] = true
		room += p.Engines[i].Limit
	}
	for _, s := range e.Sources {
		demand += p.Sources[s].DemandRPS * p.Sources[s].Work
		for k := p.Row[s]; k < p.Row[s+1]; k++ {
			if !in[int(p.Col[k])] {
				t.Fatalf("source %d may use engine %d outside the binding set", s, p.Col[k])
			}
		}
	}
	if short := demand - room; !(short > 0) || math.Abs(short-e.ShortWork) > 1e-9*demand {
		t.Fatalf("short by %g, reported %g", short, e.ShortWork)
	}
}
