//go:build cgo

package lp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/rows"
)

const (
	// firstPairs is how many of its cheapest pairs a source starts with.
	firstPairs = 12
	// addedPairs is how many violated pairs a source may add per round.
	addedPairs = 4
	// violationMs is the reduced cost below which a pair is added; well above
	// CLP's dual tolerance of 1e-7.
	violationMs = 1e-6
	// firstSpan and spanShrink set the grids: a span of the row's maximum on
	// either side of the load, narrowed every round. A chord of width h is off
	// by F'' h²/8, so 8 times narrower means a gap 64 times smaller.
	firstSpan  = 1.0 / 4
	spanShrink = 8.0
	maxRounds  = 40
	// targetGap ends the rounds; acceptedGap is what an answer may have at
	// their end. Both are relative to the objective.
	targetGap   = 1e-9
	acceptedGap = 1e-6
)

// generator is one run of column generation.
type generator struct {
	g     *rows.Program
	in    []bool    // pairs of the master
	n     int       // how many
	loads []float64 // per row, nil before the first answer
	span  []float64 // per row, absolute
}

// generate solves g by column generation: a master over some pairs and chords,
// its duals priced over all pairs and exact conjugates, until the bound they
// give is within a gap of the objective. Each master is solved from scratch; CLP's
// binding has neither warm start nor added columns.
//
// The error is errInfeasible if no flows over all pairs exist.
func generate(ctx context.Context, g *rows.Program, gap float64) (*model.Solution, error) {
	c := &generator{g: g, in: make([]bool, g.Pairs())}
	c.shortlist(firstPairs)
	var best *model.Solution
	bestGap := math.Inf(1)
	for round, width := 1, firstPairs; round <= maxRounds; round++ {
		m := newMaster(g, listed(c.in), c.grids())
		err := m.solve(ctx)
		if errors.Is(err, errInfeasible) && c.n < g.Pairs() {
			width *= 4
			c.shortlist(width)
			continue
		}
		if err != nil {
			return nil, err
		}
		flows, y := m.flows(), m.prices()
		bound, _ := g.Bound(y)
		if now := rows.Gap(g.Objective(flows), bound); now < bestGap {
			best, bestGap = g.Solution(method, round, flows, y), now
		}
		if bestGap <= gap {
			break
		}
		c.price(m.sourcePrices(), y)
		c.narrow(g.Activity(flows))
	}
	if !(bestGap <= acceptedGap) {
		return nil, fmt.Errorf("lp: gap %.3g after %d rounds, want at most %.0e", bestGap, maxRounds, acceptedGap)
	}
	return best, nil
}

// shortlist adds each source's n cheapest pairs at the prices of a fleet whose
// rows are all equally used.
func (c *generator) shortlist(n int) {
	y := c.startPrices()
	u := c.g.UnitPrices(y)
	var order []int
	var price []float64
	for s := range c.g.Sources {
		order, first := order[:0], c.g.Row[s]
		price = c.g.PairPrices(s, &u, y, price)
		for i := range price {
			order = append(order, first+i)
		}
		slices.SortFunc(order, func(a, b int) int {
			return cmp.Or(cmp.Compare(price[a-first], price[b-first]), a-b)
		})
		for i, k := range order {
			stay, _ := c.g.StayTerm(k)
			if i < n || stay > 0 || (c.g.Lower != nil && c.g.Lower[k] > 0) {
				c.add(k)
			}
		}
	}
}

// startPrices are the marginal delays at equal utilization of all rows.
func (c *generator) startPrices() []float64 {
	var content, room [rows.Kinds]float64
	for s, served := range c.g.Served {
		for kind := range content {
			content[kind] += served * c.g.Contents[kind][s]
		}
	}
	for j := range c.g.Rows[:c.g.CapRow] {
		room[c.g.Rows[j].Kind] += c.g.Rows[j].Max
	}
	y := make([]float64, len(c.g.Rows))
	for j := range c.g.Rows[:c.g.CapRow] {
		if r := &c.g.Rows[j]; r.Sink != nil {
			y[j], _ = r.Sink.Marginal(min(1, content[r.Kind]/room[r.Kind]) * r.Max)
		}
	}
	return y
}

func (c *generator) add(k int) {
	if !c.in[k] {
		c.in[k] = true
		c.n++
	}
}

// price adds the pairs of each source that beat its price the most.
func (c *generator) price(sourcePrice, y []float64) {
	u := c.g.UnitPrices(y)
	type candidate struct {
		pair    int
		reduced float64
	}
	var found []candidate
	var price []float64
	for s := range c.g.Sources {
		found = found[:0]
		price = c.g.PairPrices(s, &u, y, price)
		for i, p := range price {
			if k := c.g.Row[s] + i; !c.in[k] && p-sourcePrice[s] < -violationMs {
				found = append(found, candidate{k, p - sourcePrice[s]})
			}
		}
		slices.SortFunc(found, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.reduced, b.reduced), a.pair-b.pair) })
		for _, f := range found[:min(addedPairs, len(found))] {
			c.add(f.pair)
		}
	}
}

// narrow centres the grids on new loads. A row that moved keeps a span that
// covers twice the move.
func (c *generator) narrow(loads []float64) {
	if c.loads == nil {
		c.span = make([]float64, len(loads))
		for j := range c.span {
			c.span[j] = firstSpan * c.g.Rows[j].Max
		}
	} else {
		for j := range c.span {
			c.span[j] = max(c.span[j]/spanShrink, min(c.span[j], 2*math.Abs(loads[j]-c.loads[j])))
		}
	}
	c.loads = loads
}

func (c *generator) grids() [][]float64 {
	if c.loads == nil {
		return uniformGrids(c.g, 16)
	}
	grids := make([][]float64, len(c.g.Rows))
	for j := range grids {
		if r := &c.g.Rows[j]; r.Sink != nil {
			grids[j] = focusedGrid(r, c.loads[j], max(c.span[j], 1e-8*r.Max))
		}
	}
	return grids
}
