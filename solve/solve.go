// Package solve runs the stages of one solve, from a fleet to a certified
// plan, and builds the snapshot that carries the plan to the agents.
package solve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/irb-project/irb/solve/certify"
	"github.com/irb-project/irb/solve/interior"
	"github.com/irb-project/irb/solve/lp"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/network"
	"github.com/irb-project/irb/solve/pool"
	"github.com/irb-project/irb/solve/reason"
)

// Options are the choices of one solve that are no part of the fleet.
type Options struct {
	Previous      model.Previous
	Work          model.WorkKind // WorkAuto or "": the policy's
	SplitPairsMax int            // pairs above which work = "auto" takes single; 0: no limit
	// Progress is told the stage that begins; nil: nobody listens.
	Progress func(stage string)
}

// Plan is a certified answer with everything that it was made from.
type Plan struct {
	*model.Compiled
	Solution *model.Solution
	Report   certify.Report
	Reader   *reason.Reader
	Elapsed  time.Duration // from model to certified result
}

// ErrNoDemand is a fleet in which no source has demand.
var ErrNoDemand = errors.New("no source has demand above 0; there is nothing to plan")

// FleetError is why no program can be made of a fleet.
type FleetError struct{ Cause error }

func (e *FleetError) Error() string { return e.Cause.Error() }
func (e *FleetError) Unwrap() error { return e.Cause }

// Solve finds and certifies the plan of least total latency for a fleet.
//
// It returns *model.Infeasible, worded, where demand cannot be served.
func Solve(ctx context.Context, fleet *model.Fleet, opts Options) (*Plan, error) {
	progress := opts.Progress
	if progress == nil {
		progress = func(string) {}
	}
	progress("compiling the program")
	compiled, err := model.Compile(fleet, model.CompileOptions{
		Previous: opts.Previous, Work: opts.Work, SplitPairsMax: opts.SplitPairsMax,
	})
	if err != nil {
		return nil, &FleetError{err}
	}
	if len(compiled.Sources) == 0 {
		return nil, ErrNoDemand
	}
	return solveCompiled(ctx, compiled, progress)
}

func solveCompiled(ctx context.Context, compiled *model.Compiled, progress func(string)) (*Plan, error) {
	start := time.Now()
	progress(fmt.Sprintf("solving %d sources x %d engines, %d pairs", len(compiled.Sources), len(compiled.Engines), compiled.Pairs()))
	solution, report, err := Certified(ctx, compiled.Problem, nil)
	if err != nil {
		return nil, wordInfeasible(compiled, err)
	}
	plan := &Plan{
		Compiled: compiled, Solution: solution, Report: report,
		Reader: reason.NewReader(compiled, solution), Elapsed: time.Since(start),
	}
	plan.warnModelApart()
	plan.warnBeyondProfile()
	return plan, nil
}

// Certified finds and certifies the optimum of a program, what is identical in
// it merged. It takes the network simplex where the program is a network, the
// interior point method for the rest, or should the first one fail, and column
// generation through CLP should that fail too: what counts is the certificate,
// not who found the answer. start are the flows of a
// plan of nearly the same program, nil: what the stay terms would keep.
//
// It returns *model.Infeasible where demand cannot be served.
func Certified(ctx context.Context, p *model.Problem, start []model.Flow) (*model.Solution, certify.Report, error) {
	merged := pool.Of(p)
	simplex := func(ctx context.Context, m *model.Problem) (*model.Solution, error) {
		if merged != nil {
			return simplex(ctx, m, merged.Gather(start))
		}
		return simplex(ctx, m, start)
	}
	var failed error
	for _, method := range []method{simplex, served(interior.Solve), served(columnGeneration)} {
		solution, err := throughPool(ctx, p, merged, method)
		if err == nil {
			oneMore(p, solution)
			var report certify.Report
			if report, err = certify.Check(p, solution); err == nil {
				return solution, report, nil
			}
		}
		var infeasible *model.Infeasible
		if errors.As(err, &infeasible) || ctx.Err() != nil {
			return nil, certify.Report{}, err
		}
		if errors.Is(err, lp.ErrNoCLP) {
			err = fmt.Errorf("%w; column generation was not tried, as this irbctl was built without CLP", failed)
		}
		failed = err
	}
	return nil, certify.Report{}, failed
}

// method finds the optimum of a program, or a *model.Infeasible.
type method func(context.Context, *model.Problem) (*model.Solution, error)

func columnGeneration(ctx context.Context, p *model.Problem) (*model.Solution, error) {
	return lp.Solve(ctx, p, lp.Options{})
}

// throughPool solves the merged program, nil: p itself.
func throughPool(ctx context.Context, p *model.Problem, merged *pool.Pooling, method method) (*model.Solution, error) {
	if merged == nil {
		return method(ctx, p)
	}
	solution, err := method(ctx, merged.Problem)
	var infeasible *model.Infeasible
	switch {
	case errors.As(err, &infeasible):
		return nil, merged.ExpandError(infeasible)
	case err != nil:
		return nil, err
	}
	return merged.Expand(solution), nil
}

// simplex decides by itself what is served, and divides evenly what ties.
func simplex(ctx context.Context, p *model.Problem, start []model.Flow) (*model.Solution, error) {
	if err := network.Supports(p); err != nil {
		return nil, err
	}
	solution, err := network.Solve(ctx, p, network.Options{Start: start})
	if err != nil {
		return nil, err
	}
	return spreadTies(ctx, p, solution), nil
}

// served makes a method that routes all demand one that sheds what does not fit,
// where the program allows it. What is served the network decides first.
func served(route method) method {
	return func(ctx context.Context, p *model.Problem) (*model.Solution, error) {
		if !p.Shed {
			return route(ctx, p)
		}
		limits := *p
		limits.Work = model.WorkSingle
		if err := network.Supports(&limits); err != nil {
			return routeAll(ctx, p, route, err)
		}
		served, cuts, err := network.Serve(ctx, p)
		if err != nil {
			return nil, err
		}
		solution, err := routeServed(ctx, p, route, served)
		if err == nil {
			solution.ShedCuts = cuts
		}
		return solution, err
	}
}

// routeServed routes what is served.
func routeServed(ctx context.Context, p *model.Problem, route method, served []float64) (*model.Solution, error) {
	var failed error
	for _, margin := range insideMargins {
		inside := servedInside(p, served, margin)
		serving := p.Serving(inside)
		serving.Loosen(2 * interior.Margin)
		solution, err := route(ctx, serving.Problem)
		if err != nil {
			failed = err
			continue
		}
		solution = serving.Widen(p, solution)
		solution.ServedRPS = inside
		return solution, nil
	}
	return nil, failed
}

// insideMargins is how much less, relative, is served than just fits, so that
// rounding leaves the interior point method an interior: on 200 sources x 500
// engines, all full, it takes 1.7 s at 1e-8 and fails after 20 s at 1e-10. Where
// limits leave it too little even so, it gets more, at most half of what the
// certificate allows to be refused without a proof.
var insideMargins = [...]float64{1e-8, 1e-7, certify.GapTol / 2}

// servedInside returns what is served, less the margin where some is refused,
// but never less than what minima ask for. Where rounding alone refuses, the
// margin is within it too: no cut proves more.
func servedInside(p *model.Problem, served []float64, margin float64) []float64 {
	inside, minima := slices.Clone(served), p.MinimaRPS()
	for s := range inside {
		switch demand := p.Sources[s].DemandRPS; {
		case served[s] < demand*(1-roundingRPS):
			inside[s] = max(served[s]*(1-margin), min(served[s], minima[s]))
		case served[s] < demand:
			inside[s] = served[s] * (1 - interior.Margin)
		}
	}
	return inside
}

// routeAll serves all demand of a program of which the network cannot say what to
// shed.
func routeAll(ctx context.Context, p *model.Problem, route method, unsupported error) (*model.Solution, error) {
	solution, err := route(ctx, p)
	if errors.As(err, new(*model.Infeasible)) {
		return nil, fmt.Errorf("not all demand can be served, and what to shed is only known where shares and caps are nested or disjoint: %w", unsupported)
	}
	return solution, err
}
