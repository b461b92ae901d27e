// Package profile turns measured latency profiles of an engine into convex
// functions: it fits them, evaluates them, and inverts their marginals.
//
// Notation, used by every package under solve:
//
//	v     utilization, work rate / work capacity, dimensionless, >= 0
//	T(v)  a latency in ms at utilization v
//	D(v)  delay in ms per unit of work, (T(v)-T(0)) / work of the reference request
//	Y     work rate in token equivalents per second
//	F(Y)  Y D(Y/K), total delay in ms x work/s on an engine of capacity K
//	p     a price in ms per unit of work
package profile

import (
	"math"
	"sort"
)

// Curve is a convex, non-decreasing latency in ms as a function of utilization.
//
// A table is linear between its points (V[i], Ms[i]), V[0] = 0, and goes on
// with its last slope beyond the last point. With PS set it is the processor
// sharing formula Ms[0]/(1-v), +Inf for v >= 1, and V = [0].
type Curve struct {
	V  []float64
	Ms []float64
	PS bool
}

// At returns the latency in ms at utilization v >= 0.
func (c Curve) At(v float64) float64 {
	if c.PS {
		if v >= 1 {
			return math.Inf(1)
		}
		return c.Ms[0] / (1 - v)
	}
	i := c.segment(v)
	if i+1 >= len(c.V) {
		return c.Ms[0] // a single point is flat
	}
	return c.Ms[i] + (c.Ms[i+1]-c.Ms[i])*((v-c.V[i])/(c.V[i+1]-c.V[i]))
}

// segment returns i such that the piece from V[i] to V[i+1] covers v; the last
// piece also covers everything beyond it.
func (c Curve) segment(v float64) int {
	i := sort.SearchFloat64s(c.V, v) - 1 // V[i] < v <= V[i+1]
	return max(0, min(i, len(c.V)-2))
}

// MaxUtilization returns the largest utilization at which the latency is still
// at most limitMs: 0 if it never is or only without load, +Inf if it always is.
func (c Curve) MaxUtilization(limitMs float64) float64 {
	if limitMs < c.Ms[0] {
		return 0
	}
	if c.PS {
		if c.Ms[0] == 0 {
			return 1
		}
		return 1 - c.Ms[0]/limitMs
	}
	last := len(c.V) - 1
	// First point above the limit; with none the last piece goes on.
	i := sort.Search(len(c.V), func(i int) bool { return c.Ms[i] > limitMs })
	i = min(i, last)
	if i == 0 || c.Ms[i] == c.Ms[i-1] {
		return math.Inf(1) // flat for ever
	}
	return c.V[i-1] + (limitMs-c.Ms[i-1])/(c.Ms[i]-c.Ms[i-1])*(c.V[i]-c.V[i-1])
}
