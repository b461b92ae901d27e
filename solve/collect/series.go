package collect

import (
	"math"
	"slices"
	"strconv"
)

// A series is req/s on a grid of equal steps; NaN is unknown.

// mean returns the mean of what is known of y[from:to] and how much that is.
func mean(y []float64, from, to int) (m float64, known int) {
	sum := 0.0
	for _, v := range y[max(0, from):max(0, min(to, len(y)))] {
		if !math.IsNaN(v) {
			sum += v
			known++
		}
	}
	return sum / float64(known), known
}

// noise returns the standard deviation of a step's value around its trend: the
// median of |y[i] - y[i-1]| of the last day, over 0.6745 sqrt 2, which that
// median is of normal noise. Neither a step nor a ramp changes it much. Below
// what counting independent requests gives, sqrt(rate/step), it is taken to be
// that.
func noise(y []float64, perDay int, stepSeconds float64) float64 {
	var steps []float64
	for i := max(1, len(y)-perDay); i < len(y); i++ {
		if d := math.Abs(y[i] - y[i-1]); !math.IsNaN(d) {
			steps = append(steps, d)
		}
	}
	sd := 0.0
	if len(steps) > 0 {
		sd = quantile(steps, 0.5) / (0.6745 * math.Sqrt2)
	}
	rate, known := mean(y, len(y)-perDay, len(y))
	if known > 0 {
		sd = max(sd, math.Sqrt(rate/stepSeconds))
	}
	return sd
}

// quantile returns the q quantile, linear between its neighbours; it sorts.
func quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	at := q * float64(len(values)-1)
	low := int(at)
	high := min(low+1, len(values)-1)
	return values[low] + (at-float64(low))*(values[high]-values[low])
}

// withoutStarts returns y without the first value after each gap: the rate of
// a window in which an agent began, or was scraped again, is too low.
func withoutStarts(y []float64) []float64 {
	out := slices.Clone(y)
	for i := range y {
		if i == 0 || math.IsNaN(y[i-1]) {
			out[i] = math.NaN()
		}
	}
	return out
}

// lastKnown returns the last value that is known, 0 if none is.
func lastKnown(y []float64) float64 {
	for _, v := range slices.Backward(y) {
		if !math.IsNaN(v) {
			return v
		}
	}
	return 0
}

// round returns v with n significant digits: inputs that differ less are the
// same to everybody, and differ in no byte.
func round(v float64, n int) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', n, 64), 64)
	if err != nil {
		return v
	}
	return r
}

// figures writes a number for people.
func figures(v float64) string { return strconv.FormatFloat(round(v, 4), 'f', -1, 64) }
