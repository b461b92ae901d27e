package explain

import (
	"context"

	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/lp"
)

// guesses are how far, down and up, the use of a pair may be from a flip; 0:
// nothing is known. CLP's ranges say how far figures of its linear program may
// change before its basis does; searches start there.
type guesses struct {
	roundTripMs [2]float64
	capacityRPS [2]float64
}

// guessWidth is how wrong a guess may be, relative, for its neighbourhood to
// hold the flip.
const guessWidth = 0.02

// guess ranges the plan for source row and engine node. Without CLP, or where it
// cannot range, it knows nothing.
func guess(ctx context.Context, plan *solve.Plan, row, node int) (g guesses) {
	ranging, err := lp.Ranges(ctx, plan.Problem, plan.Solution, row)
	if err != nil {
		return g
	}
	for _, r := range ranging.Routes {
		if r.Pair < plan.Row[row] || r.Pair >= plan.Row[row+1] || int(plan.Col[r.Pair]) != node {
			continue
		}
		turns := plan.Fleet.Policy.RoundTrips
		g.roundTripMs = [2]float64{finite((r.NowMs - r.LowMs) / turns), finite((r.HighMs - r.NowMs) / turns)}
	}
	for _, r := range ranging.Limits {
		if r.Engine != node || r.Now <= 0 {
			continue
		}
		capacity := plan.Fleet.Engines[plan.NodeEngine[node]].CapacityRPS
		g.capacityRPS = [2]float64{finite((r.Now - r.Low) / r.Now * capacity), finite((r.High - r.Now) / r.Now * capacity)}
	}
	return g
}

// finite returns x, or 0 where it is beyond what a search could want.
func finite(x float64) float64 {
	if !(x > 0 && x < 1e12) {
		return 0
	}
	return x
}
