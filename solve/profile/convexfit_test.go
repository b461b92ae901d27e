package profile

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// noisy returns a table of n points: growth like queueing with noise, of any
// scale.
func noisy(rng *rand.Rand, n int, noise float64) (v, y []float64) {
	scale := math.Pow(10, 18*rng.Float64()-9)
	at := 0.0
	for range n {
		v = append(v, at)
		y = append(y, scale*(1+3*at*at*at)*math.Exp(noise*rng.NormFloat64()))
		at += (0.05 + rng.Float64()) / float64(n)
	}
	return v, y
}

// TestConvexFitOptimality checks the Karush-Kuhn-Tucker conditions in
// convexFit's comment, from the curve that it returns alone.
func TestConvexFitOptimality(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for trial := range 600 {
		n := 2 + trial%40
		if trial%100 == 99 {
			n = 400
		}
		v, y := noisy(rng, n, math.Pow(10, -6+6*rng.Float64()))
		c := convexFit(v, y)
		if !convexNonDecreasing(c.V, c.Ms) {
			t.Fatalf("trial %d: not convex and non-decreasing: %v", trial, c)
		}
		sum, sumAbs := 0.0, 0.0
		for i := range v {
			wr := (c.At(v[i]) - y[i]) / (y[i] * y[i])
			sum, sumAbs = sum+wr, sumAbs+math.Abs(wr)+1e-5/y[i]
		}
		if math.Abs(sum) > 1e-9*sumAbs {
			t.Errorf("trial %d: sum w r is %g, want 0 within %g", trial, sum, 1e-9*sumAbs)
		}
		for j := range n - 1 {
			g, gAbs := 0.0, 0.0
			for i := j + 1; i < n; i++ {
				wr := (c.At(v[i]) - y[i]) / (y[i] * y[i]) * (v[i] - v[j])
				g, gAbs = g+wr, gAbs+math.Abs(wr)+1e-5*(v[i]-v[j])/y[i]
			}
			bends := slices.Contains(c.V[1:], v[j]) || j == 0 && c.Ms[1] > c.Ms[0]
			if g < -1e-8*gAbs || bends && g > 1e-8*gAbs {
				t.Errorf("trial %d, n %d: g[%d] is %g of %g, bends %v", trial, n, j, g, gAbs, bends)
			}
		}
	}
}

// TestConvexFitAgainstAllSubsets compares with the best of all 2^(n-1) sets of
// bending knots, each solved by Gaussian elimination in the hinge basis.
func TestConvexFitAgainstAllSubsets(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for trial := range 300 {
		n := 2 + trial%7
		v, y := noisy(rng, n, 0.5*rng.Float64())
		want := math.Inf(1)
		for set := range 1 << (n - 1) {
			want = min(want, subsetObjective(v, y, set))
		}
		c := convexFit(v, y)
		got := 0.0
		for i := range v {
			r := c.At(v[i])/y[i] - 1
			got += r * r / 2
		}
		if math.Abs(got-want) > 1e-12+1e-9*want {
			t.Errorf("trial %d: objective %.15g, want %.15g; v %v y %v", trial, got, want, v, y)
		}
	}
}

// subsetObjective returns the least objective with c_j free for j in set and 0
// elsewhere, +Inf if a c_j comes out negative.
func subsetObjective(v, y []float64, set int) float64 {
	var cols [][]float64
	one := make([]float64, len(v))
	for i := range one {
		one[i] = 1 / y[i]
	}
	cols = append(cols, one)
	for j := range len(v) - 1 {
		if set>>j&1 == 0 {
			continue
		}
		col := make([]float64, len(v))
		for i := j + 1; i < len(v); i++ {
			col[i] = (v[i] - v[j]) / y[i]
		}
		cols = append(cols, col)
	}
	m := len(cols)
	a := make([][]float64, m)
	for r := range a {
		a[r] = make([]float64, m+1)
		for k := range m {
			for i := range v {
				a[r][k] += cols[r][i] * cols[k][i]
			}
		}
		for i := range v {
			a[r][m] += cols[r][i]
		}
	}
	for k := range m { // symmetric positive definite: no pivoting
		for r := range m {
			if r == k {
				continue
			}
			f := a[r][k] / a[k][k]
			for j := k; j <= m; j++ {
				a[r][j] -= f * a[k][j]
			}
		}
	}
	sum := 0.0
	for i := range v {
		f := 0.0
		for k := range m {
			x := a[k][m] / a[k][k]
			if k > 0 && x < 0 {
				return math.Inf(1)
			}
			f += x * cols[k][i]
		}
		sum += (f - 1) * (f - 1) / 2
	}
	return sum
}

func TestConvexFitByHand(t *testing.T) {
	for _, tc := range []struct {
		name         string
		v, y, at, ms []float64
	}{
		// A constant k is best at k = sum(1/y) / sum(1/y²).
		{"falling", []float64{0, 1}, []float64{2, 1}, []float64{0, 1}, []float64{1.2, 1.2}},
		// f = (k, k, 4): pooling 2 and 1 as above, the last point is met.
		{"dip", []float64{0, 1, 2}, []float64{2, 1, 4}, []float64{0, 1, 2}, []float64{1.2, 1.2, 4}},
		// Concave: one line a + b v with w = (1, 1/4, 1/4), so
		// 1.5 a + 0.75 b = 2 and 0.75 a + 1.25 b = 1.5.
		{"step", []float64{0, 1, 2}, []float64{1, 2, 2}, []float64{0, 2}, []float64{22.0 / 21, 46.0 / 21}},
	} {
		c := convexFit(tc.v, tc.y)
		if !slices.Equal(c.V, tc.at) {
			t.Errorf("%s: bends at %v, want %v", tc.name, c.V, tc.at)
			continue
		}
		for i := range c.Ms {
			if math.Abs(c.Ms[i]-tc.ms[i]) > 1e-12 {
				t.Errorf("%s: %v, want %v", tc.name, c.Ms, tc.ms)
			}
		}
	}
}
