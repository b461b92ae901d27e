package page

import (
	"slices"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/profile"
)

// curve is the latency of an engine's reference request against the rate of
// such requests, and where the plan is on it. Of split work the plan is beside
// the curve where its mix of prompt and output is not the reference's.
type curve struct {
	Points   [][2]float64 `json:"points"` // reference req/s, ms
	Plan     [2]float64   `json:"plan"`
	LimitRPS float64      `json:"limit_rps"`
}

// A curve is drawn up to utilization 1, one of processor sharing, which has no
// latency there, up to lastPS.
const (
	curveSteps = 48
	lastPS     = 0.97
)

func curveOf(e *snapshot.Engine) curve {
	p := profile.Profile{
		OutputTokens: e.Profile.OutputTokens,
		TTFT:         profile.Curve{V: e.Profile.TTFTV, Ms: e.Profile.TTFTMs, PS: e.Profile.Queueing == "ps"},
		TBOT:         profile.Curve{V: e.Profile.TBOTV, Ms: e.Profile.TBOTMs, PS: e.Profile.Queueing == "ps"},
	}
	last := 1.0
	if p.TTFT.PS {
		last = max(lastPS, min(0.999, e.Utilization))
	}
	at := []float64{last}
	for i := range curveSteps {
		at = append(at, last*float64(i)/curveSteps)
	}
	for _, v := range slices.Concat(e.Profile.TTFTV, e.Profile.TBOTV) { // kinks
		if v < last {
			at = append(at, v)
		}
	}
	slices.Sort(at)
	c := curve{Plan: [2]float64{e.PlannedRefRPS, e.LatencyMs}, LimitRPS: e.LimitRPS}
	for _, v := range slices.Compact(at) {
		c.Points = append(c.Points, [2]float64{v * e.CapacityRPS, p.ReferenceMs(v)})
	}
	return c
}
