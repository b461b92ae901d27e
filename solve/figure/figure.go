// Package figure prints numbers for people, the same way everywhere.
package figure

import (
	"math"
	"strconv"
	"strings"
)

// Ms prints milliseconds: about four figures.
func Ms(v float64) string { return Number(v, 4) }

// Rate prints requests per second: about six figures.
func Rate(v float64) string { return Number(v, 6) }

// SignedMs prints milliseconds with a sign.
func SignedMs(v float64) string {
	if text := Ms(v); v > 0 && text != "0" {
		return "+" + text
	}
	return Ms(v)
}

// Percent prints a fraction as a percentage.
func Percent(v float64) string {
	if text := strconv.FormatFloat(100*v, 'f', 1, 64); text != "-0.0" {
		return text + " %"
	}
	return "0.0 %"
}

// noise is what of a latency, a rate or a cost is rounding to people.
const noise = 5e-7

// Number prints v with n significant figures, never an exponent, without
// trailing zeros; the digits of a whole number are all kept, noise is 0.
func Number(v float64, n int) string {
	if math.Abs(v) < noise {
		return "0"
	}
	digits := n - 1 - int(math.Floor(math.Log10(math.Abs(v))))
	text := strconv.FormatFloat(v, 'f', max(0, min(digits, 9)), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	if text == "-0" {
		return "0"
	}
	return text
}
