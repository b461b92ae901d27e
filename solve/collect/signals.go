package collect

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/irb-project/irb/solve/model"
)

// Pair names a source: what a cluster offers in a class.
type Pair struct{ Cluster, Class string }

func (p Pair) String() string { return p.Cluster + "/" + p.Class }

// Way names the way from a cluster to an engine.
type Way struct{ Cluster, Engine string }

// Signals is what was measured. What is not in a map is unknown: never 0.
type Signals struct {
	// Offered is the demand in req/s on a grid of steps, the last one now;
	// NaN where it is unknown.
	Offered map[Pair][]float64
	Step    time.Duration

	Tokens         map[Pair]Tokens
	RequestsPerKey map[Pair]float64 // in a time like that between two runs
	RTTMs          map[Way]float64
	Health         map[string]Health // by engine

	Notes []string
}

// Health is how many of an engine's replicas are up.
type Health struct {
	Fraction float64
	Of       string // the evidence, in words
}

func newSignals() *Signals {
	return &Signals{
		Offered: map[Pair][]float64{}, Tokens: map[Pair]Tokens{}, RequestsPerKey: map[Pair]float64{},
		RTTMs: map[Way]float64{}, Health: map[string]Health{},
	}
}

// requestsPerKey sets what a conversation sends in the windows of time that
// requests and keys were counted in.
func (s *Signals) requestsPerKey(requests, keys map[Pair]float64) {
	for pair, n := range requests {
		// Counting keys is 3 % wrong either way; below 1 there is no truth.
		if k := keys[pair]; k > 0 && n >= minReports {
			s.RequestsPerKey[pair] = max(1, n/k)
		}
	}
}

func (s *Signals) notef(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// names are those that the operator's files define.
type names struct{ clusters, classes, engines map[string]bool }

func namesOf(fleet *model.Fleet) names {
	n := names{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, d := range fleet.Demand {
		n.clusters[d.Cluster] = true
	}
	for _, c := range fleet.Latency.From {
		n.clusters[c] = true
	}
	for _, c := range fleet.Policy.Classes {
		n.classes[c.Name] = true
	}
	for _, e := range fleet.Engines {
		n.engines[e.Name] = true
	}
	return n
}

// dropUnknown leaves out what the fleet has no name for, and says so.
func (s *Signals) dropUnknown(known names) {
	ok := func(p Pair) bool { return known.clusters[p.Cluster] && known.classes[p.Class] }
	for p, rps := range s.Offered {
		if ok(p) {
			continue
		}
		delete(s.Offered, p)
		if level := lastKnown(rps); level > 0 {
			s.notef("%s offers %s req/s, but the fleet's files do not name its %s; left out", p, figures(level), known.missing(p))
		}
	}
	maps.DeleteFunc(s.Tokens, func(p Pair, _ Tokens) bool { return !ok(p) })
	maps.DeleteFunc(s.RequestsPerKey, func(p Pair, _ float64) bool { return !ok(p) })
	strangers := map[string]bool{}
	for w := range s.RTTMs {
		if !known.clusters[w.Cluster] || !known.engines[w.Engine] {
			delete(s.RTTMs, w)
			if known.clusters[w.Cluster] {
				strangers[w.Engine] = true
			}
		}
	}
	for engine := range s.Health {
		if !known.engines[engine] {
			delete(s.Health, engine)
			strangers[engine] = true
		}
	}
	for _, engine := range slices.Sorted(maps.Keys(strangers)) {
		s.notef("engine %q is measured, but engines.toml does not name it; left out", engine)
	}
	slices.Sort(s.Notes)
}

func (n names) missing(p Pair) string {
	switch cluster, class := n.clusters[p.Cluster], n.classes[p.Class]; {
	case !cluster && !class:
		return "cluster and class"
	case !cluster:
		return "cluster"
	}
	return "class"
}
