//go:build cgo

package lp

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/irb-project/irb/solve/certify"
	"github.com/irb-project/irb/solve/interior"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/rows"
	"github.com/irb-project/irb/solve/rows/rowstest"
)

// Three ways to one optimum, on programs with everything in them: interior
// point, column generation and one plain linear program; CLP's judgement and
// the certificate confirm each other.
func TestSolversAgree(t *testing.T) {
	ctx := context.Background()
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 5))
		shape := rowstest.RandomShape(rng)
		p := rowstest.Problem(shape, rng)
		g := rows.New(p, demands(p))
		want, err := interior.Solve(ctx, p)
		got, lpErr := Solve(ctx, p, Options{})
		if infeasible := (*model.Infeasible)(nil); errors.As(err, &infeasible) {
			if !errors.As(lpErr, &infeasible) {
				t.Errorf("seed %d %+v: interior: %v, lp: %v", seed, shape, err, lpErr)
			}
			continue
		}
		if err != nil || lpErr != nil {
			t.Errorf("seed %d %+v: interior: %v, lp: %v", seed, shape, err, lpErr)
			continue
		}
		objective := g.Objective(want.Flows)
		if other := g.Objective(got.Flows); math.Abs(other-objective) > 1e-6*objective {
			t.Errorf("seed %d %+v: interior found %.9g, column generation %.9g", seed, shape, objective, other)
		}
		if _, err := certify.Check(p, got); err != nil {
			t.Errorf("seed %d %+v: column generation: %v", seed, shape, err)
		}
		v, err := Judge(ctx, p, want)
		if err != nil || !v.Agrees {
			t.Errorf("seed %d %+v: verdict %+v, %v", seed, shape, v, err)
		}
		if seed%4 == 0 {
			fine, err := Fine(ctx, p, 64)
			if err != nil {
				t.Errorf("seed %d %+v: fine: %v", seed, shape, err)
			} else if other := g.Objective(fine.Flows); math.Abs(other-objective) > 1e-6*objective {
				t.Errorf("seed %d %+v: interior found %.9g, the fine program %.9g", seed, shape, objective, other)
			}
		}
	}
}
