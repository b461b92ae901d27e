package solve

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/lp"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
	"github.com/irb-project/irb/solve/proof"
)

var wholeFleets = flag.Int("whole", 300, "number of random fleets to take through all stages")

// foundFleets are fleets that once went wrong: shed work whose minima or full engines
// left the interior point method no interior, and plans that CLP was wrong about.
var foundFleets = []uint64{717, 796, 1204, 1799, 2177, 4142, 6836, 9188}

// Random fleets with every rule go through all stages, twice, the second time
// after a shift of demand with the first snapshot as the previous one: they are
// infeasible, in words that say why, or end in a snapshot that agents accept and
// whose proof holds.
func TestWholeFleets(t *testing.T) {
	seen := make(map[string]int)
	for _, seed := range foundFleets {
		wholeFleet(t, seed, seen)
	}
	for seed := range uint64(*wholeFleets) {
		wholeFleet(t, seed, seen)
	}
	t.Log(seen)
	for _, what := range []string{"solved", "infeasible", "shed", "split", "followed", "judged"} {
		if seen[what] < *wholeFleets/20 && (what != "judged" || lp.Available) {
			t.Errorf("%d of %d fleets are %s: the generator has lost its aim", seen[what], *wholeFleets, what)
		}
	}
}

func wholeFleet(t *testing.T, seed uint64, seen map[string]int) {
	ctx := context.Background()
	fail := func(stage string, err error) {
		t.Helper()
		t.Errorf("fleet %d: %s: %v", seed, stage, err)
	}
	random := rand.New(rand.NewPCG(seed, 77))
	fleet := oddFleet(random)
	if contradicts(fleet) {
		return // the reader of inputs refuses it
	}
	var previous *snapshot.Snapshot
	for range 2 {
		p, err := Solve(ctx, fleet, Options{Previous: proof.PreviousWeights(previous)})
		var infeasible *InfeasibleError
		switch {
		case errors.As(err, &infeasible):
			seen["infeasible"]++
			for _, wrong := range []string{"Inf ", " 0 req/s;", "  ", " on ;"} {
				if strings.Contains(err.Error(), wrong) {
					fail("words", err)
				}
			}
			return
		case err != nil && excused(err):
			seen["excused"]++
			return
		case err != nil:
			fail("solve", err)
			return
		}
		contingencies, err := p.Contingencies(ctx, p.DefaultContingencies())
		if err != nil {
			fail("contingencies", err)
			return
		}
		for _, c := range contingencies {
			if c.Unsolved != nil && !excused(c.Unsolved) {
				fail("without "+p.Engines[c.Lost].Name, c.Unsolved)
			}
		}
		h := Head{Now: created, ExpiresIn: time.Hour, Previous: previous}
		if previous != nil {
			h.PreviousDigest = snapshot.Input{Role: "previous", File: "weights.toml", SHA256: strings.Repeat("0", 64)}
			seen["followed"]++
		}
		s, err := p.Snapshot(h, contingencies)
		if err == nil {
			err = snapshot.Check(s)
		}
		if err != nil {
			fail("snapshot", err)
			return
		}
		if _, err := proof.Check(fleet, s, previous); err != nil {
			fail("proof", err)
		}
		seen["solved"]++
		if p.Work == model.WorkSplit {
			seen["split"]++
		}
		if s.Solver.ServedRPS < s.Solver.OfferedRPS*(1-1e-6) {
			seen["shed"]++
		}
		if lp.Available {
			verdict, err := lp.Judge(ctx, p.Problem, p.Solution)
			if err == nil && !verdict.Agrees {
				err = fmt.Errorf("CLP disagrees: %+v", verdict)
			}
			if err != nil {
				fail("judge", err)
			}
			seen["judged"]++
		}
		previous = s
		for i := range fleet.Demand {
			fleet.Demand[i].RPS *= 0.9 + 0.1*random.Float64()
		}
	}
}

// excused says whether a program is of the one kind of which it is not known
// what to shed, or needs CLP where there is none.
func excused(err error) bool {
	return strings.Contains(err.Error(), "want groups nested or disjoint") ||
		!lp.Available && strings.Contains(err.Error(), "built without CLP")
}

// contradicts says whether rules ask for more on an engine than they allow.
func contradicts(f *model.Fleet) bool {
	c, err := model.Compile(f, model.CompileOptions{})
	if err != nil || c.Lower == nil {
		return false
	}
	for k := range c.Lower {
		if c.Lower[k] > c.Upper[k] {
			return true
		}
	}
	return false
}

// oddFleet makes a fleet of a few engines and sources in which everything that a
// policy can say happens now and then. Its numbers are few, so that limits, ties
// and contradictions are frequent.
func oddFleet(r *rand.Rand) *model.Fleet {
	chance := func(p float64) bool { return r.Float64() < p }
	pick := func(of ...float64) float64 { return of[r.IntN(len(of))] }
	f := &model.Fleet{Policy: model.Policy{
		Fleet: "odd", MaxUtilization: pick(0.5, 0.75, 0.9), OutputTokenWork: 4, RoundTrips: pick(0, 1, 2),
		Reference: &model.Tokens{Prompt: 1024, Output: 256}, Shed: chance(0.5), FailureDomain: []string{"region", "zone"}[r.IntN(2)],
		Work: []model.WorkKind{model.WorkAuto, model.WorkSingle, model.WorkSplit}[r.IntN(3)],
	}}
	if chance(0.2) {
		f.Policy.TTFTLimitMs = 150
	}
	f.Profiles = []profile.Spec{
		{Name: "table", PromptTokens: 1024, OutputTokens: 256, Utilization: []float64{0, 0.25, 0.5, 0.75, 1}, TTFTMs: []float64{80, 85, 100, 140, 400}, TBOTMs: []float64{12, 13, 15, 18, 30}},
		{Name: "ps", PromptTokens: 1024, OutputTokens: 256, TTFTMs: []float64{70}, TBOTMs: []float64{9}, Queueing: "ps"},
		{Name: "flat", PromptTokens: 1024, OutputTokens: 256, TTFTMs: []float64{60}, TBOTMs: []float64{8}, Queueing: "none"},
	}
	regions := 1 + r.IntN(4)
	region := func() string { return fmt.Sprintf("r%d", r.IntN(regions)) }
	var capacity float64
	for e := range 1 + r.IntN(6) {
		engine := model.Engine{
			Name: fmt.Sprintf("e%d", e), Region: region(), Endpoints: []string{fmt.Sprintf("http://192.0.2.1:%d", 8000+e)},
			Profile: f.Profiles[r.IntN(3)].Name, CapacityRPS: pick(8, 8, 16, 32), Health: pick(1, 1, 1, 1, 0.5, 0),
			Labels: map[string]string{"zone": []string{"eu", "us"}[r.IntN(2)]},
		}
		if chance(0.1) {
			engine.MaxContextTokens = 1500
		}
		if chance(0.7) {
			engine.Capabilities = []string{"tools"}
		}
		if e > 0 && chance(0.3) { // a twin
			twin := f.Engines[e-1]
			twin.Name, twin.Endpoints = engine.Name, engine.Endpoints
			engine = twin
		}
		f.Engines = append(f.Engines, engine)
		capacity += engine.CapacityRPS * engine.Health * f.Policy.MaxUtilization
	}
	for c := range 1 + r.IntN(3) {
		class := model.Class{Name: fmt.Sprintf("class%d", c), Priority: r.IntN(2)}
		if chance(0.2) {
			class.Residency = map[string][]string{"zone": {"eu"}}
		}
		if chance(0.2) {
			class.Requires = []string{"tools"}
		}
		if chance(0.2) {
			class.MaxShare = pick(0.25, 0.5, 0.75)
		}
		if chance(0.2) {
			class.MaxDomainShare = pick(0.5, 0.75)
		}
		f.Policy.Classes = append(f.Policy.Classes, class)
	}
	clusters := 1 + r.IntN(4)
	for c := range clusters {
		f.Latency.From = append(f.Latency.From, fmt.Sprintf("c%d", c))
	}
	for i := range regions {
		f.Latency.To = append(f.Latency.To, fmt.Sprintf("r%d", i))
	}
	for range clusters * regions {
		f.Latency.RTTMs = append(f.Latency.RTTMs, float32(pick(2, 2, 40, 80, 80, 120)))
	}
	if chance(0.2) {
		f.Latency.RTTMs[r.IntN(len(f.Latency.RTTMs))] = float32(math.NaN())
	}
	load := pick(0.25, 0.5, 0.5, 0.75, 1, 1.25)
	var parts float64
	for _, cluster := range f.Latency.From {
		for _, class := range f.Policy.Classes {
			if chance(0.2) {
				continue
			}
			d := model.Demand{
				Cluster: cluster, Class: class.Name, RPS: pick(0, 1, 1, 2, 4), PromptTokens: pick(1024, 1024, 512, 2048), OutputTokens: pick(256, 256, 64),
				CachedFraction: pick(0, 0, 0.5), RequestsPerKey: pick(1, 4),
			}
			parts += d.RPS * ((1-d.CachedFraction)*d.PromptTokens + 4*d.OutputTokens) / 2048
			f.Demand = append(f.Demand, d)
		}
	}
	if parts == 0 {
		f.Demand = []model.Demand{{Cluster: "c0", Class: "class0", RPS: 1, PromptTokens: 1024, OutputTokens: 256, RequestsPerKey: 1}}
		parts = 1
	}
	for i := range f.Demand {
		f.Demand[i].RPS *= load * max(1, capacity) / parts
	}
	oddRules(f, r, region)
	if chance(0.2) {
		scale(f, math.Pow(10, float64(r.IntN(19)-9)))
	}
	return f
}

// scale multiplies all rates.
func scale(f *model.Fleet, by float64) {
	for i := range f.Demand {
		f.Demand[i].RPS *= by
	}
	for i := range f.Engines {
		f.Engines[i].CapacityRPS *= by
	}
	for i := range f.Policy.Caps {
		f.Policy.Caps[i].MaxRPS *= by
	}
}

func oddRules(f *model.Fleet, r *rand.Rand, region func() string) {
	chance := func(p float64) bool { return r.Float64() < p }
	share := func(of ...float64) *float64 { return &of[r.IntN(len(of))] }
	for i := range r.IntN(4) {
		rule := model.Rule{Name: fmt.Sprintf("rule %d (policy.toml:%d)", i+1, 10*i+5)}
		if chance(0.7) {
			rule.Cluster = f.Latency.From[r.IntN(len(f.Latency.From))]
		}
		if chance(0.5) {
			rule.Class = f.Policy.Classes[r.IntN(len(f.Policy.Classes))].Name
		}
		if rule.Engine = f.Engines[r.IntN(len(f.Engines))].Name; chance(0.4) {
			rule.Engine, rule.Region = "", region()
		}
		switch r.IntN(4) {
		case 0:
			rule.Forbid = true
		case 1:
			rule.MinShare = share(0, 0.125, 0.25, 1)
		default:
			rule.MaxShare = share(0, 0.25, 0.5, 1)
		}
		f.Policy.Rules = append(f.Policy.Rules, rule)
	}
	for i := range r.IntN(3) {
		c := model.Cap{Name: fmt.Sprintf("cap %d (policy.toml:%d)", i+1, 10*i+100), MaxRPS: *share(0, 4, 8, 16)}
		if c.Engine = f.Engines[r.IntN(len(f.Engines))].Name; chance(0.5) {
			c.Engine, c.Region = "", region()
		}
		f.Policy.Caps = append(f.Policy.Caps, c)
	}
}
