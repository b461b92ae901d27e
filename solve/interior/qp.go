package interior

// qp is the separable convex program, scaled to numbers near 1,
//
//	minimize   sum_j c_j v_j + h_j v_j²/2 + phi_j(v_j)
//	subject to A v = b,  0 <= v <= u
//
// phi_j is a scaled processor sharing delay where ps_j > 0, else 0.
type qp struct {
	b       []float64
	c, h, u []float64 // u +Inf: none
	ps      []sharing // by variable; nil: none at all

	// Column j of A: rows index[start[j]:start[j+1]] with entries.
	start   []int
	index   []int32
	entries []float64
}

// sharing is phi(v) = scale v²/(room-v), room > u: the total delay of
// processor sharing.
type sharing struct{ scale, room float64 }

func newQP(rows int) *qp { return &qp{b: make([]float64, rows), start: []int{0}} }

// addVariable starts a variable; its entries follow by addEntry.
func (q *qp) addVariable(c, h, u float64) int {
	q.c = append(q.c, c)
	q.h = append(q.h, h)
	q.u = append(q.u, u)
	q.start = append(q.start, len(q.index))
	if q.ps != nil {
		q.ps = append(q.ps, sharing{})
	}
	return len(q.c) - 1
}

func (q *qp) addEntry(row int32, value float64) {
	q.index = append(q.index, row)
	q.entries = append(q.entries, value)
	q.start[len(q.start)-1] = len(q.index)
}

// share makes the last variable's phi that of processor sharing.
func (q *qp) share(s sharing) {
	if q.ps == nil {
		q.ps = make([]sharing, len(q.c))
	}
	q.ps[len(q.c)-1] = s
}

// slope returns the derivative of a variable's cost at v, and its curvature.
func (q *qp) slope(j int, v float64) (gradient, curvature float64) {
	gradient, curvature = q.c[j]+q.h[j]*v, q.h[j]
	if q.ps != nil && q.ps[j].scale > 0 {
		s := q.ps[j]
		// v²/(room-v) = room²/(room-v) - room - v
		r := s.room / (s.room - v)
		gradient += s.scale * (r*r - 1)
		curvature += s.scale * 2 * r * r * r / s.room
	}
	return gradient, curvature
}

// multiply adds A v to out.
func (q *qp) multiply(v, out []float64) {
	for j, vj := range v {
		for p := q.start[j]; p < q.start[j+1]; p++ {
			out[q.index[p]] += q.entries[p] * vj
		}
	}
}

// dot returns column j of A times row multipliers.
func (q *qp) dot(j int, lambda []float64) (sum float64) {
	for p := q.start[j]; p < q.start[j+1]; p++ {
		sum += q.entries[p] * lambda[q.index[p]]
	}
	return sum
}

// point is a primal-dual point: v strictly inside its bounds, multipliers z of
// v >= 0 and w of v <= u strictly positive (w = 0 where u is infinite), lambda
// of the rows.
type point struct{ v, z, w, lambda []float64 }

func newPoint(variables, rows int) *point {
	return &point{
		v: make([]float64, variables), z: make([]float64, variables),
		w: make([]float64, variables), lambda: make([]float64, rows),
	}
}

func (pt *point) copy(from *point) {
	copy(pt.v, from.v)
	copy(pt.z, from.z)
	copy(pt.w, from.w)
	copy(pt.lambda, from.lambda)
}
