package solve

import (
	"context"
	"errors"
	"flag"
	"testing"

	"github.com/irb-project/irb/solve/fleetgen"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/pool"
)

var oddFleets = flag.Int("odd", 300, "number of odd fleets to solve")

// Odd fleets are certified whatever in them is identical and merged, from the
// simplex or, where that fails, the interior point method.
func TestOddFleets(t *testing.T) {
	merged, infeasible := 0, 0
	for seed := range uint64(*oddFleets) {
		p := fleetgen.Odd(seed)
		_, _, err := Certified(context.Background(), p, nil)
		var none *model.Infeasible
		switch {
		case errors.As(err, &none):
			infeasible++
		case err != nil:
			t.Errorf("fleet %d: %v", seed, err)
		case pool.Of(p) != nil:
			merged++
		}
	}
	if merged < *oddFleets/20 || infeasible > *oddFleets/4 {
		t.Errorf("%d of %d fleets had something to merge, %d were infeasible: the generator has lost its aim", merged, *oddFleets, infeasible)
	}
}
