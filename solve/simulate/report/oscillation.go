package report

import "math"

// Oscillation is the periodic part of how traffic is shared over engines, of
// the engine where it is largest.
type Oscillation struct {
	Engine string `json:"engine,omitempty"`
	// Swing is the peak-to-peak amplitude of the engine's share of all attempts.
	Swing   float64 `json:"swing"`
	PeriodS float64 `json:"period_s"` // 0: none
}

const (
	// trendBins is the width of the moving mean that is taken off: slower change
	// is demand, not oscillation.
	trendBins = 90
	// minCorrelation is the autocorrelation from which a share counts as
	// periodic; shorter series need more, three standard deviations of noise.
	minCorrelation = 0.2
	// maxPeriod in bins is the longest period told: beyond it, what is left of
	// the trend and of scripted events looks like one.
	maxPeriod = trendBins / 2
)

// oscillation estimates swing and period. Per engine, the share of attempts per
// bin less its moving mean over 15 minutes has an autocorrelation r(k). Noise of
// arrivals is white and sums to r(k) near 0; a lag P where r is highest after
// its first value below -minCorrelation/2 is a period if r(P) is at least
// minCorrelation. Of the variance the part r(P) is then periodic, and a sine of
// variance s² swings by 2 sqrt(2) s from peak to peak. Periods from 20 s to 450 s
// are found.
func oscillation(bins []Bin, engines []string) Oscillation {
	var worst Oscillation
	for e, name := range engines {
		x := shares(bins, e)
		if swing, period := swingOf(detrend(x)); swing > worst.Swing {
			worst = Oscillation{Engine: name, Swing: swing, PeriodS: float64(period) * BinS}
		}
	}
	return worst
}

// shares returns the engine's share of the attempts in each bin; the one before
// where there were none.
func shares(bins []Bin, e int) []float64 {
	x := make([]float64, len(bins))
	for i, b := range bins {
		all := 0
		for _, n := range b.Sent {
			all += n
		}
		switch {
		case all > 0:
			x[i] = float64(b.Sent[e]) / float64(all)
		case i > 0:
			x[i] = x[i-1]
		}
	}
	return x
}

// detrend takes off a centred moving mean.
func detrend(x []float64) []float64 {
	sum := make([]float64, len(x)+1)
	for i, v := range x {
		sum[i+1] = sum[i] + v
	}
	out := make([]float64, len(x))
	for i, v := range x {
		low, high := max(0, i-trendBins/2), min(len(x), i+trendBins/2+1)
		out[i] = v - (sum[high]-sum[low])/float64(high-low)
	}
	return out
}

// swingOf returns the swing and the period in bins, 0 if there is none.
func swingOf(x []float64) (swing float64, period int) {
	n := len(x)
	variance := correlate(x, 0)
	if n < 12 || variance <= 1e-12 {
		return 0, 0
	}
	need := max(minCorrelation, 3/math.Sqrt(float64(n)))
	best, fallen := 0.0, false
	// A period must be there three times.
	for k := 1; k <= min(maxPeriod, n/3); k++ {
		r := correlate(x, k) / variance
		if r < -need/2 {
			fallen = true
		}
		if fallen && r > best {
			best, period = r, k
		}
	}
	if best < need {
		return 0, 0
	}
	return 2 * math.Sqrt(2*best*variance), period
}

// correlate returns the autocovariance at a lag.
func correlate(x []float64, lag int) float64 {
	sum := 0.0
	for i := lag; i < len(x); i++ {
		sum += x[i] * x[i-lag]
	}
	return sum / float64(len(x))
}
