package network

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/irb-project/irb/solve/fleetgen"
	"github.com/irb-project/irb/solve/model"
)

// Fleets whose start cools, and those on which it gives up, reach the optimum.
func TestFleetsCool(t *testing.T) {
	gaveUp := 0
	for seed := range uint64(2) {
		for _, load := range []float64{0.3, 0.75, 0.95, 1.2} {
			for _, tight := range []bool{false, true} {
				c := fleetgen.Config{Sources: 1000, Engines: 1000, Eligible: 0.05, Load: load, Tight: tight}
				m := fleetgen.Fleet(c, seed)
				m.Shed = true
				p, err := newProgram(m)
				if err != nil {
					t.Fatal(err)
				}
				if !p.isCool() {
					t.Fatal("the start of these does not cool")
				}
				if p.cool(p.startPrices()) == nil {
					gaveUp++
				}
				s, err := Solve(context.Background(), m, Options{})
				if err != nil {
					t.Errorf("seed %d load %g tight %t: %v", seed, load, tight, err)
					continue
				}
				objective(t, m, s)
			}
		}
	}
	if gaveUp == 0 || gaveUp > 12 {
		t.Errorf("%d of 16 gave up", gaveUp)
	}
}

// A plan that serves what can be served is a better start than soft choices.
func TestPlansBeatSoftChoices(t *testing.T) {
	ctx := context.Background()
	for _, load := range []float64{0.75, 1.2} {
		m := fleetgen.Fleet(fleetgen.Config{Sources: 1000, Engines: 1000, Eligible: 0.05, Load: load}, 1)
		m.Shed = true
		s, err := Solve(ctx, m, Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Solve(ctx, m, Options{Start: s.Flows, Progress: func(stage string) {
			if stage == "start prices" {
				t.Errorf("load %g: a solve from its own optimum started cold", load)
			}
		}})
		if err != nil {
			t.Error(err)
		}
	}
}

// Soft choices make room for what lower bounds send.
func TestCoolBesideMinimums(t *testing.T) {
	m := fleetgen.Fleet(fleetgen.Config{Sources: 1000, Engines: 1000, Eligible: 0.05, Load: 0.7}, 1)
	m.Upper, m.Lower = make([]float64, m.Pairs()), make([]float64, m.Pairs())
	for s := range m.Sources {
		src := &m.Sources[s]
		for k := m.Row[s]; k < m.Row[s+1]; k++ {
			m.Upper[k] = src.DemandRPS
			if k%3 == 0 {
				m.Lower[k] = min(0.02*src.DemandRPS, 0.01*m.Engines[m.Col[k]].Limit/src.Work)
			}
		}
	}
	want, err := Solve(context.Background(), m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	objective(t, m, want)
	p, err := newProgram(m)
	if err != nil {
		t.Fatal(err)
	}
	plan := p.cool(p.startPrices())
	if plan == nil {
		t.Fatal("soft choices did not settle")
	}
	astray := make([]float64, len(m.Engines))
	total, sum := 0.0, 0.0
	add := func(flows []model.Flow, sign float64) {
		s := 0
		for _, f := range flows {
			for f.Pair >= m.Row[s+1] {
				s++
			}
			astray[m.Col[f.Pair]] += sign * p.aboveLower(f) * m.Sources[s].Work
		}
	}
	add(want.Flows, 1)
	for _, x := range astray {
		total += x
	}
	add(plan, -1)
	for _, x := range astray {
		sum += math.Abs(x)
	}
	if sum > 0.05*total {
		t.Errorf("soft choices put %.3g of the load elsewhere than the optimum", sum/total)
	}
}

// On odd fleets soft choices are as good a start as any other.
func TestOddFleetsCool(t *testing.T) {
	ctx := context.Background()
	cooled := 0
	for seed := range uint64(*oddFleets) {
		m := fleetgen.Odd(seed)
		p, err := newProgram(m)
		if err != nil {
			continue
		}
		plan := p.cool(p.startPrices())
		if plan == nil {
			continue
		}
		if !slices.IsSortedFunc(plan, func(x, y model.Flow) int { return x.Pair - y.Pair }) {
			t.Fatalf("fleet %d: plan out of order", seed)
		}
		want, err := Solve(ctx, m, Options{})
		var infeasible *model.Infeasible
		if errors.As(err, &infeasible) {
			continue
		}
		if err != nil {
			t.Fatalf("fleet %d: %v", seed, err)
		}
		got, err := Solve(ctx, m, Options{Start: plan})
		if err != nil {
			t.Errorf("fleet %d: %v", seed, err)
			continue
		}
		cooled++
		if a, b := objective(t, m, got), objective(t, m, want); !(math.Abs(a-b) <= 1e-9*math.Abs(b)) {
			t.Errorf("fleet %d: objective %.12g, without soft choices %.12g", seed, a, b)
		}
	}
	if cooled < *oddFleets/4 {
		t.Errorf("only %d of %d cooled", cooled, *oddFleets)
	}
}
