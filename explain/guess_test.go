package explain

import (
	"context"
	"math"
	"testing"

	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/lp"
)

// Where delays are flat, the program is CLP's, and its ranges are where the plan
// flips.
func TestGuessIsTheFlip(t *testing.T) {
	if !lp.Available {
		t.Skip("built without CLP")
	}
	ctx := context.Background()
	fleet := readFleet(t, "two-regions")
	plan, err := solve.Solve(ctx, fleet, solve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	flips := 0
	for row, demand := range plan.SourceDemand {
		for node := range plan.Engines {
			d := fleet.Demand[demand]
			found, err := FindBreakEvens(ctx, fleet, solve.Options{}, d.Cluster, d.Class, plan.Engines[node].Name)
			if err != nil {
				t.Fatal(err)
			}
			flip := found.Flips[0]
			if flip.At == nil {
				continue
			}
			flips++
			direction := 0
			if flip.Up {
				direction = 1
			}
			guess := guess(ctx, plan, row, node).roundTripMs[direction]
			if distance := math.Abs(*flip.At - flip.Now); math.Abs(guess-distance) > guessWidth*distance {
				t.Errorf("%s to %s: flips %.4g ms from now, guessed %.4g", d.Cluster, plan.Engines[node].Name, distance, guess)
			}
		}
	}
	if flips == 0 {
		t.Error("no flip")
	}
}

// A search begins around the guess, and goes on beyond it.
func TestDistances(t *testing.T) {
	p := parameter{step: 1, guess: [2]float64{0, 100}, within: 1e-3}
	for up, want := range map[bool][]float64{false: {1, 2, 4}, true: {98, 102, 200, 400}} {
		i := 0
		for d := range p.distances(up) {
			if math.Abs(d-want[i]) > 1e-9 {
				t.Errorf("up %t: distance %d is %g, want %g", up, i, d, want[i])
			}
			if i++; i == len(want) {
				break
			}
		}
	}
}
