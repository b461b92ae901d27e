// Package lp solves and judges the program through CLP, as a linear program
// over pairs and chords of the delays; it is the only importer of lanl/clp.
//
// It is the second opinion: Judge confirms an optimum by CLP's own duals,
// Ranges says how far a route or a limit may change, Solve and Fine find the
// optimum by themselves, far slower than solve/network and solve/interior. A
// build without cgo has none of them and says so.
package lp

import (
	"errors"

	"github.com/irb-project/irb/solve/model"
)

// ErrNoCLP is what every function of this package returns in a build without
// cgo.
var ErrNoCLP = errors.New("this irbctl was built without cgo and has no CLP: build it with CGO_ENABLED=1, a C++ compiler and CLP's headers (Debian: coinor-libclp-dev)")

// Options are the choices of a solve.
type Options struct {
	// Gap is the gap to the bound, relative to the objective, at which column
	// generation ends; 0: 1e-9.
	Gap float64
}

// Verdict is what CLP says of a solution. Objectives in ms x req/s.
type Verdict struct {
	Objective float64 // of the solution judged
	Found     float64 // of CLP's own flows, at exact delays, and of what they miss at its prices
	Bound     float64 // no plan costs less: CLP's duals over all pairs and exact conjugates
	Gap       float64 // (Objective - Bound) / Objective
	Agrees    bool    // Gap is at most JudgeGap, and CLP found nothing better by more
}

// JudgeGap is the relative gap up to which Judge agrees.
const JudgeGap = 1e-6

// Ranging says how far single figures may change before the plan takes other
// routes or other segments of load: CLP's ranging of the program around the
// plan, a first guess for break-evens.
type Ranging struct {
	Routes []RouteRange // in order of pair
	Limits []LimitRange // in order of engine, those at their limit
}

// RouteRange is the range of a pair's latency in ms in which the plan's routes
// stay the same. A used pair has both ends; an unused one is used below LowMs.
type RouteRange struct {
	Pair          int
	Used          bool
	NowMs         float64
	LowMs, HighMs float64 // -Inf, +Inf: no end
}

// LimitRange is the range of an engine's limit, in work/s, in which its price
// stays the same.
type LimitRange struct {
	Engine    int
	Now       float64
	Low, High float64
}

func demands(p *model.Problem) []float64 {
	d := make([]float64, len(p.Sources))
	for s := range d {
		d[s] = p.Sources[s].DemandRPS
	}
	return d
}
