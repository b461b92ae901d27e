package profile

import (
	"fmt"
	"math"
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
type Sink struct {
	Capacity float64 // K, work/s at utilization 1
	Limit    float64 // C, work/s that may be planned, > 0 and finite
	ps       float64 // D(v) = ps v/(1-v) if > 0
	pieces   []piece // in order of load; none if ps > 0
}

// piece is D(v) = alpha + beta v for loads in [lo, hi]; hence
// F = alpha Y + beta Y²/K and F' = alpha + 2 beta Y/K.
type piece struct {
	lo, hi      float64
	alpha, beta float64
}

// NewSink returns the delay scale (T(v)-T(0)) over loads up to limit, where T
// is the sum of weight[i] x curves[i]; all curves are tables or all are
// processor sharing. Capacity and limit are in work/s; scale is 1/work.
func NewSink(capacity, limit, scale float64, curves []Curve, weight []float64) (*Sink, error) {
	if !(capacity > 0) || !(limit > 0) || math.IsInf(capacity, 0) || math.IsInf(limit, 0) {
		return nil, fmt.Errorf("profile: capacity is %v, limit is %v, want finite numbers > 0", capacity, limit)
	}
	s := &Sink{Capacity: capacity, Limit: limit}
	if curves[0].PS {
		if limit >= capacity {
			return nil, fmt.Errorf("profile: processor sharing up to utilization %v, want < 1", limit/capacity)
		}
		for i, c := range curves {
			s.ps += scale * weight[i] * c.Ms[0]
		}
		return s, nil
	}
	s.pieces = tablePieces(capacity, limit, scale, curves, weight)
	return s, nil
}

func tablePieces(capacity, limit, scale float64, curves []Curve, weight []float64) []piece {
	knots := []float64{0, limit / capacity}
	for _, c := range curves {
		knots = append(knots, c.V...)
	}
	sort.Float64s(knots)
	total := func(v float64) (sum float64) {
		for i, c := range curves {
			sum += scale * weight[i] * (c.At(v) - c.Ms[0])
		}
		return sum
	}
	var pieces []piece
	for i := 1; i < len(knots) && knots[i-1]*capacity < limit; i++ {
		v0, v1 := knots[i-1], knots[i]
		if v1 <= v0 {
			continue
		}
		d0, d1 := total(v0), total(v1)
		beta := (d1 - d0) / (v1 - v0)
		alpha := d0 - beta*v0
		if n := len(pieces); n > 0 {
			last := &pieces[n-1]
			// The same line within rounding is one piece; a kink that is only
			// rounding would cost the solver a breakpoint.
			if math.Abs(beta-last.beta) <= 1e-12*math.Abs(beta) {
				last.hi = v1 * capacity
				continue
			}
			beta = max(beta, last.beta)
		}
		pieces = append(pieces, piece{lo: v0 * capacity, hi: v1 * capacity, alpha: alpha, beta: beta})
	}
	pieces[len(pieces)-1].hi = limit
	return pieces
}

// at returns the index of the piece that holds y, the left one at a kink.
func (s *Sink) at(y float64) int {
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

// Delay returns D at load y, in ms per unit of work.
func (s *Sink) Delay(y float64) float64 {
	v := y / s.Capacity
	if s.ps > 0 {
		return s.ps * v / (1 - v)
	}
	if len(s.pieces) == 0 {
		return 0
	}
	q := &s.pieces[s.at(y)]
	return q.alpha + q.beta*v
}

// Value returns F at load y, in ms x work/s.
func (s *Sink) Value(y float64) float64 { return y * s.Delay(y) }

// Marginal returns the left and right derivative of F at load y in [0, Limit],
// in ms per unit of work. At 0 the left derivative is that of the right, at
// Limit the right one is +Inf.
func (s *Sink) Marginal(y float64) (left, right float64) {
	v := y / s.Capacity
	if s.ps > 0 {
		u := 1 / (1 - v)
		left = s.ps * (u*u - 1)
		right = left
	} else if len(s.pieces) > 0 {
		i := s.at(y)
		q := &s.pieces[i]
		left = q.alpha + 2*q.beta*v
		right = left
		if y >= q.hi && i+1 < len(s.pieces) {
			q = &s.pieces[i+1]
			right = max(left, q.alpha+2*q.beta*v)
		}
	}
	if y >= s.Limit {
		right = math.Inf(1)
	}
	return left, right
}

// Load returns the loads at which p is a marginal price, the interval
// [lo, hi] of the inverse of F': lo = hi where F' grows strictly through p;
// hi > lo where F is linear with slope p (a flat profile).
func (s *Sink) Load(p float64) (lo, hi float64) {
	if s.ps > 0 {
		if p <= 0 {
			return 0, 0
		}
		y := min(s.Limit, s.Capacity*(1-1/math.Sqrt(1+p/s.ps)))
		return y, y
	}
	for i := range s.pieces {
		q := &s.pieces[i]
		first := q.alpha + 2*q.beta*q.lo/s.Capacity
		last := q.alpha + 2*q.beta*q.hi/s.Capacity
		switch {
		case p < first:
			return q.lo, q.lo
		case p > last:
			continue
		case q.beta > 0:
			y := min(q.hi, max(q.lo, s.Capacity*(p-q.alpha)/(2*q.beta)))
			return y, y
		default: // linear: every load of the piece, and on if the next one starts at p too
			lo, hi = q.lo, q.hi
			return lo, hi
		}
	}
	return s.Limit, s.Limit
}

// Conjugate returns F*(p) = max over y in [0, Limit] of p y - F(y), in
// ms x work/s. F*(p) is exact for any p, so a bound made from it holds
// whatever the quality of p.
func (s *Sink) Conjugate(p float64) float64 {
	y, _ := s.Load(p)
	return max(0, p*y-s.Value(y))
}

// Kinks returns the loads inside (0, Limit) at which F' jumps, ascending.
func (s *Sink) Kinks() []float64 {
	var kinks []float64
	for i := 1; i < len(s.pieces); i++ {
		kinks = append(kinks, s.pieces[i].lo)
	}
	return kinks
}
