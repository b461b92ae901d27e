package virtual

import (
	"fmt"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/profile"
)

const (
	cluster                    = "here"
	promptTokens, outputTokens = 1024, 64
	engineCount                = 5
)

// spec is the profile of a 70B model on a pool of GPUs.
var spec = profile.Spec{
	Name: "70b", PromptTokens: promptTokens, OutputTokens: outputTokens,
	Utilization: []float64{0, 0.25, 0.5, 0.75, 0.9, 1},
	TTFTMs:      []float64{80, 85, 100, 140, 220, 400},
	TBOTMs:      []float64{12, 13, 15, 18, 22, 30},
}

// fleet is equal engines of one endpoint each. Every class has an equal part of
// each of the first owners; the others are fallbacks.
type fleet struct {
	classes       []snapshot.Class // nil: one
	owners        int
	absorbs       []float64 // of each fallback, req/s of each class
	capacity      float64   // of an engine, req/s
	utilization   float64   // planned
	agentsUnknown bool
}

// of is the fleet of a setup: five engines that share the load, or one that has
// all of it and two fallbacks, which may absorb half and seven tenths of it.
func (s Setup) of(utilization float64, classes ...snapshot.Class) fleet {
	f := fleet{classes: classes, owners: engineCount, utilization: utilization}
	if s.OneEngine {
		f.owners = 1
	}
	if len(f.classes) == 0 {
		f.classes = []snapshot.Class{{Name: "chat"}}
	}
	f.capacity = s.RPS / float64(f.owners) / utilization
	if s.OneEngine {
		each := s.RPS / float64(len(f.classes))
		f.absorbs = []float64{0.5 * each, 0.7 * each}
	}
	return f
}

func (f fleet) snapshot() *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		Format: snapshot.Format, Fleet: "virtual", Sequence: 1, Classes: f.classes,
		Policy: snapshot.Policy{OutputTokenWork: 4, MaxUtilization: 0.9},
	}
	planned := f.utilization * f.capacity // of an owner, req/s
	for i := range f.owners + len(f.absorbs) {
		e := snapshot.Engine{
			Name: name(i), Region: "here", Domain: name(i), Endpoints: []string{"http://" + name(i)},
			CapacityRPS: f.capacity,
			Profile: snapshot.Profile{
				Name: spec.Name, PromptTokens: promptTokens, OutputTokens: outputTokens,
				TTFTV: spec.Utilization, TTFTMs: spec.TTFTMs, TBOTV: spec.Utilization, TBOTMs: spec.TBOTMs,
			},
		}
		if i < f.owners {
			e.Utilization, e.PlannedRPS, e.PlannedRefRPS = f.utilization, planned, planned
		}
		s.Engines = append(s.Engines, e)
	}
	for _, c := range f.classes {
		s.Sources = append(s.Sources, f.source(c.Name, planned/float64(len(f.classes))))
	}
	return s
}

// source gives each owner rps requests/s of a class.
func (f fleet) source(class string, rps float64) snapshot.Source {
	all := rps * float64(f.owners)
	src := snapshot.Source{
		Cluster: cluster, Class: class, OfferedRPS: all, ServedRPS: all, PromptTokens: promptTokens, OutputTokens: outputTokens,
	}
	from := int64(0)
	for i := range f.owners {
		to := int64(i+1) * snapshot.QuotaSum / int64(f.owners)
		src.LayoutFrom, src.LayoutTo = append(src.LayoutFrom, uint32(from)), append(src.LayoutTo, name(i))
		src.Weights = append(src.Weights, snapshot.Weight{
			Engine: name(i), Quota: to - from, Fraction: 1 / float64(f.owners), RPS: rps, RTTMs: 2,
		})
		from = to
	}
	for i, absorb := range f.absorbs {
		src.Fallbacks = append(src.Fallbacks, snapshot.Fallback{Engine: name(f.owners + i), AbsorbRPS: absorb})
	}
	return src
}

func name(i int) string { return fmt.Sprintf("e%d", i) }

// misjudge makes a profile wrong by 30 % either way: the engine is that much
// slower, as expected, or that much quicker than the plan believes.
func misjudge(p *snapshot.Profile, i int) {
	wrong := []float64{1.3, 1, 0.7}[i%3]
	scaled := func(ms []float64) []float64 {
		out := make([]float64, len(ms))
		for j, x := range ms {
			out[j] = x / wrong
		}
		return out
	}
	p.TTFTMs, p.TBOTMs = scaled(p.TTFTMs), scaled(p.TBOTMs)
}
