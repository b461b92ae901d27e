package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

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
	optimum, report, err := solveCertified(ctx, p)
	if err == nil && p.Shed {
		p = p.Serving(optimum.ServedRPS).Problem
		optimum, report, err = solveCertified(ctx, p)
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

// attempt is one way of a peer to answer.
type attempt struct {
	timing
	how   string
	over  time.Duration // > 0: took longer than this
	tried int           // programs solved
	gap   float64
	err   error
}

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
	case a.over > 0:
		return "> " + duration(a.over.Seconds())
	}
	return duration(a.Seconds)
}

// overdue remembers who took too long for what, to spare larger fleets of it.
type overdue map[string]fleetShape

type fleetShape struct{ sources, engines, pairs int }

func shapeOf(p *model.Problem) fleetShape {
	return fleetShape{len(p.Sources), len(p.Engines), p.Pairs()}
}

// hopeless says whether a fleet is about as large as one that took too long.
func (o overdue) hopeless(how string, s fleetShape) bool {
	was, ok := o[how]
	return ok && s.sources >= was.sources && s.engines >= was.engines && 2*s.pairs >= was.pairs
}

// best has a peer answer with every setting, and returns the fastest. A later
// setting is given up once it takes longer than the best so far.
func (b *bench) best(ctx context.Context, p *peer, in *instance, g given, late overdue) *attempt {
	var best *attempt
	for _, setting := range p.settings {
		limit := b.limit
		if best != nil && best.answered() {
			limit = min(limit, time.Duration(best.Seconds*float64(time.Second))+time.Second)
		}
		a := &attempt{how: p.name + " " + setting, over: b.limit}
		key := a.how + " given " + string(g)
		if late.hopeless(key, shapeOf(in.problem)) {
			fmt.Fprintf(b.log, "%s: %s: not run, a smaller fleet took over %s\n", in.fleet, key, b.limit)
		} else {
			*a = b.attempt(ctx, p, setting, in, g, limit)
			fmt.Fprintf(b.log, "%s: %s: %s\n", in.fleet, key, a.sentence())
			if a.over == b.limit {
				late[key] = shapeOf(in.problem)
			}
		}
		if best == nil || a.before(best) {
			best = a
		}
	}
	return best
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
	case a.over > 0:
		return "over " + duration(a.over.Seconds())
	}
	return fmt.Sprintf("%s, %s, gap %.1e, programs %d, runs of the last %d", duration(a.Seconds), memory(a.PeakBytes), a.gap, a.tried, a.Runs)
}

// compare runs ours and the peers on the same instances.
func (b *bench) compare(ctx context.Context) error {
	if len(b.peers) == 0 || len(b.against) == 0 || len(b.sizes) == 0 {
		return nil
	}
	folder, err := os.MkdirTemp("", "irb-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := unpackPrograms(folder); err != nil {
		return err
	}
	columns := []string{"sources x engines", "load", "ours"}
	var peers []*peer
	for _, name := range b.peers {
		p, err := preparePeer(ctx, folder, name)
		if err != nil {
			fmt.Fprintf(b.out, "%s: skipped: %v\n\n", name, err)
			continue
		}
		peers = append(peers, p)
		columns = append(columns, name)
	}
	columns = append(columns, "fastest / ours", "by", "memory ours", "fastest")
	var tables []*table
	for _, g := range givens() {
		tables = append(tables, newTable(fmt.Sprintf("Peers given %s, to a gap of %.0e", g, certify.GapTol), columns...))
	}
	late := overdue{}
	for _, s := range b.sizes {
		for _, l := range b.against {
			if err := b.side(ctx, fleet{Size: s, Load: l, Seed: b.seed}, peers, late, tables); err != nil {
				return err
			}
		}
	}
	for _, t := range tables {
		if err := t.write(b.out); err != nil {
			return err
		}
	}
	return nil
}

// side adds one instance's row to every table.
func (b *bench) side(ctx context.Context, f fleet, peers []*peer, late overdue, tables []*table) error {
	ours, err := b.time(ctx, f)
	if err != nil {
		return b.failed(ctx, err)
	}
	in, err := newInstance(ctx, f)
	if err != nil {
		return b.failed(ctx, err)
	}
	for i, g := range givens() {
		row := []any{f.Size, f.Load, duration(ours.Seconds)}
		var fastest *attempt
		for _, p := range peers {
			a := b.best(ctx, p, in, g, late)
			if err := ctx.Err(); err != nil {
				return err
			}
			row = append(row, a)
			if a.answered() && (fastest == nil || a.Seconds < fastest.Seconds) {
				fastest = a
			}
		}
		tables[i].row(append(row, b.verdict(ours, fastest)...)...)
	}
	return nil
}

// verdict is the end of a row: ratio, whose, our memory, theirs.
func (b *bench) verdict(ours reply, fastest *attempt) []any {
	if fastest == nil {
		return []any{"> " + ratio(b.limit.Seconds()/ours.Seconds), "nobody in time", memory(ours.PeakBytes), ""}
	}
	return []any{ratio(fastest.Seconds / ours.Seconds), fastest.how, memory(ours.PeakBytes), memory(fastest.PeakBytes)}
}
