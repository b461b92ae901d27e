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
