package guard

import (
	"sort"

	"github.com/irb-project/irb/agent/snapshot"
)

// maxUtilization is where latency is looked up at most. Above it a profile says
// nothing, and an engine that is asked for more than it can do must look slow,
// not busy as planned.
const maxUtilization = 1.0

// maxPSUtilization keeps the formula T(0)/(1-v) finite.
const maxPSUtilization = 0.95

// curve evaluates the profile of an engine.
type curve struct{ p *snapshot.Profile }

// ttftMs returns the time to first token of the reference prompt at
// utilization v, in ms.
func (c curve) ttftMs(v float64) float64 { return c.at(c.p.TTFTV, c.p.TTFTMs, v) }

// tbotMs returns the time between output tokens at utilization v, in ms.
func (c curve) tbotMs(v float64) float64 { return c.at(c.p.TBOTV, c.p.TBOTMs, v) }

// at is linear between points; the last value holds beyond them.
func (c curve) at(vs, ms []float64, v float64) float64 {
	if len(ms) == 0 {
		return 0
	}
	v = min(max(v, 0), maxUtilization)
	if c.p.Queueing == "ps" {
		return ms[0] / (1 - min(v, maxPSUtilization))
	}
	i := sort.SearchFloat64s(vs, v)
	switch {
	case c.p.Queueing != "" || i == 0:
		return ms[0]
	case i >= len(vs) || i >= len(ms):
		return ms[len(ms)-1]
	}
	t := (v - vs[i-1]) / (vs[i] - vs[i-1])
	return ms[i-1] + t*(ms[i]-ms[i-1])
}

// latencyMs returns the latency of a request of q uncached prompt tokens and o
// output tokens at utilization v, in ms.
func (c curve) latencyMs(v, q, o float64) float64 {
	return c.ttftMs(v)*q/c.p.PromptTokens + o*c.tbotMs(v)
}

// utilizationOf returns the utilization at which, by Little's law, n requests
// are in progress: n = v C T(v), with C in reference requests/s and T the
// latency of the reference request. It is at most 1.
func (c curve) utilizationOf(n, capacityRPS float64) float64 {
	inProgress := func(v float64) float64 {
		return v * capacityRPS * c.latencyMs(v, c.p.PromptTokens, c.p.OutputTokens) / 1000
	}
	lo, hi := 0.0, maxUtilization
	if inProgress(hi) <= n {
		return hi
	}
	for range 20 { // to 1e-6; n grows with v
		if mid := (lo + hi) / 2; inProgress(mid) < n {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}
