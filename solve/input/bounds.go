package input

import (
	"math"
	"strconv"
)

// bounds is a range of finite numbers; hi 0 stands for no upper end.
type bounds struct {
	lo, hi         float64
	openLo, openHi bool
	want           string
}

var (
	notNegative = bounds{want: "a finite number >= 0"}
	positive    = bounds{openLo: true, want: "a finite number > 0"}
	fraction    = bounds{hi: 1, want: "a number in [0, 1]"}
	fractionPos = bounds{hi: 1, openLo: true, want: "a number in (0, 1]"}
	belowOne    = bounds{hi: 1, openHi: true, want: "a number in [0, 1)"}
)

// Numbers outside are slips of the pen, and their products and quotients would
// leave the range of a float64 somewhere inside the solver.
const (
	smallest = 1e-15 // apart from 0
	largest  = 1e15
)

// check returns what was wanted if v is outside, "" if it is inside.
func (b bounds) check(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0), v < b.lo, b.openLo && v == b.lo,
		b.hi != 0 && v > b.hi, b.openHi && v == b.hi:
		return b.want
	case v > largest:
		return "at most 1e15"
	case v != 0 && v < smallest && b.openLo:
		return "at least 1e-15"
	case v != 0 && v < smallest:
		return "0 or at least 1e-15"
	}
	return ""
}

// parseNumber reads a decimal number of a CSV cell: no hexadecimal, no
// underscores, no names. NaN and infinities are not numbers here.
func parseNumber(s string) (float64, bool) {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c == '+', c == '-', c == '.', c == 'e', c == 'E':
		default:
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
