package solve

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/model"
)

// shaken returns an example with random demands and capacities, the same for
// the same seed. Its total demand stays below 80 % of its limits.
func shaken(t *testing.T, example string, seed uint64) *model.Fleet {
	fleet := readFleet(t, "../examples/"+example)
	random := rand.New(rand.NewPCG(seed, 9))
	for i := range fleet.Demand {
		fleet.Demand[i].RPS *= 0.4 + 0.4*random.Float64()
	}
	for i := range fleet.Engines {
		fleet.Engines[i].CapacityRPS *= 1 + random.Float64()
	}
	return fleet
}

func solveAs(t *testing.T, fleet *model.Fleet, work model.WorkKind) *Plan {
	t.Helper()
	p, err := Solve(context.Background(), fleet, Options{Work: work})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// eachFleet runs a test on shaken examples with both kinds of work.
func eachFleet(t *testing.T, test func(t *testing.T, fleet *model.Fleet, work model.WorkKind)) {
	for _, example := range []string{"two-regions-queueing", "follow-the-sun"} {
		for _, work := range []model.WorkKind{model.WorkSingle, model.WorkSplit} {
			for seed := range uint64(4) {
				t.Run(fmt.Sprintf("%s/%s/%d", example, work, seed), func(t *testing.T) {
					test(t, shaken(t, example, seed), work)
				})
			}
		}
	}
}

// copyEngine adds a copy of an engine under another name. Where latencies are
// by engine, it gets the column of the first.
func copyEngine(fleet *model.Fleet, i int, name string) {
	e := fleet.Engines[i]
	if slices.Contains(fleet.Latency.To, e.Name) {
		addColumn(&fleet.Latency, e.Name, name)
	}
	e.Name, e.Endpoints = name, []string{"http://192.0.2.1:8000"}
	fleet.Engines = append(fleet.Engines, e)
}

func addColumn(l *model.Latency, like, name string) {
	column := slices.Index(l.To, like)
	var rtt []float32
	for row := range l.From {
		cells := l.RTTMs[row*len(l.To) : (row+1)*len(l.To)]
		rtt = append(append(rtt, cells...), cells[column])
	}
	l.To, l.RTTMs = append(slices.Clone(l.To), name), rtt
}

func addRow(l *model.Latency, like, name string) {
	row := slices.Index(l.From, like)
	l.From = append(slices.Clone(l.From), name)
	l.RTTMs = append(slices.Clone(l.RTTMs), l.RTTMs[row*len(l.To):(row+1)*len(l.To)]...)
}

// rates returns the req/s of each "cluster/class engine".
func rates(p *Plan) map[string]float64 {
	out := make(map[string]float64)
	for s, source := range p.Sources {
		for _, f := range p.Reader.Flows(s) {
			out[source.Cluster+"/"+source.Class+" "+p.Engines[p.Col[f.Pair]].Name] = f.RPS
		}
	}
	return out
}

func utilization(p *Plan, engine string) float64 {
	e := slices.IndexFunc(p.Engines, func(e model.EngineNode) bool { return e.Name == engine })
	return p.Reader.Utilization(e)
}

// within is how exactly a solver finds loads that its optimum determines: the
// network simplex to rounding, the interior point method to its gap.
func within(work model.WorkKind) float64 {
	if work == model.WorkSingle {
		return 1e-12
	}
	return 1e-6
}

func TestIdenticalEnginesAreLoadedEqually(t *testing.T) {
	eachFleet(t, func(t *testing.T, fleet *model.Fleet, work model.WorkKind) {
		for i := range slices.Clone(fleet.Engines) {
			copyEngine(fleet, i, fleet.Engines[i].Name+"-twin")
		}
		p := solveAs(t, fleet, work)
		rate := rates(p)
		for _, e := range p.Engines {
			twin, ok := strings.CutSuffix(e.Name, "-twin")
			if !ok {
				continue
			}
			near(t, "utilization of "+e.Name, utilization(p, e.Name), utilization(p, twin), within(work))
			for _, s := range p.Sources {
				name := s.Cluster + "/" + s.Class
				near(t, name+" on "+e.Name, rate[name+" "+e.Name], rate[name+" "+twin], within(work)*s.DemandRPS)
			}
		}
	})
}

func TestIdenticalEnginesAreNamedAsTies(t *testing.T) {
	fleet := readFleet(t, "../examples/two-regions-queueing")
	copyEngine(fleet, 0, "a-2")
	s := build(t, plan(t, fleet, nil), nil)
	one, two := weight(t, s, "us-east", "a-1"), weight(t, s, "us-east", "a-2")
	if one.Quota-two.Quota > 1 || two.Quota-one.Quota > 1 {
		t.Errorf("quotas of twins are %d and %d", one.Quota, two.Quota)
	}
	for _, w := range []snapshot.Weight{one, two} {
		if w.Code != "tie" || !strings.Contains(w.Text, "a-1") || !strings.Contains(w.Text, "a-2") {
			t.Errorf("%s of us-east: %s: %s; want a tie, and both named", w.Engine, w.Code, w.Text)
		}
	}
}

func TestIdenticalSourcesGetEqualFractions(t *testing.T) {
	eachFleet(t, func(t *testing.T, fleet *model.Fleet, work model.WorkKind) {
		for i, d := range slices.Clone(fleet.Demand) {
			fleet.Demand[i].RPS /= 3
			twin := d.Cluster + "-twin"
			if !slices.Contains(fleet.Latency.From, twin) {
				addRow(&fleet.Latency, d.Cluster, twin)
			}
			d.Cluster, d.RPS = twin, d.RPS*2/3
			fleet.Demand = append(fleet.Demand, d)
		}
		rate := rates(solveAs(t, fleet, work))
		for name, rps := range rate {
			if first, ok := strings.CutSuffix(name, "-twin"); ok {
				t.Fatalf("%s is an engine", first)
			}
			cluster, rest, _ := strings.Cut(name, "/")
			if first, ok := strings.CutSuffix(cluster, "-twin"); ok {
				near(t, name, rps, 2*rate[first+"/"+rest], 10*within(work)*max(1, rps))
			}
		}
	})
}

func TestHalvesOfAnEngineChangeNothing(t *testing.T) {
	eachFleet(t, func(t *testing.T, fleet *model.Fleet, work model.WorkKind) {
		before := solveAs(t, fleet, work)
		name := fleet.Engines[0].Name
		fleet.Engines[0].CapacityRPS /= 2
		copyEngine(fleet, 0, name+"-half")
		after := solveAs(t, fleet, work)
		near(t, "objective", after.Report.ObjectiveMsRPS/before.Report.ObjectiveMsRPS, 1, 1e-9)
		near(t, "utilization", utilization(after, name), utilization(before, name), within(work))
		near(t, "utilization of the half", utilization(after, name+"-half"), utilization(before, name), within(work))
	})
}

func TestAnExtraEngineNeverCosts(t *testing.T) {
	eachFleet(t, func(t *testing.T, fleet *model.Fleet, work model.WorkKind) {
		before := solveAs(t, fleet, work).Report.ObjectiveMsRPS
		for i := range slices.Clone(fleet.Engines) {
			copyEngine(fleet, i, fleet.Engines[i].Name+"-more")
			fleet.Engines[len(fleet.Engines)-1].CapacityRPS *= 0.3
			after := solveAs(t, fleet, work).Report.ObjectiveMsRPS
			if after > before*(1+1e-9) {
				t.Errorf("one more like %s raises the objective from %v to %v", fleet.Engines[i].Name, before, after)
			}
			before = after
		}
	})
}

func TestDoublingDoublesRates(t *testing.T) {
	eachFleet(t, func(t *testing.T, fleet *model.Fleet, work model.WorkKind) {
		before := solveAs(t, fleet, work)
		for i := range fleet.Demand {
			fleet.Demand[i].RPS *= 2
		}
		for i := range fleet.Engines {
			fleet.Engines[i].CapacityRPS *= 2
		}
		after := solveAs(t, fleet, work)
		near(t, "objective", after.Report.ObjectiveMsRPS/before.Report.ObjectiveMsRPS, 2, 1e-9)
		for e := range before.Engines {
			near(t, "utilization of "+before.Engines[e].Name, after.Reader.Utilization(e), before.Reader.Utilization(e), within(work))
		}
		if work == model.WorkSingle { // a power of two: the same to the bit
			was := rates(before)
			for name, rps := range rates(after) {
				if rps != 2*was[name] {
					t.Errorf("%s gets %v, want twice %v", name, rps, was[name])
				}
			}
		}
	})
}

// At the reference mix split work is single work: the same optimum.
func TestSplitIsSingleAtTheReferenceMix(t *testing.T) {
	for seed := range uint64(8) {
		fleet := shaken(t, "two-regions-queueing", seed)
		for i := range fleet.Demand {
			fleet.Demand[i].PromptTokens, fleet.Demand[i].OutputTokens = 1024, 256
		}
		single, split := solveAs(t, fleet, model.WorkSingle), solveAs(t, fleet, model.WorkSplit)
		near(t, "objective", split.Report.ObjectiveMsRPS/single.Report.ObjectiveMsRPS, 1, 1e-8)
		for e := range single.Engines {
			near(t, "utilization", split.Reader.Utilization(e), single.Reader.Utilization(e), 1e-5)
		}
	}
}
