package network

import (
	"math"
	"sort"

	"github.com/irb-project/irb/solve/profile"
)

// smooth is a convex cost on [0, limit] in scaled units, piecewise: in each
// piece its marginal is linear or, for processor sharing, a smooth curve. It
// is the load of an engine, or a shed share.
type smooth struct {
	limit  float64
	pieces []slopePiece
	ps     float64 // marginal is ps ((1-y/size)^-2 - 1) if > 0; pieces holds its ends alone
	size   float64
}

// slopePiece is a marginal at + rise (y-lo) for lo <= y <= hi.
type slopePiece struct {
	lo, hi   float64
	at, rise float64
}

// newSmooth scales a sink: loads are divided by flowUnit and prices by priceUnit.
func newSmooth(s *profile.Sink, flowUnit, priceUnit float64) *smooth {
	size := 1 / flowUnit
	c := &smooth{limit: s.Limit * size}
	if ps, _ := s.ProcessorSharing(); ps > 0 {
		c.ps, c.size = ps/priceUnit, s.Capacity*size
		c.pieces = []slopePiece{{hi: c.limit}}
		return c
	}
	ends := append([]float64{0}, s.Kinks()...)
	ends = append(ends, s.Limit)
	for i := 1; i < len(ends); i++ {
		_, first := s.Marginal(ends[i-1])
		last, _ := s.Marginal(ends[i])
		q := slopePiece{lo: ends[i-1] * size, hi: ends[i] * size, at: first / priceUnit}
		q.rise = max(0, (last/priceUnit-q.at)/(q.hi-q.lo))
		c.pieces = append(c.pieces, q)
	}
	return c
}

// piece returns the index of the piece that holds y; at a kink the one above
// or the one below it.
func (c *smooth) piece(y float64, above bool) int {
	if above {
		return min(len(c.pieces)-1, sort.Search(len(c.pieces), func(i int) bool { return c.pieces[i].hi > y }))
	}
	return min(len(c.pieces)-1, sort.Search(len(c.pieces), func(i int) bool { return c.pieces[i].hi >= y }))
}

// marginal returns the derivative at y inside piece i.
func (c *smooth) marginal(i int, y float64) float64 {
	if c.ps > 0 {
		u := 1 / (1 - y/c.size)
		return c.ps * (u*u - 1)
	}
	q := &c.pieces[i]
	return q.at + q.rise*(y-q.lo)
}

// sides returns the left and the right derivative at y: -Inf below 0, +Inf
// above the limit.
func (c *smooth) sides(y float64) (left, right float64) {
	left, right = math.Inf(-1), math.Inf(1)
	if y > 0 {
		left = c.marginal(c.piece(y, false), y)
	}
	if y < c.limit {
		right = c.marginal(c.piece(y, true), y)
	}
	return left, right
}

// load inverts the marginal: the loads [lo, hi] at which p is a marginal
// price, and how fast the load grows with p (0 where it does not).
func (c *smooth) load(p float64) (lo, hi, growth float64) {
	if c.ps > 0 {
		if p <= 0 {
			return 0, 0, 0
		}
		root := math.Sqrt(1 + p/c.ps)
		y := c.size * (1 - 1/root)
		if y >= c.limit {
			return c.limit, c.limit, 0
		}
		return y, y, c.size / (2 * c.ps * root * root * root)
	}
	for i := range c.pieces {
		q := &c.pieces[i]
		switch {
		case p < q.at:
			return q.lo, q.lo, 0
		case q.rise == 0:
			if p == q.at {
				return q.lo, q.hi, 0
			}
		default:
			if y := q.lo + (p-q.at)/q.rise; y < q.hi {
				return y, y, 1 / q.rise
			}
		}
	}
	return c.limit, c.limit, 0
}
