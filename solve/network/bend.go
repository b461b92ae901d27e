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
	snap := gridSnap * g.step
	if above {
		lo, hi = g.cell(y + snap)
	} else {
		lo, hi = g.cell(y - snap)
	}
	if lo < q.lo+snap {
		lo = q.lo
	}
	if hi > q.hi-snap {
		hi = q.hi
	}
	return min(lo, y), max(hi, y), g.marginal(i, lo+(hi-lo)/2), true
}

// cell returns the breakpoints around y, not counting kinks.
func (g *grid) cell(y float64) (lo, hi float64) {
	if g.even {
		k := math.Floor((y - g.origin) / g.step)
		return g.origin + k*g.step, g.origin + (k+1)*g.step
	}
	d := math.Abs(y - g.origin)
	near, far := 0.0, g.step
	if !g.on {
		near = -g.step
	}
	for far <= d {
		near, far = far, far*gridGrowth
	}
	if y < g.origin {
		return g.origin - far, g.origin - near
	}
	return g.origin + near, g.origin + far
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

// regrid puts the breakpoints of every smooth arc around where its flow is, the
// nearest ones step away: for an arc outside the tree also on it; for one in
// the tree not, so that its slope is its marginal.
//
// It reports whether that is as fine as grids get.
func (b *builder) regrid(shrink float64) (finest bool) {
	finest = true
	for _, a := range b.smooth {
		g := b.state[a].cost.(*grid)
		g.even, g.on = false, !b.inTree(a)
		g.step *= shrink
		if least := finestGrid * g.limit; g.step > least {
			finest = false
		} else {
			g.step = least
		}
		g.origin = b.state[a].flow
		if g.on {
			b.rest(a)
		} else {
			b.join(a, true)
		}
	}
	b.reprice()
	return finest
}

// finestGrid is the least step in parts of the limit; a finer one would be
// rounding.
const finestGrid = 1e-9
