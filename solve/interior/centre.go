package interior

import "math"

const bisections = 60

// centred returns the v at which variable j meets its condition on the central
// path at mu, r being its reduced cost at v = 0:
//
//	r + slope(v) - slope(0) = mu/v - mu/(u-v)
//
// A variable with neither curvature nor bound has none if r <= 0, and gets
// unbounded.
func (q *qp) centred(j int, r, mu float64) float64 {
	const unbounded = 1e6
	if q.h[j] == 0 && math.IsInf(q.u[j], 1) {
		if r <= mu/unbounded {
			return unbounded
		}
		return mu / r
	}
	lo, hi := 0.0, min(q.u[j], unbounded)
	start, _ := q.slope(j, 0)
	for range bisections {
		v := (lo + hi) / 2
		gradient, _ := q.slope(j, v)
		if r+gradient-start < mu/v-mu/(q.u[j]-v) { // mu/Inf is 0
			lo = v
		} else {
			hi = v
		}
	}
	return (lo + hi) / 2
}

// centre finds the multiplier of a row of ones over some variables for which
// they sum to total, each centred at mu, and sets them.
func (q *qp) centre(pt *point, variables []int, reduced []float64, mu, total float64) (multiplier float64) {
	fill := func(l float64) (sum float64) {
		for _, v := range variables {
			pt.v[v] = q.centred(v, reduced[v]-l, mu)
			sum += pt.v[v]
		}
		return sum
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range variables {
		lo, hi = min(lo, reduced[v]), max(hi, reduced[v])
	}
	// At lo even a variable with reduced cost 0 there carries less than its
	// part of the total.
	lo -= 2 * mu * float64(len(variables)) / total
	for range bisections {
		l := (lo + hi) / 2
		if fill(l) < total {
			lo = l
		} else {
			hi = l
		}
	}
	fill(lo)
	return lo
}

// pair gives a variable the multipliers of the central path at mu.
func (q *qp) pair(pt *point, j int, mu float64) {
	pt.z[j] = mu / pt.v[j]
	if room := q.u[j] - pt.v[j]; !math.IsInf(room, 1) {
		pt.w[j] = mu / room
	}
}

// start returns the point of the central path at mu for row prices y: each
// source's variables sum to its demand, each row's pieces are where their own
// condition holds. Only the balance of the rows is open.
func (b *program) start(y []float64, mu float64) *point {
	q, first := b.q, len(b.g.Sources)
	pt := newPoint(len(q.c), len(q.b))
	for j := range y {
		pt.lambda[first+j] = -y[j] * b.unit[j] / b.worth
	}
	reduced := make([]float64, len(q.c))
	for j := range q.c {
		gradient, _ := q.slope(j, 0)
		reduced[j] = gradient - q.dot(j, pt.lambda)
	}
	for s, variables := range b.bySource() {
		if len(variables) > 0 && q.b[s] > 0 {
			pt.lambda[s] = q.centre(pt, variables, reduced, mu, q.b[s])
		}
	}
	for j := range q.c {
		if pt.v[j] == 0 {
			pt.v[j] = q.centred(j, reduced[j], mu)
		}
		q.pair(pt, j, mu)
	}
	return pt
}

// bySource returns the variables in each source's row.
func (b *program) bySource() [][]int {
	by := make([][]int, len(b.g.Sources))
	for _, part := range b.parts {
		by[part.source] = append(by[part.source], part.variable)
	}
	for s, v := range b.shed {
		if v >= 0 {
			by[s] = append(by[s], v)
		}
	}
	return by
}
