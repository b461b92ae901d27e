package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/irb-project/irb/solve/certify"
	"github.com/irb-project/irb/solve/model"
)

// given is what a peer gets to know of the delays.
type given string

const (
	// fine: segments so fine that any optimum for them is within the gap.
	fine given = "the model as fine segments"
	// rounds: coarse segments, refined around the loads found until the answer is
	// within the gap. The peer is told for free when it is.
	rounds given = "the model, segments refined in rounds"
	// window: those of the fine segments that are next to the optimum's loads.
	window given = "fine segments around the known optimum only"
)

// givens are the comparisons, a table each.
func givens() []given { return []given{fine, rounds, window} }

// The grids of the peers.
const (
	coarseSegments = 16
	refineParts    = 8
	maxRounds      = 8
	windowSegments = 13 // on either side
)

func (in *instance) grids(g given) [][]float64 {
	grids := make([][]float64, len(in.tolerant))
	for e, grid := range in.tolerant {
		switch g {
		case rounds:
			grids[e] = evenGrid(in.problem.Engines[e].Delay, coarseSegments)
		case fine:
			grids[e] = grid
		case window:
			grids[e] = windowGrid(grid, in.loads[e], windowSegments)
		}
	}
	return grids
}

// attempt is one way of a peer to answer.
type attempt struct {
	timing
	how   string
	over  time.Duration // > 0: took longer than this
	guess bool          // over by a smaller fleet's time: was not run
	tried int           // programs solved
	gap   float64
	err   error
}

// before says whether a is the better result: an answer before being late,
// that before a failure.
func (a *attempt) before(o *attempt) bool {
	if a.answered() && o.answered() {
		return a.Seconds < o.Seconds
	}
	return a.answered() || a.err == nil && o.err != nil
}

func (a *attempt) sentence() string {
	switch {
	case a.err != nil:
		return a.err.Error()
	case a.guess:
		return "not run, a smaller fleet took over " + duration(a.over.Seconds())
	case a.over > 0:
		return "over " + duration(a.over.Seconds())
	}
	return fmt.Sprintf("%s, %s, gap %.1e, programs %d, runs of the last %d", duration(a.Seconds), memory(a.PeakBytes), a.gap, a.tried, a.Runs)
}

// attempt has a peer answer within a limit.
func (b *bench) attempt(ctx context.Context, p *peer, setting string, in *instance, g given, limit time.Duration) (a attempt) {
	a.how = p.name + " " + setting
	grids := in.grids(g)
	for a.tried < maxRounds {
		left := limit - time.Duration(a.Seconds*float64(time.Second))
		if left <= 0 {
			a.over = limit
			return a
		}
		found, err := p.solve(ctx, setting, in.transport.cut(in.problem, grids), left, b.runs)
		if errors.Is(err, errOverLimit) {
			a.over = limit
			return a
		}
		if err != nil {
			a.err = err
			return a
		}
		a.tried++
		a.Seconds += found.Seconds
		a.Runs = found.Runs
		a.PeakBytes = max(a.PeakBytes, found.PeakBytes)
		var s *model.Solution
		if s, a.gap, a.err = in.judge(found.flow); a.err != nil || a.gap <= certify.GapTol || g != rounds {
			break
		}
		for e, load := range loads(in.problem, s.Flows) {
			grids[e] = refine(grids[e], load, refineParts)
		}
	}
	if a.err == nil && a.gap > certify.GapTol {
		a.err = fmt.Errorf("gap %.1e, want at most %.0e", a.gap, certify.GapTol)
	}
	return a
}

func (a *attempt) answered() bool { return a.err == nil && a.over == 0 }

// String is the cell of a table.
func (a *attempt) String() string {
	switch {
	case a.err != nil:
		return "failed"
	case a.guess:
		return "(> " + duration(a.over.Seconds()) + ")"
	case a.over > 0:
		return "> " + duration(a.over.Seconds())
	}
	return duration(a.Seconds)
}
