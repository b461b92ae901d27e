package layout

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Space is the size of the hash space: what the quotas of a source sum to.
const Space = 1 << 32

// Quotas shares the hash space out in proportion to weights, in whole keys
// that sum to exactly Space, by largest remainder: each weight gets its quota
// rounded down, and the keys left over go one each to the largest fractions, of
// equal ones to the first (engines are in order of name).
//
// A weight above 0 gets at least one key, so that an engine of the plan is
// always one of the layout; the largest quota, the first of equal ones, pays
// for it. Weight 0 gets none.
func Quotas(weights []float64) ([]int64, error) {
	largest := 0.0
	for i, w := range weights {
		if !(w >= 0) || math.IsInf(w, 0) {
			return nil, fmt.Errorf("layout: weight %d is %v, want a finite number >= 0", i, w)
		}
		largest = max(largest, w)
	}
	if largest == 0 {
		return nil, fmt.Errorf("layout: none of %d weights is above 0", len(weights))
	}
	total := 0.0
	for _, w := range weights {
		total += w / largest // in units of the largest: no sum overflows
	}
	quotas := make([]int64, len(weights))
	rest := make([]float64, len(weights))
	var order []int // those that may get one more
	left := int64(Space)
	for i, w := range weights {
		whole, part := math.Modf(w / largest / total * Space)
		quotas[i], rest[i] = int64(whole), part
		switch {
		case w > 0 && whole == 0:
			quotas[i] = 1
		case w > 0:
			order = append(order, i)
		}
		left -= quotas[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for i := 0; left > 0; i++ { // at most one each, but for rounding
		quotas[order[i%len(order)]]++
		left--
	}
	if left < 0 {
		quotas[slices.Index(quotas, slices.Max(quotas))] += left
	}
	return quotas, nil
}
