package network

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/irb-project/irb/solve/certify"
	"github.com/irb-project/irb/solve/fleetgen"
	"github.com/irb-project/irb/solve/model"
)

// drift changes the demand of every source by about 5 %.
func drift(p *model.Problem, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for s := range p.Sources {
		p.Sources[s].DemandRPS *= math.Exp(0.05 * rng.NormFloat64())
	}
}

// objective returns that of a certified solution.
func objective(t *testing.T, p *model.Problem, s *model.Solution) float64 {
	t.Helper()
	r, err := certify.Check(p, s)
	if err != nil {
		t.Fatal(err)
	}
	return r.ObjectiveMsRPS
}

// A start changes nothing but the way to the optimum, whatever start it is.
func TestStartDoesNotMatter(t *testing.T) {
	ctx := context.Background()
	for seed := range uint64(40) {
		c := fleetgen.Config{Sources: 5 + int(seed%30), Engines: 5 + int(seed%23), Eligible: 0.6, Load: 0.75, Tight: seed%3 == 0}
		p := fleetgen.Fleet(c, seed)
		p.Shed = true
		was, err := Solve(ctx, p, Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		drift(p, seed)
		cold, err := Solve(ctx, p, Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		want := objective(t, p, cold)
		awkward := make([]model.Flow, p.Pairs()) // all of every source on its last pair, and a little everywhere
		for s := range p.Sources {
			for k := p.Row[s]; k < p.Row[s+1]; k++ {
				awkward[k] = model.Flow{Pair: k, RPS: 1e-3}
			}
			awkward[p.Row[s+1]-1].RPS = p.Sources[s].DemandRPS
		}
		for name, start := range map[string][]model.Flow{"previous": was.Flows, "optimum": cold.Flows, "awkward": awkward} {
			warm, err := Solve(ctx, p, Options{Start: start})
			if err != nil {
				t.Fatalf("seed %d from %s: %v", seed, name, err)
			}
			if got := objective(t, p, warm); !(math.Abs(got-want) <= 1e-9*want) {
				t.Errorf("seed %d from %s: objective %.12g, without a start %.12g", seed, name, got, want)
			}
			again, err := Solve(ctx, p, Options{Start: start})
			if err != nil || !reflect.DeepEqual(warm, again) {
				t.Errorf("seed %d from %s: the same start gives another answer", seed, name)
			}
		}
	}
}

// What minimums of groups feed in starts on the routes of the plan, too.
func TestWarmWithMinimums(t *testing.T) {
	p := fleetgen.Fleet(fleetgen.Config{Sources: 100, Engines: 100, Eligible: 0.5, Load: 0.5}, 7)
	for s := range p.Sources {
		col, demand := p.Col[p.Row[s]:p.Row[s+1]], p.Sources[s].DemandRPS
		half := len(col) / 2
		p.Groups = append(p.Groups,
			model.Group{Name: "outer", Source: s, Engines: col[:half], MinRPS: 0.25 * demand, MaxRPS: 0.5 * demand},
			model.Group{Name: "inner", Source: s, Engines: col[:half/2], MinRPS: 0.125 * demand, MaxRPS: 0.5 * demand})
	}
	cold, err := Solve(context.Background(), p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	warm, err := Solve(context.Background(), p, Options{Start: cold.Flows})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := objective(t, p, warm), objective(t, p, cold); !(math.Abs(got-want) <= 1e-9*want) {
		t.Errorf("objective %.12g, without a start %.12g", got, want)
	}
	if warm.Iterations > cold.Iterations/10 {
		t.Errorf("%d pivots from the optimum, %d from nothing", warm.Iterations, cold.Iterations)
	}
}

// foundWarm are odd fleets of which a tiny source was served too little, or as
// fairly as rounding lets it be.
var foundWarm = []uint64{30975, 68902, 95203, 6670}

// Odd fleets from the plan of another demand, and without one of their engines.
func TestOddFleetsWarm(t *testing.T) {
	ctx := context.Background()
	warm := 0
	seeds := slices.Clone(foundWarm)
	for seed := range uint64(*oddFleets) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		p := fleetgen.Odd(seed)
		was, err := Solve(ctx, p, Options{})
		if err != nil {
			continue
		}
		lost := p.Without(int(seed) % len(p.Engines))
		drift(p, seed)
		for _, m := range []struct {
			p     *model.Problem
			start []model.Flow
		}{{p, was.Flows}, {lost.Problem, lost.Narrow(was.Flows)}} {
			s, err := Solve(ctx, m.p, Options{Start: m.start})
			var infeasible *model.Infeasible
			if errors.As(err, &infeasible) {
				continue
			}
			if err != nil {
				t.Errorf("fleet %d: %v", seed, err)
				continue
			}
			warm++
			if _, err := certify.Check(m.p, s); err != nil {
				t.Errorf("fleet %d: %v", seed, err)
			}
		}
	}
	if warm < *oddFleets {
		t.Errorf("only %d solved", warm)
	}
}
