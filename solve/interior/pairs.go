package interior

import (
	"math"
	"slices"
)

// shortlist takes each source's n cheapest pairs, and those that a lower bound
// or a stay term holds to. It returns how much dearer the last of them is than
// the first, in the mean.
func (c *generator) shortlist(n int) (spreadMs float64) {
	u := c.g.UnitPrices(c.y)
	var prices, sorted []float64
	total := 0.0
	for s, served := range c.g.Served {
		prices = c.g.PairPrices(s, &u, c.y, prices)
		if len(prices) == 0 || served <= 0 {
			continue
		}
		sorted = append(sorted[:0], prices...)
		last := smallest(sorted, n)
		first := slices.Min(prices)
		c.rough[s] = last - slices.Min(c.g.CostMs[c.g.Row[s]:c.g.Row[s+1]])
		spreadMs += served * (last - first)
		total += served
		taken := 0
		for i, price := range prices {
			if k := c.g.Row[s] + i; (price <= last && taken < n) || c.held(k) {
				c.add(k)
				taken++
			}
		}
	}
	return spreadMs / total
}

// held says whether pair k must be in the program whatever its price: a lower
// bound, a stay term or the minimum of a group holds flow to it.
func (c *generator) held(k int) bool {
	stay, _ := c.g.StayTerm(k)
	if stay > 0 || (c.g.Lower != nil && c.g.Lower[k] > 0) {
		return true
	}
	for _, j := range c.g.PairGroups(k) {
		if c.g.Rows[j].Min > 0 {
			return true
		}
	}
	return false
}

// smallest returns the n-th smallest value of x (the largest if there are
// fewer), reordering x: Hoare's quickselect.
func smallest(x []float64, n int) float64 {
	n = min(n, len(x)) - 1
	for lo, hi := 0, len(x)-1; lo < hi; {
		pivot := x[(lo+hi)/2]
		i, j := lo, hi
		for i <= j {
			for x[i] < pivot {
				i++
			}
			for x[j] > pivot {
				j--
			}
			if i <= j {
				x[i], x[j] = x[j], x[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case n <= j:
			hi = j
		case n >= i:
			lo = i
		default:
			return x[n]
		}
	}
	return x[n]
}

func (c *generator) add(k int) {
	if !c.in[k] {
		c.in[k] = true
		c.pairs = append(c.pairs, k)
	}
}

// take adds each source's pairs whose price is less than margin above its own,
// at most takenPairs, the cheapest, and returns how many were new.
func (c *generator) take(margin float64) (added int) {
	before := len(c.pairs)
	u := c.g.UnitPrices(c.y)
	var prices, below []float64
	for s, served := range c.g.Served {
		if served <= 0 {
			continue
		}
		prices = c.g.PairPrices(s, &u, c.y, prices)
		below = below[:0]
		for i, price := range prices {
			if price < c.u[s]+margin && !c.in[c.g.Row[s]+i] {
				below = append(below, price)
			}
		}
		if len(below) == 0 {
			continue
		}
		last := smallest(below, takenPairs)
		left := takenPairs
		for i, price := range prices {
			if k := c.g.Row[s] + i; price <= last && !c.in[k] && left > 0 {
				c.add(k)
				left--
			}
		}
	}
	slices.Sort(c.pairs)
	return len(c.pairs) - before
}

// narrow drops the pairs whose price is more than margin above that of the
// cheapest of their source.
func (c *generator) narrow(margin float64) {
	u := c.g.UnitPrices(c.y)
	var prices []float64
	kept := c.pairs[:0]
	s := -1
	base := 0.0
	for i, k := range c.pairs {
		if s < 0 || k >= c.g.Row[s+1] {
			for s++; k >= c.g.Row[s+1]; s++ {
			}
			prices = c.g.PairPrices(s, &u, c.y, prices)
			base = c.u[s]
			least := math.Inf(1)
			for _, other := range c.pairs[i:] {
				if other >= c.g.Row[s+1] {
					break
				}
				least = min(least, prices[other-c.g.Row[s]])
			}
			// The price of a source of little demand is settled last.
			base = max(base, least)
		}
		c.in[k] = prices[k-c.g.Row[s]] < base+margin || c.held(k)
		if c.in[k] {
			kept = append(kept, k)
		}
	}
	c.pairs = kept
}

func (c *generator) clear() {
	clear(c.in)
	c.pairs = c.pairs[:0]
}
