package scenario

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/irb-project/irb/solve/input"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/simulate/policy"
)

// longest is the longest time in a scenario.
const longest = 30 * 24 * time.Hour

// Parse reads a scenario file for a fleet, whose engines, clusters and classes
// its events name. What is not said has the value of Default. The error tells
// everything that is wrong, by file and line.
func Parse(file string, text []byte, fleet *model.Fleet) (*Scenario, error) {
	root, err := input.ParseTable(file, text)
	if err != nil {
		return nil, err
	}
	s := Default()
	s.Name = root.Text("name")
	s.DurationS = seconds(root, "duration", time.Minute, s.DurationS)
	s.WarmupS = seconds(root, "warmup", 0, min(s.WarmupS, s.DurationS/6))
	if s.WarmupS >= s.DurationS {
		root.Problem("warmup", "is %v s, want less than the duration, %v s", s.WarmupS, s.DurationS)
	}
	s.Seed = uint64(integer(root, "seed", 0, 1<<32, int(s.Seed)))
	s.Agents = integer(root, "agents", 1, 1000, s.Agents)
	s.CacheTokens = root.Number("kv_cache_tokens", 0, 1e12, s.CacheTokens)
	s.Policies = root.Words("policies", s.Policies, s.Policies)
	if root.Has("policies") && len(s.Policies) == 0 {
		root.Problem("policies", "names none, want one at least")
	}
	s.readTraffic(root.Sub("traffic"))
	s.readSLO(root.Sub("slo"))
	s.readIRB(root.Sub("irb"))
	s.readLegacy(root.Sub("legacy"))
	for _, t := range root.Subs("demand") {
		s.readStep(t)
	}
	for _, t := range root.Subs("event") {
		s.readEvent(t, fleet)
	}
	root.Done()
	if err := root.Err(); err != nil {
		return nil, err
	}
	return &s, nil
}

func seconds(t *input.Table, key string, low time.Duration, byDefault float64) float64 {
	return t.Duration(key, low, longest, time.Duration(byDefault*1e9)).Seconds()
}

// integer returns a number that counts something.
func integer(t *input.Table, key string, low, high float64, byDefault int) int {
	v := t.Number(key, low, high, float64(byDefault))
	if v != math.Trunc(v) {
		t.Problem(key, "is %v, want a whole number", v)
		return byDefault
	}
	return int(v)
}

func (s *Scenario) readTraffic(t *input.Table) {
	x := &s.Traffic
	x.Trace = t.Text("trace")
	x.Speed = t.Number("speed", 1e-6, 1e6, x.Speed)
	x.Scale = t.Number("scale", 1e-6, 1e6, x.Scale)
	x.Turns = t.Number("turns", 0, 1e4, x.Turns)
	if x.Turns > 0 && x.Turns < 1 {
		t.Problem("turns", "is %v, want at least 1", x.Turns)
	}
	x.ThinkS = seconds(t, "think", 0, x.ThinkS)
	x.LengthCV = t.Number("length_cv", 0, 5, x.LengthCV)
	x.SharedTokens = t.Number("shared_tokens", 0, 1e6, x.SharedTokens)
	x.BlockTokens = integer(t, "block_tokens", 1, 1e5, x.BlockTokens)
	t.Done()
}

func (s *Scenario) readSLO(t *input.Table) {
	s.SLO.TTFTMs = t.Number("ttft_ms", 0, 1e9, s.SLO.TTFTMs)
	s.SLO.TBOTMs = t.Number("tbot_ms", 0, 1e9, s.SLO.TBOTMs)
	t.Done()
}

func (s *Scenario) readIRB(t *input.Table) {
	o := &s.IRB
	o.EveryS = seconds(t, "every", time.Second, o.EveryS)
	o.StaleS = seconds(t, "stale", 0, min(o.StaleS, o.EveryS/2))
	o.Noise = t.Number("noise", 0, 2, o.Noise)
	o.DemandError = t.Number("demand_error", 0, 10, o.DemandError)
	o.ProfileError = t.Number("profile_error", 0, 10, o.ProfileError)
	t.Done()
}

func (s *Scenario) readLegacy(t *input.Table) {
	interval := seconds(t, "interval", time.Second, s.Legacy[0].IntervalS)
	gains := t.Numbers("gain", 0, 100, nil)
	smoothing := t.Numbers("smoothing", 0.001, 1, nil)
	t.Done()
	if gains == nil && smoothing == nil {
		for i := range s.Legacy {
			s.Legacy[i].IntervalS = interval
		}
		return
	}
	if gains == nil || smoothing == nil {
		t.Problem("gain", "and smoothing are the grid that is searched, want both or none")
	}
	s.Legacy = nil
	for _, g := range gains {
		for _, m := range smoothing {
			s.Legacy = append(s.Legacy, policy.Gains{Gain: g, Smoothing: m, IntervalS: interval})
		}
	}
}

func (s *Scenario) readStep(t *input.Table) {
	t.Need("at", "file")
	step := Step{AtS: seconds(t, "at", 0, 0), File: t.Text("file")}
	if n := len(s.Steps); n > 0 && step.AtS <= s.Steps[n-1].AtS {
		t.Problem("at", "is %v s after %v s, want rising times", step.AtS, s.Steps[n-1].AtS)
	}
	t.Done()
	s.Steps = append(s.Steps, step)
}

func (s *Scenario) readEvent(t *input.Table, fleet *model.Fleet) {
	t.Need("at", "kind")
	e := Event{
		Kind: Kind(t.OneOf("kind", string(Fail), string(Slow), string(Capacity), string(Demand))),
		AtS:  seconds(t, "at", 0, 0), ForS: seconds(t, "for", 0, 0),
	}
	if e.AtS >= s.DurationS {
		t.Problem("at", "is %v s, want less than the duration, %v s", e.AtS, s.DurationS)
	}
	if e.Kind != Fail {
		t.Need("factor")
		e.Factor = t.Number("factor", 0.01, 1000, 1)
	}
	if e.Kind == Capacity && e.Factor > 1 {
		t.Problem("factor", "is %v, want at most 1: the part of the capacity that is left", e.Factor)
	}
	if e.Kind == Demand {
		e.Cluster, e.Class = t.Name("cluster"), t.Name("class")
		known(t, "cluster", e.Cluster, fleet.Demand, func(d model.Demand) string { return d.Cluster })
		known(t, "class", e.Class, fleet.Demand, func(d model.Demand) string { return d.Class })
	} else {
		t.Need("engine")
		e.Engine = t.Name("engine")
		known(t, "engine", e.Engine, fleet.Engines, func(x model.Engine) string { return x.Name })
		e.Endpoints = readEndpoints(t, e.Engine, fleet)
	}
	t.Done()
	s.Events = append(s.Events, e)
}

// readEndpoints returns how many endpoints of an engine an event meets; 0: all.
func readEndpoints(t *input.Table, engine string, fleet *model.Fleet) int {
	n := integer(t, "endpoints", 0, 1e6, 0)
	i := slices.IndexFunc(fleet.Engines, func(x model.Engine) bool { return x.Name == engine })
	if i < 0 {
		return n
	}
	if has := max(1, len(fleet.Engines[i].Endpoints)); n > has {
		t.Problem("endpoints", "is %d, want at most the %d of engine %q", n, has, engine)
	}
	return n
}

// known reports a name that nothing in the list has.
func known[T any](t *input.Table, key, name string, list []T, nameOf func(T) string) {
	if name == "" {
		return
	}
	var names []string
	seen := map[string]bool{}
	for _, x := range list {
		n := nameOf(x)
		if n == name {
			return
		}
		if !seen[n] && len(names) < 20 {
			seen[n] = true
			names = append(names, n)
		}
	}
	t.Problem(key, "is %q, want one of the fleet's: %s", name, strings.Join(names, ", "))
}
