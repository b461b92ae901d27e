//go:build cgo

package lp

import (
	"context"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/rows"
)

// Available says whether this build has CLP.
const Available = true

// Solve solves p by column generation with adaptive chords.
func Solve(ctx context.Context, p *model.Problem, opts Options) (*model.Solution, error) {
	return generate(ctx, rows.New(p, demands(p)), opts)
}
