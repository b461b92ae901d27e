//go:build cgo

package lp

import (
	"context"
	"math"
	"testing"

	"github.com/irb-project/irb/solve/rows"
	"github.com/irb-project/irb/solve/rows/rowstest"
)

func TestFineTwoRegions(t *testing.T) {
	p := rowstest.TwoRegions(0.9, false, false)
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
