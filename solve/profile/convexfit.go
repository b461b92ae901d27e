package profile

import "math"

// convexFit returns the convex, non-decreasing, piecewise linear f that is
// nearest to the points (v[i], y[i]), y > 0, in relative squares:
//
//	minimize 1/2 sum_i w_i (f(v_i) - y_i)²,  w_i = 1/y_i²
//	over     f(v) = a + sum_j c_j (v - v_j)+,  c_j >= 0,  j = 0 .. n-2
//
// c_0 is the first slope and c_j the change of slope at v_j, so c >= 0 says
// non-decreasing and convex. f is unique: the sum is strictly convex in the
// values f(v_i). It is the optimum if and only if (Karush, Kuhn, Tucker)
//
//	sum_i w_i r_i = 0,  r_i = f(v_i) - y_i
//	g_j = sum_{i>j} w_i r_i (v_i - v_j) >= 0 for every j,  = 0 where c_j > 0
//
// The method is the active set method for non-negative least squares of Lawson
// and Hanson (Solving Least Squares Problems, 1974, ch. 23): let the knot with
// the steepest g_j < 0 bend, solve for the bending knots alone, step back to
// the first c_j that would turn negative, repeat. The objective falls with
// every knot let in, so no set of knots comes twice and the end is reached;
// some n rounds in practice, each O(n): the inner least squares problem is
// solved in the values of f at the bending knots, where it is tridiagonal and
// well conditioned, as it is not in the c_j.
//
// The result has points only where f bends, and at both ends.
func convexFit(v, y []float64) Curve {
	f := &fitting{
		v: v, y: y,
		c:    make([]float64, len(v)-1),
		bend: make([]bool, len(v)-1),
	}
	f.solve()
	best := f.objective()
	// A knot whose bend lowered nothing, g_j being < 0 by rounding only, is
	// not tried again until something did: so every round counts down.
	useless := make([]bool, len(v)-1)
	for j := f.steepest(useless); j >= 0; j = f.steepest(useless) {
		f.bend[j] = true
		f.descend()
		if obj := f.objective(); obj < best {
			best = obj
			clear(useless)
		} else {
			useless[j] = true
		}
	}
	at, ms := f.knots()
	return Curve{V: at, Ms: ms}
}

// fitting is the state of convexFit.
type fitting struct {
	v, y []float64
	a    float64   // f(v_0)
	c    []float64 // changes of slope, 0 where bend is false
	bend []bool    // the passive set of Lawson and Hanson
}

// values returns f at every v.
func (f *fitting) values() []float64 {
	out := make([]float64, len(f.v))
	out[0] = f.a
	slope := 0.0
	for i := 1; i < len(out); i++ {
		slope += f.c[i-1]
		out[i] = out[i-1] + slope*(f.v[i]-f.v[i-1])
	}
	return out
}

func (f *fitting) objective() float64 {
	sum := 0.0
	for i, x := range f.values() {
		r := x/f.y[i] - 1
		sum += r * r
	}
	return sum / 2
}

// steepest returns the straight knot with the most negative g_j in proportion
// to the norm of its column, or -1 if none is below rounding; it leaves out the
// useless ones.
func (f *fitting) steepest(useless []bool) int {
	const tol, ulps = 1e-13, 1e-15 // of |r| and, r being a difference, of y
	n := len(f.v)
	values := f.values()
	var sumWR, sumUlp, sumW, sumWD float64 // over i > j: w r, its rounding, w, w (v_i - v_j)
	var g, rounding, norm2 float64
	best, worst := -1, 0.0
	for j := n - 2; j >= 0; j-- {
		i := j + 1
		wr := (values[i]/f.y[i] - 1) / f.y[i]
		w := 1 / (f.y[i] * f.y[i])
		sumWR += wr
		sumUlp += tol*math.Abs(wr) + ulps/f.y[i]
		sumW += w
		d := f.v[i] - f.v[j]
		g += d * sumWR
		rounding += d * sumUlp
		norm2 += 2*d*sumWD + d*d*sumW // sum w (v_i - v_j)² moves on by d
		sumWD += d * sumW
		if f.bend[j] || useless[j] || g >= -rounding {
			continue
		}
		if s := g / math.Sqrt(norm2); s < worst {
			best, worst = j, s
		}
	}
	return best
}

// descend goes from c to the least squares solution on the bending knots,
// straightening those that would bend the wrong way.
func (f *fitting) descend() {
	for {
		oldA, old := f.a, append([]float64(nil), f.c...)
		f.solve()
		step, first := 1.0, -1
		for j, bend := range f.bend {
			if bend && f.c[j] <= 0 {
				if t := old[j] / (old[j] - f.c[j]); first < 0 || t < step {
					step, first = t, j
				}
			}
		}
		if first < 0 {
			return
		}
		if !(step >= 0) { // 0/0: a knot let in that does not bend
			step = 0
		}
		f.a = oldA + step*(f.a-oldA)
		for j := range f.c {
			f.c[j] = old[j] + step*(f.c[j]-old[j])
			if j == first || f.c[j] <= 0 {
				f.c[j], f.bend[j] = 0, false
			}
		}
	}
}

// solve sets a and c to the least squares solution with the bending knots,
// whatever the signs of c.
func (f *fitting) solve() {
	// Unknowns: f at the inner bending knots and at both ends; with no slope
	// at first, f(v_0) and the value at the next knot are one unknown.
	knots := []int{0}
	for j := 1; j < len(f.bend); j++ {
		if f.bend[j] {
			knots = append(knots, j)
		}
	}
	knots = append(knots, len(f.v)-1)
	diag := make([]float64, len(knots))
	off := make([]float64, len(knots)) // off[k]: between k-1 and k
	rhs := make([]float64, len(knots))
	flat := !f.bend[0]
	k := 1
	for i := range f.v {
		if i > knots[k] {
			k++
		}
		lo, hi := f.v[knots[k-1]], f.v[knots[k]]
		right := (f.v[i] - lo) / (hi - lo)
		if flat && k == 1 {
			right = 1
		}
		left := 1 - right
		w := 1 / (f.y[i] * f.y[i])
		diag[k-1] += w * left * left
		off[k] += w * left * right
		diag[k] += w * right * right
		rhs[k-1] += left / f.y[i]
		rhs[k] += right / f.y[i]
	}
	first := 0
	if flat {
		first = 1
	}
	x := tridiagonal(diag, off, rhs, first)
	if flat {
		x[0] = x[1]
	}
	f.a = x[0]
	clear(f.c)
	slope := 0.0
	for k := 1; k < len(knots); k++ {
		next := (x[k] - x[k-1]) / (f.v[knots[k]] - f.v[knots[k-1]])
		f.c[knots[k-1]] = next - slope
		slope = next
	}
}

// tridiagonal solves a symmetric positive definite system for the unknowns
// first, first+1, ... by elimination; off[k] couples k-1 and k. It overwrites
// its arguments and returns the solution in rhs.
func tridiagonal(diag, off, rhs []float64, first int) []float64 {
	n := len(diag)
	for k := first + 1; k < n; k++ {
		m := off[k] / diag[k-1]
		diag[k] -= m * off[k]
		rhs[k] -= m * rhs[k-1]
	}
	rhs[n-1] /= diag[n-1]
	for k := n - 2; k >= first; k-- {
		rhs[k] = (rhs[k] - off[k+1]*rhs[k+1]) / diag[k]
	}
	return rhs
}

// knots returns the points of f where it bends, and its ends.
func (f *fitting) knots() (at, ms []float64) {
	last := len(f.v) - 1
	for i, x := range f.values() {
		if i == 0 || i == last || f.bend[i] {
			at, ms = append(at, f.v[i]), append(ms, x)
		}
	}
	return at, ms
}
