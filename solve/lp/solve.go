//go:build cgo

package lp

import (
	"context"
	"errors"

	"github.com/irb-project/irb/solve/interior"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/rows"
)

// Available says whether this build has CLP.
const Available = true

const method = "column generation (CLP)"

// Solve returns an optimum of p, all of whose demand is routed, by column
// generation with adaptive chords. The error is a *model.Infeasible where that
// cannot be.
func Solve(ctx context.Context, p *model.Problem, opts Options) (*model.Solution, error) {
	gap := targetGap
	if opts.Gap > 0 {
		gap = opts.Gap
	}
	sol, err := generate(ctx, rows.New(p, demands(p)), gap)
	if errors.Is(err, errInfeasible) {
		if infeasible := interior.Explain(ctx, p); infeasible != nil {
			return nil, infeasible
		}
	}
	return sol, err
}
