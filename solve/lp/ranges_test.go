//go:build cgo

package lp

import (
	"context"
	"math"
	"testing"

	"github.com/irb-project/irb/solve/rows/rowstest"
)

const refWork = 1024 + 4*256

// minimize 2 x + 3 y, x + y >= 4, x <= 3 as a row: x may cost up to 3 before y
// takes over, y down to 2; the limit may go from 0 to 4.
func TestRangesByHand(t *testing.T) {
	a, err := diet().solve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	up, down, err := a.costRange([]int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(up[0]-1) > 1e-6 || math.Abs(down[1]-1) > 1e-6 {
		t.Errorf("costs may rise by %v and fall by %v, want x to rise by 1 and y to fall by 1", up, down)
	}
	up, down, err = a.valueRange([]int{2 + 1})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(up[0]-1) > 1e-6 || math.Abs(down[0]-3) > 1e-6 {
		t.Errorf("the limit may rise by %v and fall by %v, want 1 and 3", up[0], down[0])
	}
	if up, _, err := a.valueRange(nil); err != nil || len(up) != 0 {
		t.Errorf("ranging nothing: %v, %v", up, err)
	}
}

// With flat delays and a-1 full, us-east's route to c-1 may be up to 63 ms
// faster before a-1 is left, and a-1's limit is worth 63 ms from 40 (what
// us-west leaves of c-1) to 120 (all of us-east).
func TestRangesTwoRegions(t *testing.T) {
	ctx := context.Background()
	p := rowstest.TwoRegions(1, false, true)
	sol, err := Solve(ctx, p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if price := sol.EnginePrice[0] * refWork; math.Abs(price-63) > 1e-6 {
		t.Errorf("limit price of a-1 is %v ms per reference request, want 63", price)
	}
	r, err := Ranges(ctx, p, sol, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Routes) != 3 || math.Abs(r.Routes[0].HighMs-r.Routes[0].NowMs-63) > 1e-6 || math.Abs(r.Routes[1].NowMs-r.Routes[1].LowMs-63) > 1e-6 {
		t.Errorf("routes %+v, want 63 ms up for a-1 and 63 ms down for c-1", r.Routes)
	}
	if len(r.Limits) != 1 || r.Limits[0].Engine != 0 ||
		math.Abs(r.Limits[0].Low/refWork-80) > 1e-4 || math.Abs(r.Limits[0].High/refWork-120) > 1e-4 {
		t.Errorf("limits %+v, want a-1 from 80 to 120 reference requests/s (%v work)", r.Limits, refWork)
	}
}
