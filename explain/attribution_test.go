package explain

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/proof"
)

// perturb changes one group of a fleet's inputs so that its plan changes.
func perturb(t *testing.T, in Inputs, g group, random *rand.Rand) Inputs {
	f := *in.Fleet
	out := Inputs{Fleet: &f, Previous: in.Previous}
	factor := func() float64 { return 0.85 + 0.25*random.Float64() }
	switch g {
	case demandGroup:
		f.Demand = slices.Clone(f.Demand)
		for i := range f.Demand {
			f.Demand[i].RPS *= factor()
		}
	case latencyGroup:
		f.Latency.RTTMs = slices.Clone(f.Latency.RTTMs)
		for i := range f.Latency.RTTMs {
			f.Latency.RTTMs[i] *= float32(0.5 + random.Float64())
		}
	case capacityGroup:
		f.Engines = slices.Clone(f.Engines)
		for i := range f.Engines {
			f.Engines[i].CapacityRPS *= 1 + 0.3*random.Float64()
		}
	case profileGroup:
		f.Profiles = slices.Clone(f.Profiles)
		p := &f.Profiles[0]
		p.TBOTMs = slices.Clone(p.TBOTMs)
		for i := range p.TBOTMs {
			p.TBOTMs[i] *= 1.1
		}
	case policyGroup:
		f.Policy.MaxUtilization = 0.85
	case previousGroup:
		plan, err := solve.Solve(context.Background(), sun(t).Fleet, solve.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := plan.Snapshot(solve.Head{Now: time.Unix(1, 0), ExpiresIn: time.Hour}, nil)
		if err != nil {
			t.Fatal(err)
		}
		shift(s)
		out.Previous = proof.PreviousWeights(s)
	}
	return out
}

// shift swaps the weights of the first source with several.
func shift(s *snapshot.Snapshot) {
	for i := range s.Sources {
		if w := s.Sources[i].Weights; len(w) > 1 {
			w[0].Quota, w[1].Quota = w[1].Quota, w[0].Quota
			return
		}
	}
}

func sun(t *testing.T) Inputs {
	fleet := readFleet(t, "follow-the-sun")
	for i := range fleet.Demand {
		fleet.Demand[i].CachedFraction = 0.5
	}
	return Inputs{Fleet: fleet}
}

// One group alone has all of the change.
func TestOneGroupAloneHasItAll(t *testing.T) {
	old := sun(t)
	for g, name := range groupNames {
		now := perturb(t, old, group(g), rand.New(rand.NewPCG(uint64(g), 1)))
		a, err := Attribute(context.Background(), old, now, model.WorkAuto)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Groups) != 1 || a.Groups[0].Group != name {
			t.Errorf("%s alone changed; the change is put down to %+v", name, a.Groups)
			continue
		}
		change := a.NewSolved.ObjectiveMsRPS - a.OldSolved.ObjectiveMsRPS
		if change == 0 || math.Abs(a.Groups[0].ObjectiveMsRPS-change) > 1e-9*math.Abs(a.OldSolved.ObjectiveMsRPS) {
			t.Errorf("%s has %v of a change of %v ms x req/s", name, a.Groups[0].ObjectiveMsRPS, change)
		}
	}
}

// The parts of several groups sum to the change of the objective, of the mean
// latency and of every flow.
func TestPartsSumToTheChange(t *testing.T) {
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 2))
		old := sun(t)
		now, changed := old, 0
		for g := range groupNames {
			if random.IntN(3) > 0 {
				now = perturb(t, now, group(g), random)
				changed++
			}
		}
		a, err := Attribute(context.Background(), old, now, model.WorkSingle)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Groups) != changed {
			t.Errorf("seed %d: %d groups changed, %d have a part", seed, changed, len(a.Groups))
		}
		var objective, latency float64
		for _, g := range a.Groups {
			objective += g.ObjectiveMsRPS
			latency += g.MeanLatencyMs
		}
		scale := 1e-9 * a.OldSolved.ObjectiveMsRPS
		if want := a.NewSolved.ObjectiveMsRPS - a.OldSolved.ObjectiveMsRPS; math.Abs(objective-want) > scale {
			t.Errorf("seed %d: parts of the objective sum to %v, the change is %v", seed, objective, want)
		}
		if want := a.NewSolved.MeanLatencyMs - a.OldSolved.MeanLatencyMs; math.Abs(latency-want) > scale {
			t.Errorf("seed %d: parts of the latency sum to %v, the change is %v", seed, latency, want)
		}
		if len(a.Flows) == 0 {
			t.Errorf("seed %d: no flow changes: the generator has lost its aim", seed)
		}
		for _, f := range a.Flows {
			var sum float64
			for _, part := range f.By {
				sum += part
			}
			if math.Abs(sum-(f.ThenRPS-f.NowRPS)) > 1e-9 {
				t.Errorf("seed %d: parts of %s on %s sum to %v, the change is %v", seed, f.Source, f.Engine, sum, f.ThenRPS-f.NowRPS)
			}
		}
	}
}

// A mixture may name what only one side knows.
func TestMixtureOfFleetsThatGrew(t *testing.T) {
	old := Inputs{Fleet: readFleet(t, "follow-the-sun")}
	grown := *old.Fleet
	grown.Profiles = append(slices.Clone(grown.Profiles), grown.Profiles[0])
	grown.Profiles[len(grown.Profiles)-1].Name = "new-gpu"
	grown.Engines = append(slices.Clone(grown.Engines), model.Engine{
		Name: "br-1", Region: "Brazil", Endpoints: []string{"http://127.0.0.1:1"}, Profile: "new-gpu", CapacityRPS: 10, Health: 1,
	})
	grown.Policy.Classes = append(slices.Clone(grown.Policy.Classes), model.Class{Name: "batch", Priority: -1})
	grown.Demand = append(slices.Clone(grown.Demand), model.Demand{Cluster: "Brazil", Class: "batch", RPS: 1, PromptTokens: 1024, OutputTokens: 1024, RequestsPerKey: 1})
	grown.Latency = model.Latency{From: append(slices.Clone(old.Fleet.Latency.From), "Brazil"), To: append(slices.Clone(old.Fleet.Latency.To), "Brazil")}
	n := len(old.Fleet.Latency.To)
	for i := range grown.Latency.From {
		for j := range grown.Latency.To {
			ms := float32(100)
			if i < n && j < n {
				ms = old.Fleet.Latency.RTTMs[i*n+j]
			}
			grown.Latency.RTTMs = append(grown.Latency.RTTMs, ms)
		}
	}
	a, err := Attribute(context.Background(), old, Inputs{Fleet: &grown}, model.WorkSingle)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Groups) != 5 {
		t.Errorf("groups are %+v, want all but the previous weights", a.Groups)
	}
	b, err := Attribute(context.Background(), Inputs{Fleet: &grown}, old, model.WorkSingle)
	if err != nil {
		t.Fatal(err)
	}
	for i := range a.Groups {
		if math.Abs(a.Groups[i].ObjectiveMsRPS+b.Groups[i].ObjectiveMsRPS) > 1e-6 {
			t.Errorf("%s has %v one way and %v the other", a.Groups[i].Group, a.Groups[i].ObjectiveMsRPS, b.Groups[i].ObjectiveMsRPS)
		}
	}
}
