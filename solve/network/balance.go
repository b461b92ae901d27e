package network

import "math"

// balance finds a zero of an excess that never falls, by Newton steps inside a
// bracket. excess returns its least and most value at x, which differ where it
// jumps, and its growth. Where it is piecewise linear, as for tables, a few
// steps end it exactly. Without a zero it returns x.
func balance(x float64, excess func(x float64) (least, most, growth float64)) float64 {
	start, lo, hi := x, math.Inf(-1), math.Inf(1)
	stride := 1e-3
	for range 200 {
		least, most, growth := excess(x)
		if least <= 0 && most >= 0 {
			return x
		}
		f := least
		if most < 0 {
			f, lo = most, x
		} else {
			hi = x
		}
		next := x - f/growth // infinite without growth
		if !(next > lo && next < hi) || math.IsInf(next, 0) {
			switch {
			case math.IsInf(hi, 1):
				next, stride = x+stride, 8*stride
			case math.IsInf(lo, -1):
				next, stride = x-stride, 8*stride
			default:
				next = lo + (hi-lo)/2
			}
		}
		if math.Abs(next) > beyond {
			return start
		}
		if next == x || next == lo || next == hi {
			return x
		}
		x = next
	}
	return x
}

// beyond is a price, in mean costs, above any that a load could have.
const beyond = 1e15
