package profile

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// Sink is the convex total delay F(Y) = Y D(Y/K) of an engine that works at
// rate Y, defined on [0, Limit]:
//
//	D(v)  = scale (T(v) - T(0)), in ms per unit of work
//	F'(Y) = D(v) + v D'(v), v = Y/K: what one more unit of work adds, to its
//	        own delay and to the delay of everybody else
//
// F is piecewise quadratic for a table and smooth for processor sharing. At
// the kinks of a table F' jumps; at Limit its right side is +Inf.
//
// Delay, Value, Marginal, Load and Conjugate take no lock and allocate
// nothing. A Sink never changes, so any number of goroutines may use it.
type Sink struct {
	Capacity float64 // K, work/s at utilization 1
	Limit    float64 // C, work/s that may be planned, > 0 and finite
	ps       float64 // D = ps Y/(K-Y) if > 0
	pieces   []piece // in order of load, at least one; if ps > 0, what comes after it
}

// ExtendTo returns a sink that reaches further: the delay goes on with the slope
// that it has at Limit, as a table's does beyond its last point.
func (s *Sink) ExtendTo(limit float64) *Sink {
	if limit <= s.Limit {
		return s
	}
	out := *s
	out.Limit = limit
	if s.ps == 0 {
		out.pieces = slices.Clone(s.pieces)
		q := &out.pieces[len(out.pieces)-1]
		q.hi = limit
		q.last = q.at(limit) + q.slope*limit
		return &out
	}
	room := s.Capacity - s.Limit
	q := piece{lo: s.Limit, hi: limit, delay: s.Delay(s.Limit), slope: s.ps * (s.Capacity / room) / room}
	q.first, _ = s.Marginal(s.Limit)
	q.last = q.at(limit) + q.slope*limit
	out.pieces = []piece{q}
	return &out
}

// piece is D(Y) = delay + slope (Y - lo) for loads in [lo, hi]. Anchored at lo
// rather than at 0: a steep piece far from 0 would lose digits otherwise, and
// F' = D(Y) + slope Y then never falls at a kink, not even by rounding.
type piece struct {
	lo, hi      float64
	delay       float64 // D(lo)
	slope       float64 // dD/dY >= 0
	first, last float64 // F' right of lo, left of hi
}

// NewSink returns the delay scale (T(v)-T(0)) over loads up to limit, where T
// is the sum of weight[i] x curves[i]; all curves are tables or all are
// processor sharing. Capacity and limit are in work/s; scale is 1/work.
func NewSink(capacity, limit, scale float64, curves []Curve, weight []float64) (*Sink, error) {
	if !(capacity > 0) || !(limit > 0) || math.IsInf(capacity, 0) || math.IsInf(limit, 0) {
		return nil, fmt.Errorf("profile: capacity is %v, limit is %v, want finite numbers > 0", capacity, limit)
	}
	s := &Sink{Capacity: capacity, Limit: limit}
	for i, c := range curves {
		if c.PS != curves[0].PS {
			return nil, fmt.Errorf("profile: processor sharing and a table in one delay, want one kind")
		}
		if c.PS {
			s.ps += scale * weight[i] * c.Ms[0]
		}
	}
	if len(curves) > 0 && curves[0].PS && limit >= capacity {
		return nil, fmt.Errorf("profile: processor sharing up to utilization %v, want < 1", limit/capacity)
	}
	if s.ps == 0 {
		s.pieces = tablePieces(capacity, limit, scale, curves, weight)
	}
	return s, nil
}

// Times returns the sink of n identical engines that share a load equally:
// n F(Y/n).
func (s *Sink) Times(n float64) *Sink {
	out := &Sink{Capacity: n * s.Capacity, Limit: n * s.Limit, ps: s.ps, pieces: make([]piece, len(s.pieces))}
	for i, q := range s.pieces {
		q.lo, q.hi, q.slope = n*q.lo, n*q.hi, q.slope/n
		out.pieces[i] = q
	}
	return out
}

// point is a delay D at a load, both of a knot.
type point struct{ load, delay float64 }

// roundTol is what counts as rounding in a table, relative: knots nearer than
// this are one, and so are lines that differ by less at a knot. A kink that is
// only rounding would cost a solver a breakpoint.
const roundTol = 1e-13

// tablePieces returns the pieces of the weighted sum of tables. The sum of
// convex tables is convex but for rounding; the lower hull of its knots is
// convex without exception.
func tablePieces(capacity, limit, scale float64, curves []Curve, weight []float64) []piece {
	end := limit / capacity
	knots := []float64{0, end}
	for i, c := range curves {
		if c.PS || weight[i] == 0 {
			continue // a processor sharing delay of 0 is a flat table
		}
		for _, v := range c.V {
			if v < end*(1-roundTol) {
				knots = append(knots, v)
			}
		}
	}
	sort.Float64s(knots)
	base := 0.0 // scale T(0): what D is the small difference to
	for j, c := range curves {
		base += scale * weight[j] * c.Ms[0]
	}
	hull := []point{{}}
	for i, v := range knots {
		if i == 0 || v < end && v-knots[i-1] <= roundTol*end {
			continue
		}
		p := point{load: min(v*capacity, limit)}
		if v == end {
			p.load = limit
		}
		for j, c := range curves {
			if !c.PS {
				p.delay += scale * weight[j] * (c.At(v) - c.Ms[0])
			}
		}
		for len(hull) > 1 && onOrAboveChord(hull[len(hull)-2], hull[len(hull)-1], p, base) {
			hull = hull[:len(hull)-1]
		}
		hull = append(hull, p)
	}
	pieces := make([]piece, 0, len(hull)-1)
	delay := 0.0
	for i := 1; i < len(hull); i++ {
		a, b := hull[i-1], hull[i]
		q := piece{lo: a.load, hi: b.load, delay: delay}
		q.slope = max(0, (b.delay-a.delay)/(b.load-a.load))
		if i > 1 {
			q.slope = max(q.slope, pieces[i-2].slope)
		}
		// Carried on from the left, so that D is continuous to the last bit.
		delay = q.at(q.hi)
		q.first = q.delay + q.slope*q.lo
		q.last = delay + q.slope*q.hi
		pieces = append(pieces, q)
	}
	return pieces
}

// onOrAboveChord says whether b lies on the chord from a to c, within the
// rounding of base + D, or above it.
func onOrAboveChord(a, b, c point, base float64) bool {
	chord := a.delay + (c.delay-a.delay)*((b.load-a.load)/(c.load-a.load))
	return b.delay >= chord-roundTol*(base+math.Abs(chord))
}

func (q *piece) at(y float64) float64 { return q.delay + q.slope*(y-q.lo) }

// find returns the index of the piece that holds y, the left one at a kink.
func (s *Sink) find(y float64) int {
	lo, hi := 0, len(s.pieces)-1
	for lo < hi {
		mid := (lo + hi) / 2
		if y <= s.pieces[mid].hi {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// shares says whether the delay at load y is the formula of processor sharing.
func (s *Sink) shares(y float64) bool {
	return s.ps > 0 && (len(s.pieces) == 0 || y <= s.pieces[0].lo)
}

// Delay returns D at load y, in ms per unit of work. Beyond Limit a table goes
// on with its last slope; processor sharing is +Inf from Capacity on.
func (s *Sink) Delay(y float64) float64 {
	if s.shares(y) {
		if y >= s.Capacity {
			return math.Inf(1)
		}
		return s.ps * (y / (s.Capacity - y))
	}
	return s.pieces[s.find(y)].at(y)
}

// Value returns F at load y, in ms x work/s.
func (s *Sink) Value(y float64) float64 { return y * s.Delay(y) }

// Marginal returns the left and right derivative of F at load y in [0, Limit],
// in ms per unit of work. At 0 the left derivative is that of the right, at
// Limit the right one is +Inf.
func (s *Sink) Marginal(y float64) (left, right float64) {
	if s.shares(y) {
		if y >= s.Capacity {
			return math.Inf(1), math.Inf(1)
		}
		// D + v D' = ps (v/(1-v) + v/(1-v)²), without the cancellation of
		// ps (1/(1-v)² - 1) at small v.
		u := s.Capacity / (s.Capacity - y)
		left = s.ps * (y / (s.Capacity - y)) * (1 + u)
		right = left
	} else {
		i := s.find(y)
		q := &s.pieces[i]
		left = q.at(y) + q.slope*y
		right = left
		if y >= q.hi && i+1 < len(s.pieces) {
			right = s.pieces[i+1].first
		}
	}
	if y >= s.Limit {
		right = math.Inf(1)
	}
	return left, right
}

// Load returns the loads at which p is a marginal price, the interval
// [lo, hi] of the inverse of F': lo = hi where F' grows strictly through p;
// hi > lo where F is linear with slope p (a flat profile, p = 0).
func (s *Sink) Load(p float64) (lo, hi float64) {
	n := len(s.pieces)
	if s.ps > 0 && (n == 0 || p <= s.pieces[0].first) {
		y := s.loadPS(p)
		return y, y
	}
	i, j := 0, n
	for i < j { // first piece with last >= p
		mid := (i + j) / 2
		if s.pieces[mid].last < p {
			i = mid + 1
		} else {
			j = mid
		}
	}
	if i == n {
		return s.Limit, s.Limit
	}
	q := &s.pieces[i]
	switch {
	case p < q.first:
		return q.lo, q.lo
	case q.slope > 0:
		y := min(q.hi, q.lo+(p-q.first)/(2*q.slope))
		return y, y
	default: // only a first piece, D being convex and D(0) = 0
		return q.lo, q.hi
	}
}

// loadPS solves ps (1/(1-v)² - 1) = p: with t = p/ps and s = sqrt(1+t),
// v = 1 - 1/s = t/(s (s+1)), which loses no digits at small t.
func (s *Sink) loadPS(p float64) float64 {
	_, end := s.ProcessorSharing()
	last, _ := s.Marginal(end)
	if p >= last {
		return end
	}
	if p <= 0 {
		return 0
	}
	t := p / s.ps
	r := math.Sqrt(1 + t)
	return min(end, s.Capacity*(t/(r*(r+1))))
}

// Conjugate returns F*(p) = max over y in [0, Limit] of p y - F(y), in
// ms x work/s. F*(p) is exact for any p, so a bound made from it holds
// whatever the quality of p. An error in the maximiser counts only squared.
func (s *Sink) Conjugate(p float64) float64 {
	y, _ := s.Load(p)
	return max(0, y*(p-s.Delay(y)))
}

// Kinks returns the loads inside (0, Limit) at which F' jumps, ascending.
func (s *Sink) Kinks() []float64 {
	var kinks []float64
	for i := 1; i < len(s.pieces); i++ {
		kinks = append(kinks, s.pieces[i].lo)
	}
	return kinks
}

// ProcessorSharing returns c > 0 and the load up to which the delay is the
// formula D(v) = c v/(1-v), and 0 where it is piecewise linear throughout.
func (s *Sink) ProcessorSharing() (c, end float64) {
	switch {
	case s.ps == 0:
		return 0, 0
	case len(s.pieces) > 0:
		return s.ps, s.pieces[0].lo
	}
	return s.ps, s.Limit
}
