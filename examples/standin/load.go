package standin

import (
	"math"

	"github.com/irb-project/irb/solve/profile"
)

// loadCurve says how fast a request gets on when it shares the engine with
// i others, for i = 0, 1, ...
//
// A profile gives latency as a function of utilization v, an engine sees only
// how many requests are in progress. Little's law joins the two: at v,
//
//	N(v) = v capacity T(v), T = TTFT + o_ref TBOT in s
//
// requests are in progress, so a request among i others meets v = N⁻¹(i).
// Counting the others, not itself, is what an arriving request sees (PASTA):
// a request alone runs at T(0). The engine's total rate with n in progress is
// then n/T(N⁻¹(n-1)), which is processor sharing whose speed depends on n.
// Its mean latency depends on the sizes only through their mean. With the
// formula T(0)/(1-v) the number in progress is negative binomial and the mean
// latency is T(0)/(1-v) exactly, M/G/1-PS being the case capacity T(0) = 1.
// With a table it is the table's, smoothed by how much n varies.
//
// Beyond N(1) the engine is saturated: it goes on at its capacity, shared by
// more requests.
type loadCurve struct {
	ttft        []float64 // s for the reference prompt
	tbot        []float64 // s per output token
	utilization []float64 // work rate / capacity when i+1 requests are in progress
}

// newLoadCurve returns the curve of an engine of capacity reference requests/s
// for up to running requests in progress.
func newLoadCurve(p profile.Profile, capacityRPS float64, running int) loadCurve {
	c := loadCurve{
		ttft:        make([]float64, running),
		tbot:        make([]float64, running),
		utilization: make([]float64, running),
	}
	for i := range running {
		v := utilizationAmong(p, capacityRPS, float64(i))
		stretch := 1.0
		if v >= 1 {
			stretch = max(1, float64(i)/inProgress(p, capacityRPS, 1))
		}
		c.ttft[i] = stretch * p.TTFT.At(v) / 1000
		c.tbot[i] = stretch * p.TBOT.At(v) / 1000
		total := c.ttft[i] + p.OutputTokens*c.tbot[i]
		c.utilization[i] = min(1, float64(i+1)/(capacityRPS*total))
	}
	return c
}

// inProgress returns N(v), the mean number of requests in progress.
func inProgress(p profile.Profile, capacityRPS, v float64) float64 {
	return v * capacityRPS * p.ReferenceMs(v) / 1000
}

// utilizationAmong returns N⁻¹(others), at most 1.
func utilizationAmong(p profile.Profile, capacityRPS, others float64) float64 {
	if p.TTFT.PS {
		return others / (others + capacityRPS*p.ReferenceMs(0)/1000)
	}
	lo, hi := 0.0, 1.0
	if others >= inProgress(p, capacityRPS, hi) {
		return hi
	}
	for range 60 { // N grows with v; 60 halvings exhaust a float64
		mid := (lo + hi) / 2
		if inProgress(p, capacityRPS, mid) < others {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// saturation returns how many requests are in progress where the profile ends:
// at utilization 1, or at 0.99 for a formula that has no value there.
func saturation(p profile.Profile, capacityRPS float64) int {
	v := 1.0
	if p.TTFT.PS {
		v = 0.99
	}
	return 1 + int(math.Ceil(inProgress(p, capacityRPS, v)))
}
