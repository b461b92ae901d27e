//go:build cgo

package lp

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/rows"
	"github.com/irb-project/irb/solve/rows/rowstest"
)

// The two regions by hand: 2 + 14720 v_a = 65 + 14720 v_c, so a-1 carries
// 89.0791 and c-1 70.9209 req/s, 30.9209 of them us-east's.
func TestSolveTwoRegionsQueueing(t *testing.T) {
	p := rowstest.TwoRegions(0.9, false, false)
	sol, err := Solve(context.Background(), p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{89.0791, 30.9209, 40}
	if len(sol.Flows) != 3 {
		t.Fatalf("flows %v, want %v", sol.Flows, want)
	}
	for i, f := range sol.Flows {
		if math.Abs(f.RPS-want[i]) > 1e-3 {
			t.Errorf("pair %d carries %.4f req/s, want %.4f", f.Pair, f.RPS, want[i])
		}
	}
	if objective := rows.New(p, demands(p)).Objective(sol.Flows); math.Abs(objective-925509.5637) > 1e-3 {
		t.Errorf("objective %.4f, want 925509.5637", objective)
	}
}

// Split work is the same as single work where all requests have the reference
// mix.
func TestSplitIsSingleAtReferenceMix(t *testing.T) {
	p := rowstest.TwoRegions(0.9, true, false)
	sol, err := Solve(context.Background(), p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if objective := rows.New(p, demands(p)).Objective(sol.Flows); math.Abs(objective-925509.5637) > 1e-3 {
		t.Errorf("objective %.4f, want 925509.5637 as for single work", objective)
	}
}

func TestSolveInfeasible(t *testing.T) {
	p := rowstest.TwoRegions(0.9, false, false)
	p.Sources[0].DemandRPS = 200 // 240 req/s, the engines take 162
	_, err := Solve(context.Background(), p, Options{})
	var infeasible *model.Infeasible
	if !errors.As(err, &infeasible) {
		t.Fatalf("error %v, want *model.Infeasible", err)
	}
	if math.Abs(infeasible.ShortRPS-78) > 1e-6 || len(infeasible.Sources) != 2 || len(infeasible.Engines) != 2 {
		t.Errorf("%+v, want both sources short of 78 req/s at both engines", infeasible)
	}
}

func TestJudgeDisagrees(t *testing.T) {
	p := rowstest.TwoRegions(0.9, false, false)
	sol, err := Solve(context.Background(), p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	sol.Flows[0].RPS -= 5 // a-1 -> c-1: feasible, but worse
	sol.Flows[1].RPS += 5
	v, err := Judge(context.Background(), p, sol)
	if err != nil || v.Agrees || v.Gap < 1e-5 {
		t.Errorf("verdict %+v, %v on a plan that is not optimal", v, err)
	}
	sol.ServedRPS = []float64{240, 40}
	if _, err := Judge(context.Background(), p, sol); err == nil {
		t.Error("judged a plan that serves more than there is")
	}
}
