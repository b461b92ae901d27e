package network

import (
	"context"
	"errors"
	"fmt"
)

// errStalled is the end of a solve that exceeds any sensible number of pivots.
var errStalled = errors.New("network: pivot limit reached")

// Candidate list pricing (Ahuja, Magnanti, Orlin, section 11.5): the list is
// filled with violating arcs, the worst of them enters until none violates any
// more, then it is filled again from where the search had stopped. A fill
// looks at a block of arcs of the graph and at the full rows of some sources,
// the best pairs of which become arcs. Hence pairs that the graph lacks enter
// before prices have settled on the arcs that it has. Only what violates by a
// good part of the worst violation of the block is listed: small ones are
// often gone before their turn comes.
const (
	listSize     = 64
	arcsPerFill  = 1024
	pairsPerFill = 4000 // about; whole rows
	pairsPerRow  = 3
	listAbove    = 0.15 // part of the worst violation of a block
)

type pricer struct {
	*builder
	list    []int32
	seen    []violator // scratch of fillArcs
	bar     float64    // what a violation must exceed to enter
	nextArc int
	nextRow int
	rows    int // rows to look at: all or none
	found   *offers
}

// optimize pivots until no arc of the graph, and if full no pair of the program,
// could lower the cost by more than tolerance per unit of flow.
func (b *builder) optimize(ctx context.Context, tolerance float64, full bool) error {
	p := &pricer{builder: b, found: newOffers(1, pairsPerRow)}
	if full {
		p.rows = len(b.Sources)
	}
	b.mend()
	limit := b.steps + 1000*len(b.nodes) + 10000
	for {
		a := p.worst()
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

// worst takes the worst violator from the list, and drops what no longer
// violates the bar.
func (p *pricer) worst() int32 {
	best, worst, n := -1, p.bar, 0
	for _, a := range p.list {
		if v := p.violation(a); v > p.bar {
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

// fill refills the list with violators of a new bar and reports whether there
// are any; if not, nothing in the graph and no pair violates the tolerance.
func (p *pricer) fill(tolerance float64) bool {
	arcs, rows := len(p.arcs), p.rows
	for arcs > 0 || rows > 0 {
		n := min(arcs, arcsPerFill)
		p.fillArcs(n, tolerance)
		arcs -= n
		rows -= p.fillRows(rows)
		if len(p.list) > 0 {
			return true
		}
	}
	return false
}

type violator struct {
	a  int32
	by float64
}

// fillArcs sets the bar by the worst violation among the next n arcs, and lists
// the violators of the bar.
func (p *pricer) fillArcs(n int, tolerance float64) {
	p.seen = p.seen[:0]
	worst, i := tolerance, p.nextArc
	for ; n > 0; n-- {
		if i >= len(p.arcs) {
			i = 0
		}
		if v := p.violation(int32(i)); v > tolerance {
			p.seen = append(p.seen, violator{int32(i), v})
			worst = max(worst, v)
		}
		i++
	}
	p.nextArc = i
	p.bar = max(tolerance, listAbove*worst)
	for _, v := range p.seen {
		if v.by > p.bar && len(p.list) < listSize {
			p.list = append(p.list, v.a)
		}
	}
}

// fillRows looks at most at rows rows, those with about pairsPerFill pairs in
// all, and returns how many it saw.
func (p *pricer) fillRows(rows int) (n int) {
	for pairs := 0; n < rows && pairs < pairsPerFill; n++ {
		if p.nextRow >= len(p.Sources) {
			p.nextRow = 0
		}
		s := int32(p.nextRow)
		pairs += p.Row[s+1] - p.Row[s]
		p.found.count[0] = 0
		p.betterRow(s, p.enginePrices(), p.bar, p.found, 0)
		for _, o := range p.found.of(0) {
			p.list = append(p.list, p.addPair(s, o.k, 0))
		}
		p.nextRow++
	}
	return n
}
