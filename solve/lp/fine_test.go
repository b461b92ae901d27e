//go:build cgo

package lp

import (
	"context"
	"math"
	"testing"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/rows"
)

func TestFineTwoRegions(t *testing.T) {
	p := twoRegions(t, h100, 0.9)
	sol, err := Fine(context.Background(), p, 64)
	if err != nil {
		t.Fatal(err)
	}
	g := rows.New(p, demands(p))
	objective := g.Objective(sol.Flows)
	if math.Abs(objective-925509.5637) > 1 {
		t.Errorf("objective %.6f, want 925509.5637 within 1e-6 of it", objective)
	}
}

// twoRegions is examples/two-regions as a problem: us-east (2 ms from a-1, 65
// from c-1) with 120 req/s and us-west (2 ms from c-1 alone) with 40.
func twoRegions(t testing.TB, table tableProfile, maxUtilization float64) *model.Problem {
	t.Helper()
	return &model.Problem{
		Work: model.WorkSingle,
		Sources: []model.Source{
			{Cluster: "us-east", DemandRPS: 120, PromptTokens: 1024, OutputTokens: 256, Work: 2048},
			{Cluster: "us-west", DemandRPS: 40, PromptTokens: 1024, OutputTokens: 256, Work: 2048},
		},
		Engines: []model.EngineNode{
			table.single(t, "a-1", 100, maxUtilization),
			table.single(t, "c-1", 80, maxUtilization),
		},
		Row:    []int{0, 2, 3},
		Col:    []int32{0, 1, 1},
		CostMs: []float64{2 + table.baseMs(), 65 + table.baseMs(), 2 + table.baseMs()},
	}
}
