package network

import (
	"context"
	"slices"

	"github.com/irb-project/irb/solve/model"
)

// Options are the choices of one solve; the zero value is good.
type Options struct {
	// Start are the flows of a plan of nearly the same problem, in order of
	// pair; nil: what the stay terms would keep, if there are any.
	Start    []model.Flow
	Progress func(stage string) // is told what begins; nil: nobody listens
}

// Solve returns the optimum of m with its prices.
//
// The error is a *model.Infeasible where demand cannot be served, that of
// Supports where m is no network, or the context's.
func Solve(ctx context.Context, m *model.Problem, opts Options) (*model.Solution, error) {
	if m.Work == model.WorkSplit {
		return nil, Supports(m)
	}
	if opts.Progress == nil {
		opts.Progress = func(string) {}
	}
	if opts.Start == nil {
		opts.Start = previous(m)
	}
	p, err := newProgram(m)
	if err != nil {
		return nil, err
	}
	if err := p.checkMinimums(); err != nil {
		return nil, err
	}
	if err := p.checkReach(); err != nil {
		return nil, err
	}
	a := &attempts{program: p, progress: opts.Progress, start: opts.Start}
	var b *builder
	if !m.Shed || p.isSlack(p.over()) {
		if b, err = a.solve(ctx); err != nil {
			return nil, err
		}
		if p.isSlack(b.bypassed()) {
			return b.solution(nil), nil
		}
	}
	if !m.Shed {
		_, long := a.offers()
		return nil, p.explain(ctx, long)
	}
	cuts, err := p.shed(ctx)
	if err != nil {
		return nil, err
	}
	if b, err = a.solve(ctx); err != nil {
		return nil, err
	}
	if !p.isSlack(b.bypassed()) {
		return nil, errNotPolished
	}
	return b.solution(cuts), nil
}

// attempts solves a program, from a start if there is one, else or should that
// fail from start prices.
type attempts struct {
	*program
	progress func(stage string)
	start    []model.Flow
	prices   []float64
	long     *offers // at prices
}

// offers returns the start prices and what is cheapest at them.
func (a *attempts) offers() ([]float64, *offers) {
	if a.long == nil {
		a.progress("start prices")
		a.prices = a.startPrices()
		a.long = a.cheapest(a.prices, longlist)
	}
	return a.prices, a.long
}

func (a *attempts) solve(ctx context.Context) (*builder, error) {
	if a.isWorth(a.start) {
		if b, err := a.solveFrom(ctx, a.start); err == nil || ctx.Err() != nil {
			return b, err
		}
	}
	prices, long := a.offers()
	if a.isCool() {
		a.progress("cooler prices")
		if plan := a.cool(slices.Clone(prices)); plan != nil {
			if b, err := a.solveFrom(ctx, plan); err == nil || ctx.Err() != nil {
				return b, err
			}
		}
	}
	b := newBuilder(a.program, false, nil)
	b.progress = a.progress
	b.start(prices, long)
	if a.isCool() {
		return b, b.runRough(ctx)
	}
	return b, b.run(ctx, coldTries)
}

// solveFrom solves from the flows of a plan.
func (a *attempts) solveFrom(ctx context.Context, plan []model.Flow) (*builder, error) {
	b := newBuilder(a.program, false, nil)
	b.progress = a.progress
	b.startFrom(plan)
	return b, b.run(ctx, warmTries)
}

// isSlack reports whether a flow is what rounding may leave over.
func (p *program) isSlack(flow float64) bool {
	return flow <= bypassSlack*float64(len(p.Sources))
}

// explain returns the error of a program whose demand cannot all be served.
func (p *program) explain(ctx context.Context, long *offers) error {
	b, err := p.maxFlow(ctx, long)
	if err != nil {
		return err
	}
	if p.isSlack(b.bypassed()) {
		return errNotPolished
	}
	return b.infeasible()
}
