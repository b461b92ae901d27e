package interior

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/irb-project/irb/solve/certify"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
	"github.com/irb-project/irb/solve/rows"
	"github.com/irb-project/irb/solve/rows/rowstest"
)

const refWork = 1024 + 4*256

// By hand: 2 + 14720 v_a = 65 + 14720 v_c, with single work and with split work
// at the reference mix alike.
func TestTwoRegionsQueueing(t *testing.T) {
	for _, split := range []bool{false, true} {
		p := rowstest.TwoRegions(0.9, split, false)
		sol, err := Solve(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []float64{89.0791, 30.9209, 40} {
			if got := sol.Flows[i]; got.Pair != i || math.Abs(got.RPS-want) > 1e-4 {
				t.Errorf("split %v: pair %d carries %.4f req/s, want pair %d with %.4f", split, got.Pair, got.RPS, i, want)
			}
		}
		if r, err := certify.Check(p, sol); err != nil || math.Abs(r.ObjectiveMsRPS-925509.5637) > 1e-3 {
			t.Errorf("split %v: objective %.4f, %v; want 925509.5637", split, r.ObjectiveMsRPS, err)
		}
	}
}

// With flat delays a-1 fills up, and one more request to it is worth 63 ms.
func TestTwoRegionsFlat(t *testing.T) {
	p := rowstest.TwoRegions(1, false, true)
	sol, err := Solve(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{100, 20, 40} {
		if math.Abs(sol.Flows[i].RPS-want) > 1e-7 {
			t.Errorf("pair %d carries %.9f req/s, want %g", i, sol.Flows[i].RPS, want)
		}
	}
	if price := sol.EnginePrice[0] * refWork; math.Abs(price-63) > 1e-6 {
		t.Errorf("limit price of a-1 is %.9f ms per reference request, want 63", price)
	}
}

func TestInfeasibleNamesTheBindingSet(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(p *model.Problem)
		want   model.Infeasible
	}{
		"too much demand": {
			func(p *model.Problem) { p.Sources[0].DemandRPS = 200 },
			model.Infeasible{Sources: []int{0, 1}, Engines: []int{0, 1}, DemandWork: 240 * refWork, ShortRPS: 78},
		},
		"one source alone": {
			func(p *model.Problem) { p.Sources[1].DemandRPS = 100; p.Sources[0].DemandRPS = 20 },
			model.Infeasible{Sources: []int{1}, Engines: []int{1}, DemandWork: 100 * refWork, ShortRPS: 28},
		},
		"no engine at all": {
			func(p *model.Problem) { p.Row, p.Col, p.CostMs = []int{0, 2, 2}, p.Col[:2], p.CostMs[:2] },
			model.Infeasible{Sources: []int{1}, DemandWork: 40 * refWork, ShortRPS: 40},
		},
		"a cap": {
			func(p *model.Problem) { p.Caps = []model.WorkCap{{Engines: []int32{0, 1}, MaxWork: 150 * refWork}} },
			model.Infeasible{Sources: []int{0, 1}, Caps: []int{0}, DemandWork: 160 * refWork, ShortRPS: 10},
		},
		"a group": {
			func(p *model.Problem) {
				p.Groups = []model.Group{{Source: 1, Engines: []int32{1}, MaxRPS: 30}}
			},
			model.Infeasible{Sources: []int{1}, Groups: []int{0}, DemandWork: 40 * refWork, ShortRPS: 10},
		},
		"upper bounds": {
			func(p *model.Problem) { p.Upper = []float64{60, 50, 40} },
			model.Infeasible{Sources: []int{0}, Pairs: []int{0, 1}, DemandWork: 120 * refWork, ShortRPS: 10},
		},
		"a minimum above its engine's limit": {
			func(p *model.Problem) {
				p.Lower, p.Upper = []float64{95, 0, 0}, []float64{math.Inf(1), math.Inf(1), math.Inf(1)}
			},
			model.Infeasible{Pairs: []int{0}, Engines: []int{0}, Sources: []int{0}, DemandWork: 120 * refWork, ShortRPS: 5},
		},
	} {
		p := rowstest.TwoRegions(0.9, false, false)
		c.damage(p)
		_, err := Solve(context.Background(), p)
		var got *model.Infeasible
		if !errors.As(err, &got) {
			t.Errorf("%s: error %v, want *model.Infeasible", name, err)
			continue
		}
		c.want.ShortWork = c.want.ShortRPS * refWork
		c.want.ReachWork = c.want.DemandWork - c.want.ShortWork
		if !sameInfeasible(got, &c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, *got, c.want)
		}
	}
}

func sameInfeasible(a, b *model.Infeasible) bool {
	near := func(x, y float64) bool { return math.Abs(x-y) <= 1e-6*math.Max(1, math.Abs(y)) }
	return equal(a.Sources, b.Sources) && equal(a.Engines, b.Engines) && equal(a.Caps, b.Caps) &&
		equal(a.Groups, b.Groups) && equal(a.Pairs, b.Pairs) &&
		near(a.DemandWork, b.DemandWork) && near(a.ReachWork, b.ReachWork) && near(a.ShortWork, b.ShortWork) && near(a.ShortRPS, b.ShortRPS)
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Solve(ctx, rowstest.TwoRegions(0.9, true, false)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// Scaling demand and capacity together scales flows and nothing else.
func TestScaleInvariance(t *testing.T) {
	for _, scale := range []float64{1e-6, 1, 1e6} {
		p := rowstest.TwoRegions(0.9, true, false)
		for s := range p.Sources {
			p.Sources[s].DemandRPS *= scale
		}
		for e := range p.Engines {
			n := &p.Engines[e]
			*n = rowstest.Engine(n.Name, n.Capacity/refWork*scale, 0.9, true,
				profile.Curve{V: []float64{0, 1}, Ms: []float64{80, 400}}, profile.Curve{V: []float64{0, 1}, Ms: []float64{12, 30}})
		}
		sol, err := Solve(context.Background(), p)
		if err != nil {
			t.Fatalf("scale %g: %v", scale, err)
		}
		g := rows.New(p, sol.ServedRPS)
		bound, _ := g.Bound(g.RowPrices(sol))
		if objective := g.Objective(sol.Flows); rows.Gap(objective, bound) > 1e-9 {
			t.Errorf("scale %g: objective %g, bound %g", scale, objective, bound)
		}
		// A request's marginal cost grows by 2 x 320 + 2 x 256 x 18 ms per unit of
		// utilization on either engine, and they differ by 63 ms.
		va, vc := sol.Flows[0].RPS/scale/100, (sol.Flows[1].RPS+sol.Flows[2].RPS)/scale/80
		if want := 63.0 / (2*320 + 2*256*18); math.Abs(va-vc-want) > 1e-7 {
			t.Errorf("scale %g: utilizations %g and %g, want a difference of %g", scale, va, vc, want)
		}
	}
}
