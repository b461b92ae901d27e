package profile

import (
	"errors"
	"fmt"
	"math"
)

// Spec is a latency profile as its author wrote it: a table or a formula.
// Times are in ms, utilization is a fraction of work capacity.
type Spec struct {
	Name         string
	PromptTokens float64 // the reference request, > 0
	OutputTokens float64

	Utilization []float64 // table; empty for a formula
	TTFTMs      []float64 // one per utilization; a single value for a formula
	TBOTMs      []float64
	Queueing    string // formula: "ps" or "none"; empty for a table

	AcceptErrorAbove25 bool // accept a fit whose worst relative error is above 25 %
}

// Validate returns every fault of the profile, joined: each says what it is
// about, what it got and what it wants.
func (s Spec) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !(s.PromptTokens > 0) || math.IsInf(s.PromptTokens, 0) {
		fault("prompt_tokens is %v, want a finite number > 0", s.PromptTokens)
	}
	if !(s.OutputTokens >= 0) || math.IsInf(s.OutputTokens, 0) {
		fault("output_tokens is %v, want a finite number >= 0", s.OutputTokens)
	}
	want := 1
	switch s.Queueing {
	case "ps", "none":
		if len(s.Utilization) > 0 {
			fault("queueing is %q beside a utilization table, want one of them", s.Queueing)
		}
	case "":
		want = len(s.Utilization)
		if want == 0 {
			fault(`neither a utilization table nor queueing, want one ("ps" or "none" for a formula)`)
		} else if s.Utilization[0] != 0 {
			fault("utilization starts at %v, want 0", s.Utilization[0])
		}
		for i, v := range s.Utilization {
			if !(v >= 0) || math.IsInf(v, 0) {
				fault("utilization[%d] is %v, want a finite number >= 0", i, v)
			} else if i > 0 && v <= s.Utilization[i-1] {
				fault("utilization[%d] is %v after %v, want rising values", i, v, s.Utilization[i-1])
			}
		}
	default:
		fault(`queueing is %q, want "ps" or "none"`, s.Queueing)
	}
	for _, t := range []struct {
		key string
		ms  []float64
	}{{"ttft_ms", s.TTFTMs}, {"tbot_ms", s.TBOTMs}} {
		if len(t.ms) != want {
			fault("%s has %d values, want %d", t.key, len(t.ms), want)
		}
		for i, x := range t.ms {
			if !(x >= 0) || math.IsInf(x, 0) {
				fault("%s[%d] is %v, want a finite number >= 0", t.key, i, x)
			}
		}
	}
	return errors.Join(errs...)
}

// Profile is a fitted Spec: TTFT and TBOT are convex and non-decreasing.
type Profile struct {
	Name         string
	PromptTokens float64
	OutputTokens float64
	TTFT         Curve
	TBOT         Curve
	// WorstRelError is the largest |fitted-given|/given over both tables.
	WorstRelError float64
}

// ReferenceMs returns the latency of the reference request at utilization v,
// TTFT(v) + OutputTokens TBOT(v), in ms.
func (p Profile) ReferenceMs(v float64) float64 {
	return p.TTFT.At(v) + p.OutputTokens*p.TBOT.At(v)
}

// LatencyMs returns the latency the profile itself predicts for a request of
// q prompt tokens to compute and o output tokens, TTFT(v) q/p_ref + o TBOT(v).
func (p Profile) LatencyMs(v, q, o float64) float64 {
	return p.TTFT.At(v)*q/p.PromptTokens + o*p.TBOT.At(v)
}

// MaxUtilizationFor returns the largest utilization at which both limits hold
// for the reference request; a limit of 0 is none. It is 0 if even an idle
// engine breaks one, +Inf if none ever binds.
func (p Profile) MaxUtilizationFor(ttftLimitMs, tbotLimitMs float64) float64 {
	v := math.Inf(1)
	if ttftLimitMs > 0 {
		v = p.TTFT.MaxUtilization(ttftLimitMs)
	}
	if tbotLimitMs > 0 {
		v = min(v, p.TBOT.MaxUtilization(tbotLimitMs))
	}
	return v
}
