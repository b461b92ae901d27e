//go:build cgo

package lp

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
)

// diet is minimize 2 x + 3 y with x + y >= 4 and x <= 3: x = 3, y = 1, 9.
func diet() *linear {
	l := newLinear(2)
	l.RowLo[0], l.RowHi[0] = 4, math.Inf(1)
	l.RowLo[1], l.RowHi[1] = math.Inf(-1), 3
	l.addColumn(2, 0, math.Inf(1))
	l.addEntry(0, 1)
	l.addEntry(1, 1)
	l.addColumn(3, 0, math.Inf(1))
	l.addEntry(0, 1)
	return l
}

// One more unit of demand costs 3, one more of the limit saves 1: CLP's row
// dual is the derivative by the right-hand side.
func TestRowDualSign(t *testing.T) {
	a, err := diet().solve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(a.Objective-9) > 1e-9 || math.Abs(a.X[0]-3) > 1e-9 || math.Abs(a.X[1]-1) > 1e-9 {
		t.Errorf("objective %v at %v, want 9 at [3 1]", a.Objective, a.X)
	}
	if math.Abs(a.RowDual[0]-3) > 1e-9 || math.Abs(a.RowDual[1]+1) > 1e-9 {
		t.Errorf("row duals %v, want [3 -1]", a.RowDual)
	}
}

func TestSolveOutcomes(t *testing.T) {
	infeasible := diet()
	infeasible.ColHi[1] = 0.5
	unbounded := diet()
	unbounded.Cost[1] = -1
	for name, c := range map[string]struct {
		l    *linear
		want error
	}{
		"infeasible": {infeasible, errInfeasible},
		"unbounded":  {unbounded, errUnbounded},
	} {
		if _, err := c.l.solve(context.Background()); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := diet().solve(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v, want %v", err, context.Canceled)
	}
}

// Each of these would abort the process, panic or be misread by CLP.
func TestValidateRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(*linear)
		want   string
	}{
		"NaN cost":      {func(l *linear) { l.Cost[1] = math.NaN() }, "column 1: cost is NaN"},
		"infinite cost": {func(l *linear) { l.Cost[0] = math.Inf(1) }, "column 0: cost is +Inf"},
		"row -1":        {func(l *linear) { l.Index[0] = -1 }, "column 0: row -1, want 0 to 1"},
		"row too large": {func(l *linear) { l.Index[2] = 2 }, "column 1: row 2, want 0 to 1"},
		"row twice":     {func(l *linear) { l.Index[1] = 0 }, "column 0: row 0 appears twice"},
		"NaN entry":     {func(l *linear) { l.Value[0] = math.NaN() }, "coefficient is NaN"},
		"crossed row":   {func(l *linear) { l.RowLo[1] = 4 }, "row 1: bounds [4, 3]"},
		"NaN row":       {func(l *linear) { l.RowHi[0] = math.NaN() }, "row 0: bounds [4, NaN]"},
		"crossed col":   {func(l *linear) { l.ColHi[0] = -1 }, "column 0: bounds [0, -1]"},
		"short bounds":  {func(l *linear) { l.ColHi = l.ColHi[:1] }, "another length"},
		"empty column":  {func(l *linear) { l.addColumn(1, 0, 1) }, "column 2 has no entries"},
	} {
		l := diet()
		c.damage(l)
		if _, err := l.solve(context.Background()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
	if _, err := newLinear(0).solve(context.Background()); err == nil {
		t.Error("a program without rows was accepted")
	}
}
