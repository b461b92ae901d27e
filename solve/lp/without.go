//go:build !cgo

package lp

import (
	"context"
	"errors"

	"github.com/irb-project/irb/solve/model"
)

// Available says whether this build has CLP.
const Available = false

// ErrNoCLP is what every function of this package returns in a build without
// cgo.
var ErrNoCLP = errors.New("this irbctl was built without cgo and has no CLP: build it with CGO_ENABLED=1, a C++ compiler and CLP's headers (coinor-libclp-dev)")

// Solve returns ErrNoCLP.
func Solve(context.Context, *model.Problem, Options) (*model.Solution, error) { return nil, ErrNoCLP }

// Fine returns ErrNoCLP.
func Fine(context.Context, *model.Problem, int) (*model.Solution, error) { return nil, ErrNoCLP }
