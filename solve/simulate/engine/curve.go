package engine

import (
	"math"

	"github.com/irb-project/irb/solve/profile"
)

// curve says how long prefill and decode take when an engine is under way with
// other work.
//
// A profile gives latency against utilization v, but an engine in motion only
// has requests in progress. Little's law joins the two: at v,
//
//	N(v) = v capacity T(v), T = TTFT + o_ref TBOT in s
//
// reference requests are in progress, so a request among i others meets
// v = N⁻¹(i). Counting the others is what an arrival sees (PASTA): alone it
// takes T(0). That is processor sharing at a speed that depends on the number
// present, whose mean latency depends on the sizes through their mean only
// (Kelly, Reversibility and Stochastic Networks, 1979, ch. 3). For the formula
// T(0)/(1-v) the mean is T(0)/(1-v) exactly, M/G/1-PS being capacity T(0) = 1;
// for a table it is the table's, smoothed by how much the number varies.
//
// Beyond N(1) the engine goes on at its capacity, shared by more requests.
type curve struct {
	ttft, tbot []float64 // s for a reference prompt, per output token; among i others
}

// noTime in s stands for a phase that takes none, so that its speed is finite.
const noTime = 1e-9

// newCurve tabulates up to slots requests in progress.
func newCurve(p profile.Profile, capacityRPS float64, slots int) curve {
	c := curve{ttft: make([]float64, slots+1), tbot: make([]float64, slots+1)}
	end := inProgress(p, capacityRPS, 1)
	for i := range c.ttft {
		v := utilizationAmong(p, capacityRPS, float64(i))
		stretch := 1.0
		if v >= 1 {
			stretch = max(1, float64(i)/end)
		}
		c.ttft[i] = max(noTime, stretch*p.TTFT.At(v)/1000)
		c.tbot[i] = max(noTime, stretch*p.TBOT.At(v)/1000)
	}
	return c
}

// at returns TTFT and TBOT in s among that much other work, linear between
// whole numbers of reference requests.
func (c *curve) at(others float64) (ttft, tbot float64) {
	i := int(others)
	if i+1 >= len(c.ttft) {
		last := len(c.ttft) - 1
		stretch := max(1, others/float64(max(1, last)))
		return c.ttft[last] * stretch, c.tbot[last] * stretch
	}
	f := others - float64(i)
	return c.ttft[i] + f*(c.ttft[i+1]-c.ttft[i]), c.tbot[i] + f*(c.tbot[i+1]-c.tbot[i])
}

// inProgress returns N(v).
func inProgress(p profile.Profile, capacityRPS, v float64) float64 {
	return v * capacityRPS * p.ReferenceMs(v) / 1000
}

// utilizationAmong returns N⁻¹(others), at most 1.
func utilizationAmong(p profile.Profile, capacityRPS, others float64) float64 {
	if p.TTFT.PS {
		return others / (others + capacityRPS*p.ReferenceMs(0)/1000)
	}
	if others >= inProgress(p, capacityRPS, 1) {
		return 1
	}
	low, high := 0.0, 1.0
	for range 60 { // N rises with v; 60 halvings exhaust a float64
		if mid := (low + high) / 2; inProgress(p, capacityRPS, mid) < others {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// roomFactor is how many times the requests of full load may be in service.
// Engines take more into their batch than they can serve at speed; what comes
// on top waits.
const roomFactor = 2

// saturation returns how many reference requests are in progress where the
// profile ends: at utilization 1, or at 0.99 for a formula that has no value
// there.
func saturation(p profile.Profile, capacityRPS float64) int {
	v := 1.0
	if p.TTFT.PS {
		v = 0.99
	}
	return 1 + int(math.Ceil(inProgress(p, capacityRPS, v)))
}
