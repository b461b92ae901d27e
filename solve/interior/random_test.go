package interior

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/irb-project/irb/solve/certify"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/rows/rowstest"
)

// Every random program is solved to a certificate, or is infeasible.
func TestRandomCertified(t *testing.T) {
	infeasible := 0
	const n = 300
	for seed := range uint64(n) {
		rng := rand.New(rand.NewPCG(seed, 7))
		shape := rowstest.RandomShape(rng)
		p := rowstest.Problem(shape, rng)
		sol, err := Solve(context.Background(), p)
		if errors.As(err, new(*model.Infeasible)) {
			infeasible++
			continue
		}
		if err != nil {
			t.Errorf("seed %d %+v: %v", seed, shape, err)
			continue
		}
		if r, err := certify.Check(p, sol); err != nil || r.Gap > 1e-8 {
			t.Errorf("seed %d %+v: gap %.3g: %v", seed, shape, r.Gap, err)
		}
	}
	if infeasible > n/3 {
		t.Errorf("%d of %d programs are infeasible, too many to test anything", infeasible, n)
	}
}
