package network

import (
	"math/rand/v2"
	"testing"
)

// randomSmooth returns a smooth cost with kinks, flat parts, or the formula.
func randomSmooth(rng *rand.Rand) *smooth {
	limit := 0.1 + rng.Float64()
	if rng.IntN(4) == 0 {
		return &smooth{limit: limit, ps: 1, size: limit / 0.9, pieces: []slopePiece{{hi: limit}}}
	}
	c := &smooth{limit: limit}
	at, lo := 0.0, 0.0
	for n := 1 + rng.IntN(4); n > 0; n-- {
		q := slopePiece{lo: lo, hi: lo + (limit-lo)*rng.Float64(), at: at, rise: float64(rng.IntN(3))}
		if n == 1 {
			q.hi = limit
		}
		at = q.at + q.rise*(q.hi-q.lo) + float64(rng.IntN(2))
		lo = q.hi
		c.pieces = append(c.pieces, q)
	}
	return c
}

func TestGridSegments(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20000 {
		c := randomSmooth(rng)
		g := &grid{smooth: c, even: rng.IntN(2) == 0, on: rng.IntN(2) == 0,
			origin: c.limit * []float64{0, rng.Float64(), fullness, 1}[rng.IntN(4)],
			step:   c.limit * []float64{1, 0.25, 1.0 / 16, 1e-3}[rng.IntN(4)]}
		y, last, n := 0.0, -1.0, 0
		for y < c.limit {
			lo, hi, slope, ok := g.segment(y, true)
			if !ok || lo != y || hi <= y || slope < last-1e-9 || n > 5000 {
				t.Fatalf("%+v %+v: from %g up: [%g, %g] slope %g after %g, %v", g, c, y, lo, hi, slope, last, ok)
			}
			if l, h, s, ok := g.segment(hi, false); !ok || h != hi || l > y+1e-9 || l < y-1e-9 || s != slope && l == lo {
				t.Fatalf("%+v %+v: segment [%g, %g] %g looks like [%g, %g] %g from above", g, c, lo, hi, slope, l, h, s)
			}
			left, _ := c.sides(hi)
			_, right := c.sides(lo)
			if slope < right-1e-9 || slope > left+1e-9 {
				t.Fatalf("slope %g outside marginals [%g, %g]", slope, right, left)
			}
			y, last = hi, slope
			n++
		}
		if _, _, _, ok := g.segment(c.limit, true); ok || y != c.limit {
			t.Fatalf("%+v: goes on beyond the limit %g at %g", g, c.limit, y)
		}
	}
}
