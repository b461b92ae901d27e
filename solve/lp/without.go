//go:build !cgo

package lp

import (
	"context"

	"github.com/irb-project/irb/solve/model"
)

// Available says whether this build has CLP.
const Available = false

// Solve returns ErrNoCLP.
func Solve(context.Context, *model.Problem, Options) (*model.Solution, error) { return nil, ErrNoCLP }

// Fine returns ErrNoCLP.
func Fine(context.Context, *model.Problem, int) (*model.Solution, error) { return nil, ErrNoCLP }

// Judge returns ErrNoCLP.
func Judge(context.Context, *model.Problem, *model.Solution) (Verdict, error) {
	return Verdict{}, ErrNoCLP
}

// Ranges returns ErrNoCLP.
func Ranges(context.Context, *model.Problem, *model.Solution, int) (*Ranging, error) {
	return nil, ErrNoCLP
}
