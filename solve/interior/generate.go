package interior

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/irb-project/irb/solve/rows"
)

const (
	firstPairs = 24   // cheapest pairs that a source starts with
	takenPairs = 16   // pairs that a source may add per round
	firstMu    = 30.0 // sum of products of a first point, in units of worth
	maxRounds  = 20

	// A rough round ends at roughGap, likewise in units of worth. Rough rounds
	// end when less than roughMissing of the pairs were missing.
	roughGap     = 0.01
	roughMissing = 0.01
	maxRough     = 8

	// Margins of a pair's price to its source's, as parts of a typical price:
	// for a price of shedding in rough rounds, to be kept after them, to be
	// added with others that are missing, and to be missing.
	roughShed      = 3
	roughReach     = 1
	reach          = 0.3
	nearby         = 0.05
	roughViolation = 0.03
	violation      = 1e-7

	targetGap    = 1e-10 // of the last rounds, relative to the objective
	certifiedGap = 1e-9  // over all pairs, likewise
	feasibility  = 1e-11 // relative to a source's demand or a row's maximum
)

// generator is one run of column generation: the program over a changing set
// of pairs, each time from the prices found before.
type generator struct {
	g     *rows.Program
	goal  goal
	pairs []int // ascending
	in    []bool
	y     []float64 // row prices
	u     []float64 // source prices
	rough []float64 // per source, a price of shedding for rough rounds
	steps int
}

func newGenerator(g *rows.Program, goal goal, y []float64) *generator {
	c := &generator{g: g, goal: goal, y: y, in: make([]bool, g.Pairs()), rough: slices.Clone(goal.shed)}
	spread := c.shortlist(firstPairs)
	if goal.latency {
		c.goal.price = max(spread, c.typicalCost())
		for s := range c.rough {
			c.rough[s] = min(c.goal.shed[s], max(0, c.rough[s])+roughShed*c.goal.price)
		}
	}
	return c
}

// typicalCost returns 1 % of what a request pays for delay at the prices held,
// in the mean, and a little of its other costs: a scale where pairs do not
// differ.
func (c *generator) typicalCost() (ms float64) {
	mean, _ := meanContents(c.g)
	price, n := [rows.Kinds]float64{}, [rows.Kinds]float64{}
	for j := range c.g.Rows[:c.g.CapRow] {
		price[c.g.Rows[j].Kind] += c.y[j]
		n[c.g.Rows[j].Kind]++
	}
	for kind := range mean {
		if n[kind] > 0 {
			ms += 1e-2 * mean[kind] * price[kind] / n[kind]
		}
	}
	most := 0.0
	for _, cost := range c.g.CostMs {
		most = max(most, math.Abs(cost))
	}
	return max(ms, 1e-6*most, math.SmallestNonzeroFloat64/1e-16)
}

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

// outcome is a program with an optimal point.
type outcome struct {
	*program
	pt *point
}

// run solves the program. The error is errStalled if a point is returned that
// is short of the gap asked for.
func (c *generator) run(ctx context.Context) (*outcome, error) {
	if err := c.approach(ctx); err != nil {
		return nil, err
	}
	for range maxRounds {
		o, err := c.solve(ctx, c.target(), feasibility)
		if err != nil && !errors.Is(err, errStalled) {
			return nil, err
		}
		if c.certified(o) || c.take(-violation*c.goal.price) == 0 {
			return o, err
		}
		c.take(nearby * c.goal.price)
	}
	return nil, errStalled
}

// certified says whether an outcome is optimal over all pairs, not only those
// of its program.
func (c *generator) certified(o *outcome) bool {
	if !c.goal.latency {
		return false
	}
	bound, _ := c.g.Bound(c.y)
	return math.Abs(rows.Gap(c.g.Objective(o.flows(o.pt, vanishing)), bound)) <= certifiedGap
}

// approach runs rough rounds until few pairs are missing, and then keeps the
// pairs within reach of the prices. What does not fit the pairs at hand is shed
// at a moderate price there, which keeps the program well-conditioned.
func (c *generator) approach(ctx context.Context) error {
	shed := c.goal.shed
	if c.goal.latency {
		c.goal.shed = c.rough
	}
	for range maxRough {
		_, err := c.solve(ctx, roughGap, 1e-4*roughGap)
		if err != nil && !errors.Is(err, errStalled) {
			return err
		}
		if c.goal.latency {
			c.narrow(roughReach * c.goal.price)
		}
		if missing := c.take(-roughViolation * c.goal.price); float64(missing) <= roughMissing*float64(len(c.pairs)) {
			break
		}
	}
	c.goal.shed = shed
	if c.goal.latency {
		c.narrow(reach * c.goal.price)
		c.take(reach * c.goal.price)
	}
	return nil
}

// target is the absolute gap to end at, in units of worth. Costs without any
// delay give the size of the objective.
func (c *generator) target() float64 {
	if !c.goal.latency {
		return targetGap
	}
	least, total := 0.0, 0.0
	for s, served := range c.g.Served {
		if first, end := c.g.Row[s], c.g.Row[s+1]; served > 0 && end > first {
			least += served * slices.Min(c.g.CostMs[first:end])
		}
		total += served
	}
	return targetGap * min(1e3, max(1, math.Abs(least)/(total*c.goal.price)))
}

func (c *generator) clear() {
	clear(c.in)
	c.pairs = c.pairs[:0]
}

// solve solves the program over the present pairs, and takes its prices. Where
// long steps stall, it starts again with cautious ones.
func (c *generator) solve(ctx context.Context, gap, feasibility float64) (*outcome, error) {
	b := newProgram(c.g, c.pairs, c.goal)
	mu := firstMu / float64(len(b.q.c))
	s := newSolver(b.q, b.start(c.y, mu))
	err := s.run(ctx, gap, feasibility)
	if errors.Is(err, errStalled) {
		s.cautious, s.pt = true, b.start(c.y, mu)
		err = s.run(ctx, gap, feasibility)
	}
	c.steps += s.steps
	c.y, c.u = b.prices(s.pt), b.sourcePrices(s.pt)
	return &outcome{b, s.pt}, err
}
