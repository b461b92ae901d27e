// Package simulate replays traffic in virtual time against a fleet, under irb
// and under the policies it is compared with: the same requests at the same
// times for each.
//
//	kv        prompts as blocks of a KV cache
//	engine    one endpoint: continuous batching, queue, KV cache
//	traffic   requests from demand or from a trace
//	policy    the policies irb is compared with
//	irb       irb's agents, and its solve from what they saw
//	scenario  what happens, and the settings
//	report    what came of it
package simulate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/simulate/engine"
	"github.com/irb-project/irb/solve/simulate/irb"
	"github.com/irb-project/irb/solve/simulate/policy"
	"github.com/irb-project/irb/solve/simulate/report"
	"github.com/irb-project/irb/solve/simulate/scenario"
	"github.com/irb-project/irb/solve/simulate/traffic"
)

// Input is what is simulated.
type Input struct {
	Fleet    *model.Fleet
	Scenario *scenario.Scenario
	Trace    *traffic.Trace // nil: traffic is made from the fleet's demand
	Steps    []Step         // demand over time; nil: the fleet's at all times
}

// Step is the demand that holds at a time, linear between two of them.
type Step struct {
	AtS    float64
	Demand []model.Demand
}

// Policy names a policy and, for the legacy loop, its gains.
type Policy struct {
	Name  string
	Gains policy.Gains
}

// Names are the policies that can be simulated.
func Names() []string {
	return []string{"nearest", "round-robin", "least-requests", "prequal", "sglang", "llm-d", "legacy", "irb"}
}

// CheckName says whether a policy can be simulated.
func CheckName(name string) error {
	if !slices.Contains(Names(), name) {
		return fmt.Errorf("policy is %q, want one of %q", name, Names())
	}
	return nil
}

// Run simulates one policy.
func Run(ctx context.Context, in Input, p Policy) (*report.Result, error) {
	s := in.Scenario
	blocks := s.Traffic.BlockTokens
	if in.Trace != nil && in.Trace.BlockTokens > 0 {
		blocks = in.Trace.BlockTokens
	}
	l, err := newLayout(in.Fleet, s, blocks)
	if err != nil {
		return nil, err
	}
	w := &world{layout: l, scenario: s, dues: newDues(len(l.endpoints), math.Inf(1))}
	for e, c := range l.configs {
		x, err := engine.New(c)
		if err != nil {
			return nil, err
		}
		w.engines = append(w.engines, x)
		w.ailments = append(w.ailments, ailment{slow: 1, capacity: 1})
		l.endpoints[e].CacheBlocks = x.CacheBlocks()
	}
	demand := newDemand(l, in)
	w.stream = demand.stream(in)
	if w.policy, err = newPolicy(ctx, w, demand, blocks, p); err != nil {
		return nil, err
	}
	w.collect = report.NewCollector(w.reportConfig(p))
	if err := w.run(ctx); err != nil {
		return nil, err
	}
	var periods []irb.Period
	if x, ok := w.policy.(*irb.IRB); ok {
		periods = x.Periods()
	}
	r := w.collect.Result(p.Name, p.note(), periods)
	if r.Offered == 0 {
		return nil, fmt.Errorf("no request came after the warm-up of %v s, so that there is nothing to say; want more demand or a longer duration", s.WarmupS)
	}
	return r, nil
}

func (p Policy) note() string {
	if p.Name != "legacy" {
		return ""
	}
	return fmt.Sprintf("gain %g, smoothing %g, every %g s", p.Gains.Gain, p.Gains.Smoothing, p.Gains.IntervalS)
}

func newPolicy(ctx context.Context, w *world, d *demand, blocks int, p Policy) (policy.Policy, error) {
	l, seed := w.layout, w.scenario.Seed
	f := &policy.Fleet{
		Endpoints: l.endpoints, Sources: l.sources, Agents: len(l.clusters) * w.scenario.Agents, BlockTokens: blocks,
	}
	switch p.Name {
	case "nearest":
		return policy.NewNearest(f, seed), nil
	case "round-robin":
		return policy.NewRoundRobin(f, seed), nil
	case "least-requests":
		return policy.NewLeastRequests(f, seed), nil
	case "prequal":
		return policy.NewPrequal(f, seed, w), nil
	case "sglang":
		return policy.NewSGLang(f, seed), nil
	case "llm-d":
		return policy.NewLLMD(f, seed, w), nil
	case "legacy":
		return policy.NewLegacy(f, seed, w, p.Gains), nil
	case "irb":
		fleet := *l.fleet
		fleet.Demand = d.at(0)
		return irb.New(irb.Config{
			Context: ctx, Fleet: &fleet, Agents: w.scenario.Agents, Clusters: l.clusters,
			SourceRows: l.rows, Numbers: l.numbers, Signals: w, Seed: seed, Options: w.scenario.IRB,
		})
	}
	return nil, CheckName(p.Name)
}

func (w *world) reportConfig(p Policy) report.Config {
	l, s := w.layout, w.scenario
	c := report.Config{
		DurationS: s.DurationS, WarmupS: s.WarmupS, TTFTMs: s.SLO.TTFTMs, TBOTMs: s.SLO.TBOTMs, Engines: l.engines,
	}
	if p.Name == "irb" {
		c.PeriodS = s.IRB.EveryS
	}
	for _, class := range l.fleet.Policy.Classes {
		c.Classes = append(c.Classes, report.Class{Name: class.Name, Priority: class.Priority})
	}
	for _, row := range l.rows {
		c.ClassOf = append(c.ClassOf, slices.IndexFunc(c.Classes, func(x report.Class) bool { return x.Name == l.fleet.Demand[row].Class }))
	}
	for e, at := range l.endpoints {
		profile := l.configs[e].Profile
		c.EngineOf = append(c.EngineOf, at.Engine)
		c.PrefillMs = append(c.PrefillMs, profile.TTFT.At(0)/profile.PromptTokens)
	}
	return c
}

// RunAll simulates all policies of the scenario, as many at a time as there
// are processors to use, and returns their results in order. Of the legacy
// loop all gains are tried: shown are those of least mean latency, and, if that
// oscillates, the best of those that do not.
func RunAll(ctx context.Context, in Input, parallel int, done func(*report.Result)) ([]*report.Result, error) {
	var jobs []Policy
	for _, name := range in.Scenario.Policies {
		if name != "legacy" {
			jobs = append(jobs, Policy{Name: name})
			continue
		}
		for _, gains := range in.Scenario.Legacy {
			jobs = append(jobs, Policy{Name: name, Gains: gains})
		}
	}
	results := make([]*report.Result, len(jobs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, parallel))
	for i, job := range jobs {
		group.Go(func() (err error) {
			if results[i], err = Run(ctx, in, job); err != nil {
				return fmt.Errorf("%s: %w", job.Name, err)
			}
			if done != nil {
				done(results[i])
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return selectLegacy(results), nil
}
