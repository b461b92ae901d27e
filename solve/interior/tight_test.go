package interior

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/irb-project/irb/solve/certify"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/network"
	"github.com/irb-project/irb/solve/rows/rowstest"
)

// Where demand is shed, what is served fills engines to Margin of their limits:
// programs with next to no interior.
func TestTightCertified(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 11))
		shape := rowstest.RandomShape(rng)
		shape.Load = 0.8 + rng.Float64()
		shape.Priorities = 1 + rng.IntN(3)
		shape.Caps, shape.Groups = false, false
		shape.Tables = true
		p := rowstest.Problem(shape, rng)
		p.Shed = true
		served, cuts, err := network.Serve(context.Background(), p)
		if errors.As(err, new(*model.Infeasible)) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for s := range served {
			served[s] *= 1 - Margin
		}
		serving := p.Serving(served)
		sol, err := Solve(context.Background(), serving.Problem)
		if err != nil {
			t.Errorf("seed %d %+v: %v", seed, shape, err)
			continue
		}
		sol = serving.Widen(p, sol)
		sol.ServedRPS, sol.ShedCuts = served, cuts
		if r, err := certify.Check(p, sol); err != nil || r.Gap > 1e-8 {
			t.Errorf("seed %d %+v: gap %.3g: %v", seed, shape, r.Gap, err)
		}
	}
}
