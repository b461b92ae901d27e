package irb

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
	"github.com/irb-project/irb/solve/proof"
	"github.com/irb-project/irb/solve/simulate/policy"
)

// Period is one solve and what became of it until the next.
type Period struct {
	AtS float64 `json:"at_s"`
	// Failed says why there was no new plan; the one before went on.
	Failed string `json:"failed,omitempty"`
	// MovedShare is the share of traffic that the plan moved to another engine,
	// ChurnMsPerS the latency in ms that it expected that to cost each second.
	MovedShare  float64 `json:"moved_share"`
	ChurnMsPerS float64 `json:"churn_ms_per_s"`
	PlannedRPS  float64 `json:"planned_rps"`
	OfferedRPS  float64 `json:"offered_rps"` // until the next solve
	LatencyMs   float64 `json:"latency_ms"`  // mean by plan, network included
}

// control gathers inputs and solves.
type control struct {
	config    Config
	fleet     *model.Fleet // what the next solve believes; its own copy
	seen      []observation
	rng       *rand.Rand
	collectAt float64        // next
	seenFrom  float64        // since when seen counts
	solveAt   float64        // next
	ready     []*model.Fleet // collected for the solves to come
	previous  *snapshot.Snapshot
	failed    error
	periods   []Period
}

// observation is what agents saw of a source since the last collection.
type observation struct {
	requests, prompt, output float64
	answered, cached         float64 // tokens of prompts answered
	keys                     map[uint64]struct{}
}

func newControl(c Config) *control {
	k := &control{config: c, rng: rand.New(rand.NewPCG(c.Seed, 0x636f6e74726f6c)), seen: make([]observation, len(c.SourceRows))}
	k.fleet = distort(c.Fleet, c.Options.ProfileError)
	k.solveAt = c.Options.EveryS
	k.collectAt = k.solveAt - c.Options.StaleS
	for k.collectAt <= 0 { // a solve whose inputs are from before the start
		k.ready = append(k.ready, k.fleet)
		k.collectAt += c.Options.EveryS
	}
	for i := range k.seen {
		k.seen[i].keys = map[uint64]struct{}{}
	}
	return k
}

// distort copies a fleet and makes its profiles wrong: engines in turn faster
// and slower than they are.
func distort(f *model.Fleet, wrong float64) *model.Fleet {
	out := *f
	out.Demand = slices.Clone(f.Demand)
	out.Engines = slices.Clone(f.Engines)
	if wrong == 0 {
		return &out
	}
	specs := make(map[string]profile.Spec, len(f.Profiles))
	for _, s := range f.Profiles {
		specs[s.Name] = s
	}
	order := make([]int, len(out.Engines))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(out.Engines[a].Name, out.Engines[b].Name) })
	out.Profiles = nil
	for n, i := range order {
		factor := 1 + wrong
		if n%2 == 1 {
			factor = 1 / factor
		}
		e := &out.Engines[i]
		s := specs[e.Profile]
		s.Name = fmt.Sprintf("%s of %s", e.Profile, e.Name)
		s.TTFTMs, s.TBOTMs = scaled(s.TTFTMs, factor), scaled(s.TBOTMs, factor)
		e.Profile = s.Name
		e.CapacityRPS /= factor
		out.Profiles = append(out.Profiles, s)
	}
	return &out
}

func scaled(list []float64, factor float64) []float64 {
	out := make([]float64, len(list))
	for i, x := range list {
		out[i] = x * factor
	}
	return out
}

// offered counts a first attempt, refused or not.
func (k *control) offered(f *policy.Flight) {
	o := &k.seen[f.Request.Source]
	o.requests++
	o.prompt += f.Request.PromptTokens
	o.output += f.Request.OutputTokens
	o.keys[f.Request.Conversation] = struct{}{}
	if n := len(k.periods); n > 0 {
		k.periods[n-1].OfferedRPS++ // divided when the period ends
	}
}

// answered counts what the engine said of its cache.
func (k *control) answered(f *policy.Flight) {
	o := &k.seen[f.Request.Source]
	o.answered += f.Request.PromptTokens
	o.cached += f.CachedTokens
}

func (k *control) collectDue(now float64) bool { return now >= k.collectAt-1e-6 }
func (k *control) solveDue(now float64) bool   { return now >= k.solveAt-1e-6 }

// collect takes what was seen as the demand to plan for, and health from how
// many endpoints are up, never from latency.
func (k *control) collect(now float64) {
	span := now - k.seenFrom
	k.seenFrom = now
	k.collectAt += k.config.Options.EveryS
	last := k.fleet
	if n := len(k.ready); n > 0 {
		last = k.ready[n-1]
	}
	next := *last
	next.Demand, next.Engines = slices.Clone(last.Demand), slices.Clone(last.Engines)
	k.ready = append(k.ready, &next)
	for i, row := range k.config.SourceRows {
		d, o := &next.Demand[row], &k.seen[i]
		d.RPS = o.requests / span
		if o.requests > 0 {
			d.PromptTokens, d.OutputTokens = o.prompt/o.requests, o.output/o.requests
			d.RequestsPerKey = 1
			if _, keyless := o.keys[0]; !keyless {
				d.RequestsPerKey = o.requests / float64(len(o.keys))
			}
		}
		if o.answered > 0 {
			d.CachedFraction = min(0.99, o.cached/o.answered)
		}
		keys := o.keys
		clear(keys)
		*o = observation{keys: keys}
	}
	for i := range next.Engines {
		e := &next.Engines[i]
		up := 0.0
		numbers := k.config.Numbers[e.Name]
		for _, n := range numbers {
			if k.config.Signals.Load(n).Up {
				up++
			}
		}
		e.Health = k.config.Fleet.Engines[i].Health * up / float64(len(numbers))
	}
}

// solve makes the next snapshot of what was collected; nil if there is none,
// because demand cannot be served, or there is none.
func (k *control) solve(now float64) (*snapshot.Snapshot, error) {
	if len(k.periods) > 0 { // the first plan is of the fleet as described
		k.solveAt += k.config.Options.EveryS
		k.fleet, k.ready = k.ready[0], k.ready[1:]
	}
	k.endPeriod(now)
	period := Period{AtS: now}
	s, err := k.plan(now)
	var infeasible *solve.InfeasibleError
	switch {
	case errors.As(err, &infeasible) || errors.Is(err, solve.ErrNoDemand):
		k.failed = err
		period.Failed = err.Error()
	case err != nil:
		return nil, err
	default:
		k.previous = s
		period.MovedShare, period.ChurnMsPerS = s.Solver.MovedShare, s.Solver.ChurnCost
		period.PlannedRPS, period.LatencyMs = s.Solver.OfferedRPS, s.Solver.LatencyMs
	}
	k.periods = append(k.periods, period)
	return s, nil
}

// endPeriod turns the count of the last period into a rate.
func (k *control) endPeriod(now float64) {
	if n := len(k.periods); n > 0 {
		if p := &k.periods[n-1]; now > p.AtS {
			p.OfferedRPS /= now - p.AtS
		}
	}
}

// plan solves and builds the snapshot.
func (k *control) plan(now float64) (*snapshot.Snapshot, error) {
	ctx, fleet := k.config.Context, k.noisy()
	plan, err := solve.Solve(ctx, fleet, solve.Options{Previous: proof.PreviousWeights(k.previous)})
	if err != nil {
		return nil, err
	}
	fallbacks, err := plan.Contingencies(ctx, plan.DefaultContingencies())
	if err != nil {
		return nil, err
	}
	return plan.Snapshot(solve.Head{Now: at(now), ExpiresIn: 24 * time.Hour, Previous: k.previous}, fallbacks)
}

// noisy returns the fleet with the errors of demand that were asked for.
func (k *control) noisy() *model.Fleet {
	o := k.config.Options
	out := *k.fleet
	out.Demand = slices.Clone(k.fleet.Demand)
	for i, row := range k.config.SourceRows {
		factor := math.Exp(o.Noise * k.rng.NormFloat64())
		if i%2 == 0 {
			factor *= 1 + o.DemandError
		} else {
			factor /= 1 + o.DemandError
		}
		out.Demand[row].RPS *= factor
	}
	return &out
}
