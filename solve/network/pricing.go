package network

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// errStalled is the end of a solve that exceeds any sensible number of pivots.
var errStalled = errors.New("network: pivot limit reached")

// Candidate list pricing (Ahuja, Magnanti, Orlin, section 11.5): the list is
// filled with violating arcs, the worst of them enters until none violates any
// more, then it is filled again from where the search had stopped. A fill
// looks at a block of arcs of the graph and at the full rows of some sources,
// the best pairs of which become arcs. Hence pairs that the graph lacks enter
// before prices have settled on the arcs that it has.
const (
	listSize     = 64
	arcsPerFill  = 2048
	rowsPerFill  = 4
	pairsPerFill = 3 // per row
)

type pricer struct {
	*builder
	list    []int32
	nextArc int
	nextRow int
	prices  []float64 // per engine, +Inf without capacity
	found   *offers
}

// optimize pivots until no arc of the graph and no pair of the program could
// lower the cost by more than tolerance per unit of flow.
func (b *builder) optimize(ctx context.Context, tolerance float64) error {
	p := &pricer{builder: b, prices: make([]float64, len(b.Engines)), found: newOffers(1, pairsPerFill)}
	for e := range p.prices {
		p.prices[e] = math.Inf(1)
	}
	b.mend()
	limit := b.steps + 1000*len(b.nodes) + 10000
	for {
		a := p.worst(tolerance)
		if a < 0 {
			if !p.fill(tolerance) {
				return nil
			}
			continue
		}
		b.pivot(a, tolerance)
		if b.steps > limit {
			return fmt.Errorf("%w: %d pivots on %d nodes and %d arcs", errStalled, b.steps, len(b.nodes), len(b.arcs))
		}
		if b.steps%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// worst takes the worst violator from the list, and drops what violates no
// more.
func (p *pricer) worst(tolerance float64) int32 {
	best, worst, n := -1, tolerance, 0
	for _, a := range p.list {
		if v := p.violation(a); v > tolerance {
			if v > worst {
				best, worst = n, v
			}
			p.list[n] = a
			n++
		}
	}
	p.list = p.list[:n]
	if best < 0 {
		return -1
	}
	a := p.list[best]
	p.list[best] = p.list[n-1]
	p.list = p.list[:n-1]
	return a
}

// violation returns what one more unit of flow around the cycle of arc a saves.
func (g *graph) violation(a int32) float64 {
	x := &g.arcs[a]
	drop := g.prices[x.tail] - g.prices[x.head]
	return max(drop-x.up, x.down-drop)
}

// fill refills the list and reports whether it found anything; if not, nothing
// in the graph and no pair violates the tolerance.
func (p *pricer) fill(tolerance float64) bool {
	arcs, rows := len(p.arcs), len(p.Sources)
	for arcs > 0 || rows > 0 {
		n := min(arcs, arcsPerFill)
		p.fillArcs(n, tolerance)
		arcs -= n
		n = min(rows, rowsPerFill)
		p.fillRows(n, tolerance)
		rows -= n
		if len(p.list) > 0 {
			return true
		}
	}
	return false
}

func (p *pricer) fillArcs(n int, tolerance float64) {
	i := p.nextArc
	if i >= len(p.arcs) {
		i = 0
	}
	for ; n > 0 && len(p.list) < listSize; n-- {
		x := &p.arcs[i]
		drop := p.graph.prices[x.tail] - p.graph.prices[x.head]
		if max(drop-x.up, x.down-drop) > tolerance {
			p.list = append(p.list, int32(i))
		}
		if i++; i == len(p.arcs) {
			i = 0
		}
	}
	p.nextArc = i
}

func (p *pricer) fillRows(n int, tolerance float64) {
	if n == 0 {
		return
	}
	for e, sink := range p.sinks {
		if sink != nil {
			p.prices[e] = p.graph.prices[p.engine(int32(e))]
		}
	}
	for range n {
		if p.nextRow >= len(p.Sources) {
			p.nextRow = 0
		}
		s := int32(p.nextRow)
		p.found.count[0] = 0
		p.betterRow(s, p.prices, tolerance, p.found, 0)
		for _, o := range p.found.of(0) {
			p.list = append(p.list, p.addPair(s, o.k, 0))
		}
		p.nextRow++
	}
}
