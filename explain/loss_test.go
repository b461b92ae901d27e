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

// The keys of a lost engine go to the others by weight, as in the agents.
func TestReactionFollowsTheWeights(t *testing.T) {
	fleet := readFleet(t, "follow-the-sun")
	s := snapshotOf(t, fleet)
	found := losses(t, fleet)
	i := slices.IndexFunc(s.Sources, func(x snapshot.Source) bool { return x.Cluster == "West Europe" && x.Class == "chat" })
	weight := make(map[string]float64)
	for _, w := range s.Sources[i].Weights {
		weight[w.Engine] = w.Fraction
	}
	now, err := Resolve(context.Background(), fleet, solve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	reactor, err := newReactor(s, now.plan)
	if err != nil {
		t.Fatal(err)
	}
	parts, none := reactor.walk(&s.Sources[i], []string{"asia-b200"})
	rest := 1 - weight["asia-b200"]
	for _, engine := range []string{"eu-h200", "us-h100"} {
		if want := weight[engine] / rest; math.Abs(parts[engine]-want) > 0.03 {
			t.Errorf("%s gets %v of the keys of asia-b200, want %v", engine, parts[engine], want)
		}
	}
	if none != 0 || len(parts) != 2 {
		t.Errorf("parts are %v, none %v", parts, none)
	}
	// What is lost is moved or has nowhere to go.
	for name, l := range found {
		if math.Abs(l.Reaction.MovedRPS-l.CarriedRPS) > 1e-9 { // all requests are of the reference size
			t.Errorf("%s carried %v req/s, %v move", name, l.CarriedRPS, l.Reaction.MovedRPS)
		}
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
