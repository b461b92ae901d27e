package network

import "math"

// bend is a convex piecewise linear cost of one arc. segment returns the piece
// [lo, hi] that holds y and its slope; at a breakpoint the piece above or the
// one below. ok is false beyond the ends of the domain.
type bend interface {
	segment(y float64, above bool) (lo, hi, slope float64, ok bool)
	end() float64 // the domain is [0, end]
}

// grid is a smooth cost cut into pieces at its kinks, at 0, at its limit, and
//
//	at origin + k step for all integers k      even
//	at origin +- step 4^k for k = 0, 1, 2, ... around a load that is nearly
//	and at origin itself if on                 right: fine only where it matters
//
// The slope of a piece is the marginal in its middle: the chord where the cost
// is quadratic, and always within the marginals at the ends of the piece, so
// that slopes never fall.
type grid struct {
	*smooth
	even, on     bool
	origin, step float64
}

// Breakpoints closer than gridSnap steps are one.
const gridSnap = 1e-6

// gridGrowth is the ratio between distances of breakpoints from the origin.
const gridGrowth = 4

func (g *grid) end() float64 { return g.limit }

func (g *grid) segment(y float64, above bool) (lo, hi, slope float64, ok bool) {
	if above && y >= g.limit || !above && y <= 0 {
		return 0, 0, 0, false
	}
	i := g.piece(y, above)
	q := &g.pieces[i]
	if q.rise == 0 && g.ps == 0 {
		return q.lo, q.hi, q.at, true
	}
	if g.even {
		lo, hi = g.evenCell(y, above)
	} else {
		lo, hi = g.growingCell(y, above)
	}
	snap := gridSnap * g.step
	if lo < q.lo+snap {
		lo = q.lo
	}
	if hi > q.hi-snap {
		hi = q.hi
	}
	return min(lo, y), max(hi, y), g.marginal(i, lo+(hi-lo)/2), true
}

func (g *grid) evenCell(y float64, above bool) (lo, hi float64) {
	k := (y - g.origin) / g.step
	if above {
		k = math.Floor(k + gridSnap)
		return g.origin + k*g.step, g.origin + (k+1)*g.step
	}
	k = math.Ceil(k - gridSnap)
	return g.origin + (k-1)*g.step, g.origin + k*g.step
}

// growingCell mirrors what is below the origin to above it.
func (g *grid) growingCell(y float64, above bool) (lo, hi float64) {
	d := y - g.origin
	snap := gridSnap * g.step
	if d < -snap || d <= snap && !above {
		near, far := g.cellFrom(-d, !above)
		return g.origin - far, g.origin - near
	}
	near, far := g.cellFrom(d, above)
	return g.origin + near, g.origin + far
}

// cellFrom returns the cell of a distance d >= 0 from the origin, the farther
// one at a breakpoint if away.
func (g *grid) cellFrom(d float64, away bool) (near, far float64) {
	first := g.step
	if !away && math.Abs(d-first) <= gridSnap*g.step || d < first-gridSnap*g.step {
		if g.on {
			return 0, first
		}
		return -first, first
	}
	far = first
	for {
		near, far = far, far*gridGrowth
		slack := gridSnap * near
		if d < far-slack || !away && d <= far+slack {
			return near, far
		}
	}
}

// stay is the churn term of a pair: below its previous flow each unit that is
// kept saves the penalty.
type stay struct {
	kept, limit  float64 // breakpoint and upper bound
	below, above float64 // slopes
}

func (s *stay) end() float64 { return s.limit }

func (s *stay) segment(y float64, above bool) (lo, hi, slope float64, ok bool) {
	switch {
	case y < 0 || y > s.limit || !above && y == 0 || above && y == s.limit:
		return 0, 0, 0, false
	case y < s.kept || !above && y == s.kept:
		return 0, s.kept, s.below, true
	}
	return s.kept, s.limit, s.above, true
}
