package solve

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
	"github.com/irb-project/irb/solve/proof"
)

// alike makes a-1 of 100 and c-1 of 80 req/s alike to both clusters, without
// delay up to a utilization.
func alike(t *testing.T, policy, demand string, free float64) *model.Fleet {
	fleet := withPolicy(t, policy, demand)
	fleet.Profiles[0] = profile.Spec{
		Name: fleet.Profiles[0].Name, PromptTokens: 1024, OutputTokens: 256,
		Utilization: []float64{0, free, 1}, TTFTMs: []float64{80, 80, 400}, TBOTMs: []float64{12, 12, 30},
	}
	for i := range fleet.Latency.RTTMs {
		fleet.Latency.RTTMs[i] = 2
	}
	return fleet
}

// Engines that cost the same are used in proportion to their capacity, whatever
// is left on them by sources that have no choice, and up to where delay begins.
func TestTiesAreProportional(t *testing.T) {
	for _, c := range []struct {
		name, policy, demand string
		a, c                 float64 // utilization
	}{
		{"all free", "fleet = \"t\"\n", "cluster,rps\nus-east,30\nus-west,15\n", 45.0 / 180, 45.0 / 180},
		{"one must", "[[rule]]\ncluster = \"us-west\"\nengine = \"a-1\"\nforbid = true\n", "cluster,rps\nus-east,30\nus-west,15\n", 45.0 / 180, 45.0 / 180},
		{"one must, more", "[[rule]]\ncluster = \"us-west\"\nengine = \"a-1\"\nforbid = true\n", "cluster,rps\nus-east,10\nus-west,30\n", 0.1, 30.0 / 80},
		{"up to the delay", "[[rule]]\ncluster = \"us-west\"\nengine = \"a-1\"\nforbid = true\n", "cluster,rps\nus-east,45\nus-west,40\n", 0.45, 0.5},
		{"a share", "[[rule]]\ncluster = \"us-west\"\nengine = \"c-1\"\nmin_share = 1\n", "cluster,rps\nus-east,30\nus-west,15\n", 45.0 / 180, 45.0 / 180},
	} {
		t.Run(c.name, func(t *testing.T) {
			fleet := alike(t, c.policy, c.demand, 0.5)
			p := plan(t, fleet, nil)
			near(t, "a-1", utilization(p, "a-1"), c.a, 1e-12)
			near(t, "c-1", utilization(p, "c-1"), c.c, 1e-12)
			s := build(t, p, nil)
			if _, err := proof.Check(fleet, s, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// Where a plan is there already, ties are no reason to move.
func TestTiesStay(t *testing.T) {
	fleet := alike(t, "fleet = \"t\"\n", "cluster,rps\nus-east,30\nus-west,15\n", 0.5)
	before := build(t, plan(t, fleet, nil), nil)
	fleet.Engines[1].CapacityRPS = 40
	after := build(t, plan(t, fleet, before), before)
	if after.Solver.MovedShare != 0 {
		t.Errorf("%v of the traffic moves for nothing", after.Solver.MovedShare)
	}
}

// A sentence names a few engines and counts the others: that of each of many
// weights would name all of them else.
func TestSentencesNameFew(t *testing.T) {
	for _, free := range []float64{0.1, 0.9} { // delays at plan, none
		fleet := alike(t, "fleet = \"t\"\n", "cluster,rps\nus-east,300\nus-west,150\n", free)
		for i := range 20 {
			copyEngine(fleet, 0, fmt.Sprintf("copy-%02d", i))
		}
		for _, source := range build(t, plan(t, fleet, nil), nil).Sources {
			for _, w := range source.Weights {
				if !strings.Contains(w.Text, " and 15 more") || len(w.Text) > 400 {
					t.Errorf("%s: %s", w.Engine, w.Text)
				}
			}
		}
	}
}

// Whoever has a choice among engines that cost the same sends nothing to one
// that is fuller than another, unless delay begins on that one.
func TestTiesAreLevelled(t *testing.T) {
	const free = 0.5
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		fleet := alike(t, "fleet = \"t\"\n", "cluster,rps\nus-east,30\nus-west,15\n", free)
		for i := range 1 + random.IntN(5) {
			copyEngine(fleet, random.IntN(2), fmt.Sprintf("copy-%d", i))
			fleet.Engines[len(fleet.Engines)-1].CapacityRPS = 10 + 90*random.Float64()
		}
		for i := range random.IntN(4) {
			fleet.Policy.Rules = append(fleet.Policy.Rules, model.Rule{
				Name: fmt.Sprint("rule ", i), Cluster: fleet.Demand[random.IntN(2)].Cluster,
				Engine: fleet.Engines[1+random.IntN(len(fleet.Engines)-1)].Name, Forbid: true,
			})
		}
		p := plan(t, fleet, nil)
		for s := range p.Sources {
			for _, f := range p.Reader.Flows(s) {
				used := int(p.Col[f.Pair])
				for k := p.Row[s]; k < p.Row[s+1]; k++ {
					other := int(p.Col[k])
					v := p.Reader.Utilization(other)
					if p.Reader.Utilization(used) > v+1e-9 && v < free-1e-9 {
						t.Errorf("seed %d: %s uses %s at %v, not %s at %v", seed, p.Sources[s].Cluster, p.Engines[used].Name, p.Reader.Utilization(used), p.Engines[other].Name, v)
					}
				}
			}
		}
	}
}
