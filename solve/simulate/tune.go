package simulate

import "github.com/irb-project/irb/solve/simulate/report"

// StableSwing is the swing of an engine's share below which a loop counts as
// stable.
const StableSwing = 0.02

// selectLegacy keeps, of the tries of the legacy loop, the one of least mean
// latency and the best of the stable ones. What is not answered counts: a loop
// that sheds load by failing must not win.
func selectLegacy(all []*report.Result) []*report.Result {
	var best, stable *report.Result
	for _, r := range all {
		if r.Policy != "legacy" {
			continue
		}
		if best == nil || better(r, best) {
			best = r
		}
		if r.Oscillation.Swing < StableSwing && (stable == nil || better(r, stable)) {
			stable = r
		}
	}
	var out []*report.Result
	for _, r := range all {
		if r.Policy != "legacy" || r == best || r == stable {
			out = append(out, r)
		}
	}
	for _, r := range out {
		switch {
		case r == best && r == stable:
			r.Policy = "legacy, best and stable"
		case r == best:
			r.Policy = "legacy, best"
		case r == stable:
			r.Policy = "legacy, stable"
		}
	}
	return out
}

// better orders by answered requests where they differ by more than 1 %, then
// by mean latency.
func better(a, b *report.Result) bool {
	if d := a.Answered - b.Answered; d*100 > b.Answered || -d*100 > b.Answered {
		return d > 0
	}
	return a.LatencyMs.Mean < b.LatencyMs.Mean
}
