package network

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/irb-project/irb/solve/model"
)

// Options are the choices of one solve; the zero value is good.
type Options struct {
	Progress func(stage string) // is told what begins; nil: nobody listens
}

// Solve returns the optimum of m with its prices.
func Solve(ctx context.Context, m *model.Problem, opts Options) (*model.Solution, error) {
	if m.Work == model.WorkSplit {
		return nil, Supports(m)
	}
	p, err := newProgram(m)
	if err != nil {
		return nil, err
	}
	if err := p.checkMinimums(); err != nil {
		return nil, err
	}
	b := newBuilder(p, false)
	if b.progress = opts.Progress; b.progress == nil {
		b.progress = func(string) {}
	}
	b.progress("start prices")
	prices := p.startPrices()
	b.progress("first tree")
	b.start(prices)
	if err := b.run(ctx); err != nil {
		return nil, err
	}
	if b.bypassed() > bypassSlack*float64(len(p.Sources)) {
		short, err := p.maxFlow(ctx)
		if err != nil {
			return nil, err
		}
		if short.bypassed() > bypassSlack*float64(len(p.Sources)) {
			return nil, short.infeasible()
		}
		return nil, errNotPolished
	}
	return b.solution(), nil
}

// errNotPolished is the end of a solve whose rounds do not arrive.
var errNotPolished = errors.New("network: optimum not reached in the rounds allowed")

const (
	maxRounds = 40
	// finalTolerance is how negative a reduced cost may be at the end, in
	// mean costs: the relative gap is at most that.
	finalTolerance = 1e-11
)

// run alternates between the simplex on the grid and the polish on the tree,
// with ever finer grids, until polishing arrives and no pair could do better.
func (b *builder) run(ctx context.Context) error {
	tolerance := 1e-4
	for round := range maxRounds {
		b.progress(fmt.Sprintf("round %d: %d pivots, %d arcs", round+1, b.steps, len(b.arcs)))
		if err := b.optimize(ctx, tolerance); err != nil {
			return err
		}
		b.reprice()
		if b.polish(polishTries) && b.straightSlack() <= finalTolerance && b.addBetter(finalTolerance) == 0 {
			return nil
		}
		b.regrid(gridShrink)
		tolerance = max(finalTolerance, tolerance*gridShrink*gridShrink)
	}
	return errNotPolished
}

// polishTries is how many arcs of each component polishing may drop in a round.
const polishTries = 100

// bypassSlack is the part of all demand that may be left over by rounding; the
// mean source has a supply of about 1.
const bypassSlack = 1e-12

const gridShrink = 1.0 / 16

// straightSlack returns the worst violation of any arc but those of engines,
// whose loads the polish made those of their prices.
func (b *builder) straightSlack() float64 {
	worst := math.Inf(-1)
	for a := range b.arcs {
		if _, ok := b.state[a].cost.(*grid); ok {
			continue
		}
		x := &b.arcs[a]
		drop := b.graph.prices[x.tail] - b.graph.prices[x.head]
		worst = max(worst, drop-x.up, x.down-drop)
	}
	return worst
}

// solution reads the answer off the graph, in original units.
func (b *builder) solution() *model.Solution {
	p := b.program
	out := &model.Solution{
		Method: "network simplex", Iterations: b.steps,
		ServedRPS:     make([]float64, len(p.Sources)),
		SourcePriceMs: make([]float64, len(p.Sources)),
		EnginePrice:   make([]float64, len(p.Engines)),
		GroupPriceMs:  make([]float64, len(p.Groups)),
		CapPrice:      make([]float64, len(p.Caps)),
	}
	price := func(v int32) float64 { return b.prices[v] * p.priceUnit }
	b.flows(out)
	for s := range p.Sources {
		out.SourcePriceMs[s] = price(int32(s)) * p.Sources[s].Work
	}
	for e := range p.Engines {
		if p.sinks[e] != nil {
			v := p.engine(int32(e))
			out.EnginePrice[e] = price(v) - price(p.above[v])
		}
	}
	for c := range p.Caps {
		v := p.capNode(c)
		out.CapPrice[c] = price(v) - price(p.above[v])
	}
	for i := range p.Groups {
		v := p.group(i)
		out.GroupPriceMs[i] = (price(p.above[v]) - price(v)) * p.Sources[p.Groups[i].Source].Work
	}
	return out
}

func (b *builder) flows(out *model.Solution) {
	source := make([]int32, 0, len(b.pairs))
	for k, s := range b.lowerPairs() {
		out.Flows = append(out.Flows, model.Flow{Pair: k, RPS: b.Lower[k]})
		source = append(source, s)
	}
	for i, k := range b.pairs {
		a := b.firstPair + int32(i)
		if flow := b.state[a].flow; flow > 0 {
			s := b.sourceOf(b.arcs[a].tail)
			out.Flows = append(out.Flows, model.Flow{Pair: k, RPS: flow / b.perRPS[s]})
		}
	}
	_ = source
	slices.SortStableFunc(out.Flows, func(x, y model.Flow) int { return x.Pair - y.Pair })
	merged := out.Flows[:0]
	for _, f := range out.Flows {
		if n := len(merged); n > 0 && merged[n-1].Pair == f.Pair {
			merged[n-1].RPS += f.RPS
			continue
		}
		merged = append(merged, f)
	}
	out.Flows = merged
	s := 0
	for _, f := range merged {
		for f.Pair >= b.Row[s+1] {
			s++
		}
		out.ServedRPS[s] += f.RPS
	}
}

// sourceOf returns the source above a group node.
func (p *program) sourceOf(v int32) int32 {
	if v >= p.group(0) {
		return int32(p.Groups[v-p.group(0)].Source)
	}
	return v
}
