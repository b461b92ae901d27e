package solve

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/lp"
	"github.com/irb-project/irb/solve/model"
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
