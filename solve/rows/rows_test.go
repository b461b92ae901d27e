package rows_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/irb-project/irb/solve/certify"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/rows"
	"github.com/irb-project/irb/solve/rows/rowstest"
)

// Whatever the prices, the bound is below the objective of any flows that keep
// all rows, and it is the bound that the certificate computes apart from this
// package.
func TestBoundHoldsForAnyPrices(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		shape := rowstest.RandomShape(rng)
		shape.Bounds, shape.Groups, shape.Load = false, false, 0.1
		p := rowstest.Problem(shape, rng)
		served, flows := oneEngineEach(p, rng)
		g := rows.New(p, served)
		y := make([]float64, len(g.Rows))
		for j := range y {
			y[j] = math.Exp(4*rng.Float64()-2) * rng.Float64()
		}
		bound, _ := g.Bound(y)
		objective := g.Objective(flows)
		if keepsRows(g, flows) && bound > objective*(1+1e-12) {
			t.Errorf("seed %d %+v: bound %g is above the objective %g", seed, shape, bound, objective)
		}
		report, _ := certify.Check(p, g.Solution("any", 0, flows, y))
		if math.Abs(report.BoundMsRPS-bound) > 1e-9*(math.Abs(bound)+objective) || math.Abs(report.ObjectiveMsRPS-objective) > 1e-9*objective {
			t.Errorf("seed %d %+v: objective %g, bound %g; the certificate has %g and %g", seed, shape, objective, bound, report.ObjectiveMsRPS, report.BoundMsRPS)
		}
	}
}

// oneEngineEach sends each source to one engine that it may use.
func oneEngineEach(p *model.Problem, rng *rand.Rand) (served []float64, flows []model.Flow) {
	for s, src := range p.Sources {
		served = append(served, src.DemandRPS)
		flows = append(flows, model.Flow{Pair: p.Row[s] + rng.IntN(p.Row[s+1]-p.Row[s]), RPS: src.DemandRPS})
	}
	return served, flows
}

func keepsRows(g *rows.Program, flows []model.Flow) bool {
	for j, t := range g.Activity(flows) {
		if t > g.Rows[j].Max || t < g.Rows[j].Min {
			return false
		}
	}
	return true
}

func TestPricesRoundTrip(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p := rowstest.Problem(rowstest.RandomShape(rng), rng)
		served, flows := oneEngineEach(p, rng)
		g := rows.New(p, served)
		y := make([]float64, len(g.Rows))
		for j := range y {
			y[j] = rng.NormFloat64()
		}
		g.Clean(y)
		for j, back := range g.RowPrices(g.Solution("any", 0, flows, y)) {
			if back != y[j] {
				t.Fatalf("seed %d: row %d: price %g came back as %g", seed, j, y[j], back)
			}
		}
	}
}

// A price that no limit can have would make the bound -Inf or NaN.
func TestCleanRemovesImpossiblePrices(t *testing.T) {
	p := rowstest.Problem(rowstest.Shape{Sources: 1, Engines: 2, Load: 0.5}, rand.New(rand.NewPCG(1, 1)))
	p.Groups = []model.Group{{Source: 0, Engines: []int32{0}, MinRPS: 0.1, MaxRPS: math.Inf(1)}}
	g := rows.New(p, []float64{p.Sources[0].DemandRPS})
	y := []float64{-1, math.NaN(), 5} // engines' delays, the group's minimum
	g.Clean(y)
	if y[0] != 0 || y[1] != 0 || y[2] != 0 {
		t.Errorf("cleaned prices %v, want all 0", y)
	}
	y = []float64{2, 1, -5}
	g.Clean(y)
	if y[0] != 2 || y[1] != 1 || y[2] != -5 {
		t.Errorf("cleaned prices %v, want [2 1 -5] as they were", y)
	}
}
