package solve

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/figure"
	"github.com/irb-project/irb/solve/reason"
)

// Rollback puts old weights and layout under a new head, so that agents take
// them after what they serve now. Head.Previous is the snapshot in service.
func Rollback(old *snapshot.Snapshot, h Head) *snapshot.Snapshot {
	s := *old
	setHead(&s, h)
	s.Solver.Notes = append(slices.Clone(s.Solver.Notes), fmt.Sprintf("rolled back to the weights of snapshot %d", old.Sequence))
	return &s
}

func setHead(s *snapshot.Snapshot, h Head) {
	s.Format, s.Sequence = snapshot.Format, h.Sequence()
	s.Created, s.Expires = h.Now.UTC().Truncate(time.Second), h.Now.Add(h.ExpiresIn).UTC().Truncate(time.Second)
	s.Author, s.Reason = h.Author, h.Reason
}

// Drain takes an engine out of the plan in service, Head.Previous, without a
// solve: what it served goes to the other engines of each source in proportion
// to their weights, or to its fallbacks in proportion to what they may absorb.
// Only the drained engine's keys move.
//
// A source with no other engine is an error: nothing may be drained silently
// into nowhere.
func Drain(engine string, h Head) (*snapshot.Snapshot, error) {
	s := *h.Previous
	if !slices.ContainsFunc(s.Engines, func(e snapshot.Engine) bool { return e.Name == engine }) {
		return nil, fmt.Errorf("no engine %q in snapshot %d", engine, s.Sequence)
	}
	setHead(&s, h)
	s.Sources = slices.Clone(s.Sources)
	for i := range s.Sources {
		if err := drainSource(&s.Sources[i], engine); err != nil {
			return nil, err
		}
	}
	s.Engines = replan(s.Engines, s.Sources)
	s.Solver.Notes = append(slices.Clone(s.Solver.Notes),
		fmt.Sprintf("%s drained from snapshot %d by hand: not solved again, so costs and prices are those of before and no proof holds", engine, h.Previous.Sequence))
	return &s, nil
}

func drainSource(source *snapshot.Source, engine string) error {
	before := *source
	notIt := func(name string) bool { return name == engine }
	source.Fallbacks = slices.DeleteFunc(slices.Clone(source.Fallbacks), func(f snapshot.Fallback) bool { return notIt(f.Engine) })
	at := slices.IndexFunc(source.Weights, func(w snapshot.Weight) bool { return notIt(w.Engine) })
	if at < 0 {
		return nil
	}
	drained := source.Weights[at]
	weights := slices.Delete(slices.Clone(source.Weights), at, at+1)
	if len(weights) == 0 {
		if len(source.Fallbacks) == 0 {
			return fmt.Errorf("%s/%s has no engine but %s and no fallback; it cannot be drained", source.Cluster, source.Class, engine)
		}
		weights = fallbackWeights(source, engine)
		source.Fallbacks = nil
	}
	var rest float64
	for _, w := range weights {
		rest += w.Fraction
	}
	for i := range weights {
		w := &weights[i]
		gained := w.Fraction/rest - w.Fraction
		w.Fraction /= rest
		w.RPS = w.Fraction * source.ServedRPS
		w.Text = fmt.Sprintf("%s is drained; %s takes %s of its %s req/s. Before: %s",
			engine, w.Engine, figure.Rate(gained*source.ServedRPS), figure.Rate(drained.RPS), w.Text)
	}
	source.Weights = weights
	source.LayoutFrom, source.LayoutTo = nil, nil
	_, err := lay(source, &before)
	return err
}

// fallbackWeights makes weights of the fallbacks of a source whose only engine
// is drained; their costs are unknown without a solve.
func fallbackWeights(source *snapshot.Source, engine string) []snapshot.Weight {
	var absorb float64
	for _, f := range source.Fallbacks {
		absorb += f.AbsorbRPS
	}
	var weights []snapshot.Weight
	for i, f := range source.Fallbacks {
		w := snapshot.Weight{Engine: f.Engine, Fraction: f.AbsorbRPS / absorb, Code: reason.CodeSpill, Text: "fallback: " + f.Text}
		if absorb == 0 {
			w.Fraction = 0
			if i == 0 {
				w.Fraction = 1
			}
		}
		for _, a := range source.Alternatives {
			if a.Engine == f.Engine {
				w.Cost, w.Text = a.Cost, a.Text
			}
		}
		if w.Fraction > 0 {
			weights = append(weights, w)
		}
	}
	slices.SortFunc(weights, func(a, b snapshot.Weight) int { return cmp.Compare(a.Engine, b.Engine) })
	return weights
}

// replan adds up what engines carry after weights changed by hand.
func replan(engines []snapshot.Engine, sources []snapshot.Source) []snapshot.Engine {
	rps := make(map[string]float64)
	for _, source := range sources {
		for _, w := range source.Weights {
			rps[w.Engine] += w.RPS
		}
	}
	out := slices.Clone(engines)
	for i := range out {
		e := &out[i]
		scale := 0.0
		if e.PlannedRPS > 0 {
			scale = rps[e.Name] / e.PlannedRPS
		}
		e.PlannedRefRPS *= scale
		e.Utilization *= scale
		e.PlannedRPS = rps[e.Name]
		if scale == 0 && e.PlannedRPS > 0 && e.CapacityRPS > 0 { // it served nothing before
			e.PlannedRefRPS = e.PlannedRPS
			e.Utilization = e.PlannedRPS / e.CapacityRPS
		}
	}
	return out
}
