package network

import (
	"context"
	"errors"
	"flag"
	"testing"

	"github.com/irb-project/irb/solve/certify"
	"github.com/irb-project/irb/solve/fleetgen"
	"github.com/irb-project/irb/solve/model"
)

var oddFleets = flag.Int("odd", 300, "number of odd fleets to solve")

func TestOddFleets(t *testing.T) {
	solved, shed, short := 0, 0, 0
	for seed := range uint64(*oddFleets) {
		p := fleetgen.Odd(seed)
		s, err := Solve(context.Background(), p, Options{})
		var infeasible *model.Infeasible
		switch {
		case errors.As(err, &infeasible):
			short++
		case err != nil:
			t.Errorf("fleet %d: %v", seed, err)
		default:
			solved++
			if len(s.ShedCuts) > 0 {
				shed++
			}
			if r, err := certify.Check(p, s); err != nil {
				t.Errorf("fleet %d: %v\n%+v", seed, err, r)
			}
		}
	}
	t.Logf("%d solved (%d of them shed), %d infeasible", solved, shed, short)
}
