package network

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// blockSize is how many arcs pricing looks at before it takes the worst.
const blockSize = 256

// errStalled is the end of a solve that exceeds any sensible number of pivots.
var errStalled = errors.New("network: pivot limit reached")

// optimize pivots until no arc could lower the cost by more than tolerance per
// unit of flow.
func (g *graph) optimize(ctx context.Context, tolerance float64) error {
	limit := g.steps + 200*(len(g.nodes)+len(g.arcs)) + 10000
	for {
		a := g.price(tolerance)
		if a < 0 {
			return nil
		}
		g.pivot(a)
		if g.steps > limit {
			return fmt.Errorf("%w: %d pivots on %d nodes and %d arcs", errStalled, g.steps, len(g.nodes), len(g.arcs))
		}
		if g.steps%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// price returns an arc that could lower the cost, the best one of the first
// block that has any, or -1 after a clean wrap over all arcs.
func (g *graph) price(tolerance float64) int32 {
	best, worst := int32(-1), tolerance
	i, left := g.next, blockSize
	if i >= len(g.arcs) {
		i = 0
	}
	for n := len(g.arcs); n > 0; n-- {
		x := &g.arcs[i]
		drop := g.nodes[x.tail].price - g.nodes[x.head].price
		if v := max(drop-x.up, x.down-drop); v > worst {
			best, worst = int32(i), v
		}
		if i++; i == len(g.arcs) {
			i = 0
		}
		if left--; left == 0 {
			if best >= 0 {
				break
			}
			left = blockSize
		}
	}
	g.next = i
	return best
}

// slack returns the worst violation of optimality of any arc of the graph.
func (g *graph) slack() float64 {
	worst := math.Inf(-1)
	for i := range g.arcs {
		x := &g.arcs[i]
		drop := g.nodes[x.tail].price - g.nodes[x.head].price
		worst = max(worst, drop-x.up, x.down-drop)
	}
	return worst
}
