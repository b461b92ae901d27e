package explain

import (
	"cmp"
	"math"
	"slices"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/layout"
)

// Diff is what differs between two snapshots, by what they say themselves.
type Diff struct {
	Old Side `json:"old"`
	New Side `json:"new"`

	MovedRPS   float64 `json:"moved_rps"`   // served requests whose keys change their engine
	MovedShare float64 `json:"moved_share"` // of what both serve
	// CacheLossMsRPS is what the moved conversations lose at first: computing
	// their cached prompts again, once per conversation.
	CacheLossMsRPS float64 `json:"cache_loss_ms_rps"`

	Sources []SourceDiff `json:"sources"` // those that move most first
	Engines []EngineDiff `json:"engines"` // likewise

	Attribution *Attribution `json:"attribution,omitempty"`
}

// Side is one of the two snapshots.
type Side struct {
	Sequence       int64   `json:"sequence"`
	ObjectiveMsRPS float64 `json:"objective_ms_rps"`
	MeanLatencyMs  float64 `json:"mean_latency_ms"`
	ServedRPS      float64 `json:"served_rps"`
	ShedRPS        float64 `json:"shed_rps"`
}

// SourceDiff is a source that differs.
type SourceDiff struct {
	Source       string  `json:"source"`
	OldRPS       float64 `json:"old_rps"` // served; 0 where it is not in that snapshot
	NewRPS       float64 `json:"new_rps"`
	OldLatencyMs float64 `json:"old_latency_ms"`
	NewLatencyMs float64 `json:"new_latency_ms"`
	MovedShare   float64 `json:"moved_share"` // of its keys
	Moves        []Move  `json:"moves,omitempty"`
}

// movedRPS is how many of its requests change their engine.
func (s SourceDiff) movedRPS() float64 { return s.NewRPS * s.MovedShare }

// EngineDiff is an engine whose plan differs, in reference req/s.
type EngineDiff struct {
	Engine   string  `json:"engine"`
	OldRPS   float64 `json:"old_reference_rps"`
	NewRPS   float64 `json:"new_reference_rps"`
	OldLimit float64 `json:"old_limit_rps"`
	NewLimit float64 `json:"new_limit_rps"`
}

// Compare compares two snapshots.
func Compare(old, now *snapshot.Snapshot) *Diff {
	d := &Diff{Old: side(old), New: side(now)}
	was, is := sourcesByName(old), sourcesByName(now)
	var both float64
	for _, name := range sortedKeys(was, is) {
		s := compareSource(name, was[name], is[name])
		if was[name] != nil && is[name] != nil {
			both += s.NewRPS
			d.MovedRPS += s.movedRPS()
			d.CacheLossMsRPS += cacheLoss(old, was[name], is[name])
		}
		if s.MovedShare > 0 || len(s.Moves) > 0 || was[name] == nil || is[name] == nil {
			d.Sources = append(d.Sources, s)
		}
	}
	if both > 0 {
		d.MovedShare = d.MovedRPS / both
	}
	slices.SortStableFunc(d.Sources, func(a, b SourceDiff) int {
		return cmp.Or(cmp.Compare(b.movedRPS(), a.movedRPS()), cmp.Compare(math.Abs(b.NewRPS-b.OldRPS), math.Abs(a.NewRPS-a.OldRPS)))
	})
	d.compareEngines(old, now)
	return d
}

func side(s *snapshot.Snapshot) Side {
	return Side{
		Sequence: s.Sequence, ObjectiveMsRPS: s.Solver.Objective, MeanLatencyMs: s.Solver.LatencyMs,
		ServedRPS: s.Solver.ServedRPS, ShedRPS: max(0, s.Solver.OfferedRPS-s.Solver.ServedRPS),
	}
}

func sourcesByName(s *snapshot.Snapshot) map[string]*snapshot.Source {
	byName := make(map[string]*snapshot.Source, len(s.Sources))
	for i := range s.Sources {
		byName[s.Sources[i].Cluster+"/"+s.Sources[i].Class] = &s.Sources[i]
	}
	return byName
}

func compareSource(name string, was, is *snapshot.Source) SourceDiff {
	d := SourceDiff{Source: name}
	before, after := make(map[string]float64), make(map[string]float64)
	if was != nil {
		d.OldRPS, d.OldLatencyMs = was.ServedRPS, was.LatencyMs
		for _, w := range was.Weights {
			before[w.Engine] = w.RPS
		}
	}
	if is != nil {
		d.NewRPS, d.NewLatencyMs = is.ServedRPS, is.LatencyMs
		for _, w := range is.Weights {
			after[w.Engine] = w.RPS
		}
	}
	if was != nil && is != nil {
		d.MovedShare = float64(layout.Moved(layout.Of(was), layout.Of(is))) / snapshot.QuotaSum
	}
	for _, engine := range sortedKeys(before, after) {
		if x, y := before[engine], after[engine]; math.Abs(x-y) > 1e-6*max(d.OldRPS, d.NewRPS) {
			d.Moves = append(d.Moves, Move{name, engine, x, y})
		}
	}
	slices.SortStableFunc(d.Moves, func(a, b Move) int {
		return cmp.Compare(math.Abs(b.ThenRPS-b.NowRPS), math.Abs(a.ThenRPS-a.NowRPS))
	})
	return d
}

// cacheLoss is what the requests of a source lose that leave an engine: their
// cached prompt is computed again at its speed without load, h p TTFT(0)/p_ref,
// once per conversation.
func cacheLoss(old *snapshot.Snapshot, was, is *snapshot.Source) float64 {
	if is.CachedFraction == 0 {
		return 0
	}
	var loss float64
	after := make(map[string]float64)
	for _, w := range is.Weights {
		after[w.Engine] = w.Fraction
	}
	for _, w := range was.Weights {
		left := max(0, w.Fraction-after[w.Engine]) * is.ServedRPS
		i := slices.IndexFunc(old.Engines, func(e snapshot.Engine) bool { return e.Name == w.Engine })
		p := old.Engines[i].Profile
		loss += left * is.CachedFraction * is.PromptTokens * p.TTFTMs[0] / p.PromptTokens / max(1, is.RequestsPerKey)
	}
	return loss
}

func (d *Diff) compareEngines(old, now *snapshot.Snapshot) {
	engines := make(map[string]EngineDiff)
	for _, e := range old.Engines {
		engines[e.Name] = EngineDiff{Engine: e.Name, OldRPS: e.PlannedRefRPS, OldLimit: e.LimitRPS}
	}
	for _, e := range now.Engines {
		x := engines[e.Name]
		x.Engine, x.NewRPS, x.NewLimit = e.Name, e.PlannedRefRPS, e.LimitRPS
		engines[e.Name] = x
	}
	for _, name := range sortedKeys(engines) {
		e := engines[name]
		if scale := 1e-6 * max(e.OldLimit, e.NewLimit); math.Abs(e.NewRPS-e.OldRPS) > scale || math.Abs(e.NewLimit-e.OldLimit) > scale {
			d.Engines = append(d.Engines, e)
		}
	}
	slices.SortStableFunc(d.Engines, func(a, b EngineDiff) int {
		return cmp.Compare(math.Abs(b.NewRPS-b.OldRPS), math.Abs(a.NewRPS-a.OldRPS))
	})
}
