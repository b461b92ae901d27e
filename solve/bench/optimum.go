package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/certify"
	"github.com/irb-project/irb/solve/model"
)

// instance is a program with its certified optimum, which is what a peer's
// answer is judged by.
type instance struct {
	fleet
	problem   *model.Problem // of what is served: peers are spared shedding
	optimum   *model.Solution
	loads     []float64 // work/s per engine at the optimum
	transport *transport
	tolerant  [][]float64 // per engine, see tolerantGrid
}

func newInstance(ctx context.Context, f fleet) (*instance, error) {
	p := f.problem()
	optimum, report, err := solve.Certified(ctx, p, nil)
	if err == nil && p.Shed {
		p = p.Serving(optimum.ServedRPS).Problem
		optimum, report, err = solve.Certified(ctx, p, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f, err)
	}
	in := &instance{
		fleet: f, problem: p, optimum: optimum,
		loads: loads(p, optimum.Flows), transport: newTransport(p),
	}
	in.tolerant = coarsestGrids(p, in.loads, chordShare*certify.GapTol*report.ObjectiveMsRPS)
	return in, nil
}

// chordShare is the part of the gap that chords may use up; the rest is for the
// tolerances and rounding of the peers.
const chordShare = 0.9

// coarsestGrids returns tolerantGrids with about as few segments as can be
// while all chords together are no more than budget above the delays at the
// optimum, so that the optimum for chords is within budget of it. A peer's user
// could not know; it spares the peer segments.
func coarsestGrids(p *model.Problem, loads []float64, budget float64) [][]float64 {
	limits := 0.0
	for e := range p.Engines {
		limits += p.Engines[e].Limit
	}
	cut := func(tolerance float64) (grids [][]float64, above float64) {
		grids = make([][]float64, len(p.Engines))
		for e := range p.Engines {
			grids[e] = tolerantGrid(p.Engines[e].Delay, tolerance*p.Engines[e].Limit/limits)
			above += aboveDelay(p.Engines[e].Delay, grids[e], loads[e])
		}
		return grids, above
	}
	tolerance := budget
	grids, above := cut(tolerance)
	for above > 0 { // no chord is above where no engine has a load inside one
		tolerance *= 2
		coarser, more := cut(tolerance)
		if more > budget || sameSize(coarser, grids) {
			break
		}
		grids, above = coarser, more
	}
	return grids
}

func sameSize(a, b [][]float64) bool {
	return slices.EqualFunc(a, b, func(x, y []float64) bool { return len(x) == len(y) })
}

// loads returns the work/s of every engine.
func loads(p *model.Problem, flows []model.Flow) []float64 {
	y := make([]float64, len(p.Engines))
	s := 0
	for _, f := range flows {
		for f.Pair >= p.Row[s+1] {
			s++
		}
		y[p.Col[f.Pair]] += f.RPS * p.Sources[s].Work
	}
	return y
}

// judge returns how far a peer's flows are from the optimum, relative, as the
// certificate prices them. Flows that break a row by more are an error.
func (in *instance) judge(flow []float64) (s *model.Solution, gap float64, err error) {
	s = in.transport.solution(in.problem, flow, in.optimum)
	report, err := certify.Check(in.problem, s)
	if !(report.ObjectiveMsRPS > 0) || report.MaxResidual > certify.GapTol {
		return s, 0, fmt.Errorf("wrong answer: %w", err)
	}
	gap = (report.ObjectiveMsRPS - report.BoundMsRPS) / report.ObjectiveMsRPS
	if gap < -certify.GapTol {
		return s, gap, fmt.Errorf("wrong answer: %w", err)
	}
	return s, gap, nil
}
