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
	roughMissing = 0.1
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
