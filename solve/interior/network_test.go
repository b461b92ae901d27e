package interior

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/network"
	"github.com/irb-project/irb/solve/rows"
	"github.com/irb-project/irb/solve/rows/rowstest"
)

// Where the program is a network, the network simplex finds the same optimum,
// or the same shortage.
func TestAgreesWithNetwork(t *testing.T) {
	ctx := context.Background()
	compared, short := 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 3))
		shape := rowstest.RandomShape(rng)
		shape.Split, shape.Load = false, 1.3*rng.Float64()
		p := rowstest.Problem(shape, rng)
		if network.Supports(p) != nil || len(p.Caps) > 0 && anyFlat(p) {
			continue
		}
		want, wantErr := network.Solve(ctx, p, network.Options{})
		got, err := Solve(ctx, p)
		var a, b *model.Infeasible
		if errors.As(wantErr, &a) && errors.As(err, &b) {
			short++
			if math.Abs(a.ShortWork-b.ShortWork) > 1e-6*a.DemandWork {
				t.Errorf("seed %d %+v: short of %.9g work/s by the network, %.9g here", seed, shape, a.ShortWork, b.ShortWork)
			}
			continue
		}
		if wantErr != nil || err != nil {
			t.Errorf("seed %d %+v: network: %v, interior: %v", seed, shape, wantErr, err)
			continue
		}
		compared++
		g := rows.New(p, want.ServedRPS)
		if x, y := g.Objective(want.Flows), g.Objective(got.Flows); math.Abs(x-y) > 1e-6*math.Abs(x) {
			t.Errorf("seed %d %+v: network found %.9g, interior %.9g", seed, shape, x, y)
		}
	}
	if compared < 100 || short < 20 {
		t.Errorf("compared %d optima and %d shortages, too few to mean anything", compared, short)
	}
}

// anyFlat says whether the delay of some engine never grows.
func anyFlat(p *model.Problem) bool {
	for e := range p.Engines {
		if last, _ := p.Engines[e].Delay.Marginal(p.Engines[e].Limit); last == 0 {
			return true
		}
	}
	return false
}
