//go:build cgo

package lp

import (
	"context"
	"errors"
	"flag"
	"math"
	"testing"

	"github.com/irb-project/irb/solve/fleetgen"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/network"
	"github.com/irb-project/irb/solve/rows"
)

var oddFleets = flag.Int("odd", 300, "number of odd fleets to solve")

// The network simplex and one plain linear program find the same optimum of
// what is served, and agree on what cannot be served at all.
func TestOddFleetsAgree(t *testing.T) {
	ctx := context.Background()
	solved, short := 0, 0
	for seed := range uint64(*oddFleets) {
		p := fleetgen.Odd(seed)
		s, err := network.Solve(ctx, p, network.Options{})
		var infeasible *model.Infeasible
		switch {
		case errors.As(err, &infeasible):
			short++
			p.Shed = false
			if fine, err := Fine(ctx, p, 16); err == nil && infeasible.ShortWork > visible*allWork(p) {
				t.Errorf("fleet %d: %v, but CLP serves all at %g", seed, infeasible, objective(p, fine))
			}
			continue
		case err != nil:
			t.Errorf("fleet %d: %v", seed, err)
			continue
		}
		solved++
		serving := p.Serving(s.ServedRPS)
		fine, err := Fine(ctx, serving.Problem, 16)
		if err != nil {
			t.Errorf("fleet %d: CLP: %v", seed, err)
			continue
		}
		got, want := objective(p, s), objective(p, serving.Widen(p, fine))
		if !(math.Abs(got-want) <= 1e-6*want) {
			t.Errorf("fleet %d: the network simplex found %.9g, CLP %.9g", seed, got, want)
		}
	}
	t.Logf("%d solved, %d infeasible", solved, short)
}

// visible is the part of all demand below which a shortage, of a tiny source,
// is within CLP's tolerance.
const visible = 1e-8

func allWork(p *model.Problem) (work float64) {
	for _, s := range p.Sources {
		work += s.DemandRPS * s.Work
	}
	return work
}

func objective(p *model.Problem, s *model.Solution) float64 {
	return rows.New(p, s.ServedRPS).Objective(s.Flows)
}
