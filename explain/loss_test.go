package explain

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/model"
)

func snapshotOf(t *testing.T, fleet *model.Fleet) *snapshot.Snapshot {
	t.Helper()
	plan, err := solve.Solve(context.Background(), fleet, solve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	contingencies, err := plan.Contingencies(context.Background(), 10)
	if err != nil {
		t.Fatal(err)
	}
	s, err := plan.Snapshot(solve.Head{Now: time.Unix(1, 0), ExpiresIn: time.Hour}, contingencies)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func losses(t *testing.T, fleet *model.Fleet) map[string]Loss {
	t.Helper()
	l, err := LoseEach(context.Background(), fleet, solve.Options{}, snapshotOf(t, fleet))
	if err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]Loss)
	for _, x := range l.Losses {
		byName[x.Lost] = x
	}
	return byName
}

func TestLossesOfTwoRegions(t *testing.T) {
	fleet := readFleet(t, "two-regions")
	for i := range fleet.Demand {
		fleet.Demand[i].RPS /= 2 // 60 and 20 req/s: a-1 alone holds 100, c-1 80
	}
	found := losses(t, fleet)
	if len(found) != 2 { // each region has one engine
		t.Fatalf("losses are %+v", found)
	}
	a := found["a-1"]
	// 60 req/s pay 63 ms more, of 80 req/s.
	if a.ShedRPS != 0 || math.Abs(a.RiseMs-60*63/80.0) > 1e-9 || a.Infeasible != "" {
		t.Errorf("without a-1: %+v", a)
	}
	if r := a.Reaction; r.MovedRPS != 60 || r.UnroutedRPS != 0 || math.Abs(r.MeanLatencyMs-a.MeanLatencyMs) > 1e-6 || r.fullest().Engine != "c-1" {
		t.Errorf("the agents' reaction to the loss of a-1 is %+v", r)
	}
	fleet.Policy.Classes[0].Residency = map[string][]string{"region": {"region-a"}}
	a = losses(t, fleet)["a-1"]
	if a.ShedRPS != 80 || a.Reaction.UnroutedRPS != 80 || len(a.ShedSources) != 2 || a.Infeasible == "" {
		t.Errorf("with residency, without a-1: %+v", a)
	}
}

func newTestReactor(t *testing.T, fleet *model.Fleet, s *snapshot.Snapshot) *reactor {
	t.Helper()
	now, err := Resolve(context.Background(), fleet, solve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := newReactor(s, now.plan)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The keys of a lost engine go to the others by weight, as in the agents, where
// these have room.
func TestReactionFollowsTheWeights(t *testing.T) {
	fleet := readFleet(t, "follow-the-sun")
	s := snapshotOf(t, fleet)
	i := slices.IndexFunc(s.Sources, func(x snapshot.Source) bool { return x.Cluster == "West Europe" && x.Class == "chat" })
	weight := make(map[string]float64)
	for _, w := range s.Sources[i].Weights {
		weight[w.Engine] = w.RPS
	}
	r := newTestReactor(t, fleet, s)
	for e := range r.p.Engines {
		r.p.Engines[e].Capacity *= 100
	}
	d := r.newDiversion([]string{"asia-b200"})
	d.plan(&s.Sources[i])
	d.divert()
	if len(weight) != 3 || len(d.flows) != 2 || d.out.RefusedRPS != 0 || d.out.UnroutedRPS != 0 {
		t.Fatalf("weights %v become %v: %+v", weight, d.flows, d.out)
	}
	// What asia-b200 had is divided like what the others have.
	grows := 1 + weight["asia-b200"]/(weight["eu-h200"]+weight["us-h100"])
	for k, rps := range d.flows {
		engine := r.p.Engines[r.p.Col[k]].Name
		if want := weight[engine] * grows; math.Abs(rps-want) > 0.03*weight["asia-b200"] {
			t.Errorf("%s gets %v req/s, want %v", engine, rps, want)
		}
	}
	// What is lost is moved or has nowhere to go.
	for name, l := range losses(t, fleet) {
		if math.Abs(l.Reaction.MovedRPS-l.CarriedRPS) > 1e-9 { // all requests are of the reference size
			t.Errorf("%s carried %v req/s, %v move", name, l.CarriedRPS, l.Reaction.MovedRPS)
		}
	}
}

// In two-regions a-1 carries 100 of 100 req/s, c-1 20 of us-east and 40 of
// us-west of 80.
func TestReactionKeepsToCapacityAndAbsorb(t *testing.T) {
	fleet := readFleet(t, "two-regions")
	found := losses(t, fleet)
	near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-6 }
	if r := found["a-1"].Reaction; !near(r.MovedRPS, 100) || !near(r.RefusedRPS, 80) || r.UnroutedRPS != 0 || r.BeyondRPS != 0 || !near(r.fullest().PlannedRPS, 80) {
		t.Errorf("without a-1, of 100 req/s 20 fit on c-1: %+v", r)
	}
	if r := found["c-1"].Reaction; !near(r.MovedRPS, 60) || !near(r.RefusedRPS, 60) || !near(r.fullest().PlannedRPS, 100) {
		t.Errorf("without c-1 no more fits on a-1: %+v", r)
	}

	fleet.Policy.Shed = true
	for i := range fleet.Demand {
		fleet.Demand[i].RPS *= 2 // 320 req/s, of which 180 can be served
	}
	if r := losses(t, fleet)["a-1"].Reaction; !near(r.RefusedRPS, 320-80) {
		t.Errorf("without a-1, of 320 req/s 80 can be served: %+v", r)
	}
	for i := range fleet.Demand {
		fleet.Demand[i].RPS /= 4 // 60 req/s on a-1, 20 on c-1
	}
	s := snapshotOf(t, fleet)
	for i := range s.Sources {
		for j := range s.Sources[i].Fallbacks {
			s.Sources[i].Fallbacks[j].AbsorbRPS = 10
		}
	}
	if r := newTestReactor(t, fleet, s).lose([]string{"a-1"}); !near(r.BeyondRPS, 50) || !near(r.MovedRPS, 60) || !near(r.RefusedRPS, 0) {
		t.Errorf("of 60 req/s c-1 may absorb 10, and takes the rest as nothing else has room: %+v", r)
	}
}

func TestDomainsOfSeveralEnginesAreLostTogether(t *testing.T) {
	fleet := readFleet(t, "follow-the-sun")
	fleet.Policy.FailureDomain = "zone"
	l, ok := losses(t, fleet)["zone apac"]
	if !ok || !slices.Equal(l.Engines, []string{"asia-b200", "au-h100"}) || l.ShedRPS <= 0 {
		t.Errorf("the loss of zone apac is %+v, %v", l, ok)
	}
}
