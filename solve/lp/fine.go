//go:build cgo

package lp

import (
	"context"
	"fmt"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/rows"
)

// Fine solves p as one plain linear program over all pairs, each delay cut
// into the given number of equal segments, then again with segments 1/8 as
// wide around the loads found, until the bound of CLP's own duals is within
// 1e-7 of the objective or 8 programs were solved. It shares no pricing and
// no polish with Solve and is the oracle of tests; the time is CLP's, minutes
// at 1000 x 1000.
func Fine(ctx context.Context, p *model.Problem, segments int) (*model.Solution, error) {
	if segments < 1 {
		return nil, fmt.Errorf("lp: %d segments, want at least 1", segments)
	}
	g := rows.New(p, demands(p))
	pairs := make([]int, p.Pairs())
	for k := range pairs {
		pairs[k] = k
	}
	grids := uniformGrids(g, segments)
	fraction := 1 / float64(segments)
	for round := 1; ; round++ {
		m := newMaster(g, pairs, grids)
		if err := m.solve(ctx); err != nil {
			return nil, err
		}
		flows, y := m.flows(), m.prices()
		bound, _ := g.Bound(y)
		if round == 8 || rows.Gap(g.Objective(flows), bound) <= 1e-7 {
			return g.Solution("piecewise linear program (CLP)", round, flows, y), nil
		}
		loads := g.Activity(flows)
		for j := range grids {
			if r := &g.Rows[j]; r.Sink != nil {
				grids[j] = focusedGrid(r, loads[j], fraction*r.Max)
			}
		}
		fraction /= 8
	}
}
