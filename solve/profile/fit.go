package profile

import (
	"fmt"
	"math"
)

// MaxFitError is the relative error of a fit above which Fit refuses a profile
// that does not accept it; WarnFitError is where its author should be warned.
const (
	MaxFitError  = 0.25
	WarnFitError = 0.10
)

// Fit checks a profile and makes TTFT and TBOT convex and non-decreasing, each
// by least relative squares (see convexFit). A table that is so already stays
// bit for bit as it is; a formula has nothing to fit.
//
// The error says every fault of the spec, or that the fit is off by more than
// MaxFitError and by how much where.
func Fit(s Spec) (Profile, error) {
	p := Profile{Name: s.Name, PromptTokens: s.PromptTokens, OutputTokens: s.OutputTokens}
	if err := s.Validate(); err != nil {
		return Profile{}, fmt.Errorf("profile %q: %w", s.Name, err)
	}
	if s.Queueing != "" {
		ps := s.Queueing == "ps"
		p.TTFT = Curve{V: []float64{0}, Ms: []float64{s.TTFTMs[0]}, PS: ps}
		p.TBOT = Curve{V: []float64{0}, Ms: []float64{s.TBOTMs[0]}, PS: ps}
		return p, nil
	}
	for _, t := range []struct {
		key string
		ms  []float64
		to  *Curve
	}{{"ttft_ms", s.TTFTMs, &p.TTFT}, {"tbot_ms", s.TBOTMs, &p.TBOT}} {
		c, err := fitCurve(s.Utilization, t.ms)
		if err != nil {
			return Profile{}, fmt.Errorf("profile %q: %s: %w", s.Name, t.key, err)
		}
		worst, at := relError(c, s.Utilization, t.ms)
		if worst > MaxFitError && !s.AcceptErrorAbove25 {
			return Profile{}, fmt.Errorf("profile %q: %s is %v at utilization %v, the nearest convex non-decreasing curve has %.4g there: off by %.1f %%, want at most %.0f %% unless the profile accepts it",
				s.Name, t.key, t.ms[at], s.Utilization[at], c.At(s.Utilization[at]), 100*worst, 100*MaxFitError)
		}
		p.WorstRelError = max(p.WorstRelError, worst)
		*t.to = c
	}
	return p, nil
}

// fitCurve returns the table itself if it is convex and non-decreasing, else
// its fit.
func fitCurve(v, ms []float64) (Curve, error) {
	if convexNonDecreasing(v, ms) {
		return Curve{V: v, Ms: ms}, nil
	}
	for i, x := range ms {
		if x == 0 {
			return Curve{}, fmt.Errorf("value %d is 0 in a table that must be fitted, want > 0: a relative error has no meaning there", i)
		}
	}
	return convexFit(v, ms), nil
}

// convexNonDecreasing allows each point to lie above the chord of its
// neighbours by rounding: a straight line in decimals is not straight in
// binary. NewSink takes the hull, so that nothing depends on it.
func convexNonDecreasing(v, ms []float64) bool {
	for i := 1; i < len(ms); i++ {
		if ms[i] < ms[i-1] {
			return false
		}
		if i+1 == len(ms) {
			break
		}
		chord := ms[i-1] + (ms[i+1]-ms[i-1])*((v[i]-v[i-1])/(v[i+1]-v[i-1]))
		if ms[i] > chord*(1+roundTol) {
			return false
		}
	}
	return true
}

// relError returns the largest |c - given| / given and where it is.
func relError(c Curve, v, ms []float64) (worst float64, at int) {
	for i, x := range ms {
		diff := math.Abs(c.At(v[i]) - x)
		if diff > worst*x { // x = 0: only in a table that stayed as it is, diff is 0
			worst, at = diff/x, i
		}
	}
	return worst, at
}
