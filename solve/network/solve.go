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
	// Start are the flows of a plan of nearly the same problem, in order of
	// pair; nil: what the stay terms would keep, if there are any.
	Start    []model.Flow
	Progress func(stage string) // is told what begins; nil: nobody listens
}

// Solve returns the optimum of m with its prices.
//
// The error is a *model.Infeasible where demand cannot be served, that of
// Supports where m is no network, or the context's.
func Solve(ctx context.Context, m *model.Problem, opts Options) (*model.Solution, error) {
	if m.Work == model.WorkSplit {
		return nil, Supports(m)
	}
	if opts.Progress == nil {
		opts.Progress = func(string) {}
	}
	if opts.Start == nil {
		opts.Start = previous(m)
	}
	p, err := newProgram(m)
	if err != nil {
		return nil, err
	}
	if err := p.checkMinimums(); err != nil {
		return nil, err
	}
	if err := p.checkReach(); err != nil {
		return nil, err
	}
	a := &attempts{program: p, progress: opts.Progress, start: opts.Start}
	var b *builder
	if !m.Shed || !p.overfull() {
		if b, err = a.solve(ctx); err != nil {
			return nil, err
		}
		if p.isSlack(b.bypassed()) {
			return b.solution(nil), nil
		}
	}
	prices, long := a.offers()
	if !m.Shed {
		return nil, p.explain(ctx, long)
	}
	cuts, err := p.shed(ctx, prices, long)
	if err != nil {
		return nil, err
	}
	if b, err = a.solve(ctx); err != nil {
		return nil, err
	}
	if !p.isSlack(b.bypassed()) {
		return nil, errNotPolished
	}
	return b.solution(cuts), nil
}

// attempts solves a program, from a start if there is one, else or should that
// fail from start prices.
type attempts struct {
	*program
	progress func(stage string)
	start    []model.Flow
	prices   []float64
	long     *offers // at prices
}

// offers returns the start prices and what is cheapest at them.
func (a *attempts) offers() ([]float64, *offers) {
	if a.long == nil {
		a.progress("start prices")
		a.prices = a.startPrices()
		a.long = a.cheapest(a.prices, longlist)
	}
	return a.prices, a.long
}

func (a *attempts) solve(ctx context.Context) (*builder, error) {
	if a.covers(a.start) {
		b := newBuilder(a.program, false, nil)
		b.progress = a.progress
		b.startFrom(a.start)
		err := b.runWarm(ctx)
		if err == nil || ctx.Err() != nil {
			return b, err
		}
	}
	prices, long := a.offers()
	b := newBuilder(a.program, false, nil)
	b.progress = a.progress
	b.start(prices, long)
	return b, b.run(ctx)
}

// isSlack reports whether a flow is what rounding may leave over.
func (p *program) isSlack(flow float64) bool {
	return flow <= bypassSlack*float64(len(p.Sources))
}

// overfull reports whether there is more supply than all engines may take.
func (p *program) overfull() bool {
	total := 0.0
	for _, s := range p.supply {
		total += s
	}
	for _, sink := range p.sinks {
		if sink != nil {
			total -= sink.limit
		}
	}
	return !p.isSlack(total)
}

// explain returns the error of a program whose demand cannot all be served.
func (p *program) explain(ctx context.Context, long *offers) error {
	b, err := p.maxFlow(ctx, long)
	if err != nil {
		return err
	}
	if p.isSlack(b.bypassed()) {
		return errNotPolished
	}
	return b.infeasible()
}

// errNotPolished is the end of a solve whose rounds do not arrive.
var errNotPolished = errors.New("network: optimum not reached in the rounds allowed")

const (
	// firstTolerance ends the pivots on the shortlists.
	firstTolerance = 1e-2
	// roundTolerance is that of the first round on all pairs; both in typical
	// costs.
	roundTolerance = 1e-4
	maxRounds      = 40
	// finalTolerance is how negative a reduced cost may be at the end: the
	// relative gap is at most that. Below priceRounding of the price of the
	// bypass, a sum of prices is rounding.
	finalTolerance = 1e-11
	priceRounding  = 1e-14
)

// run brings a cold start to the optimum.
func (b *builder) run(ctx context.Context) error {
	if err := b.optimize(ctx, firstTolerance*b.typical, false); err != nil {
		return err
	}
	return b.rounds(ctx)
}

// runWarm does so for a start near it: the first tree has the loads of the
// optimum on that tree before any pivot, and the grid is fine around them.
func (b *builder) runWarm(ctx context.Context) error {
	tries := warmTries
	if b.Stay != nil {
		tries = warmTries / 3 // flows rest where their terms bend, and block
	}
	b.polish(tries)
	b.regrid(warmShrink)
	return b.rounds(ctx)
}

// rounds alternates between the simplex on the grid and the polish on the
// tree, with ever finer grids, until polishing arrives and no pair could do
// better.
func (b *builder) rounds(ctx context.Context) error {
	tolerance, finest := roundTolerance*b.typical, false
	for round := range maxRounds {
		b.progress(fmt.Sprintf("round %d: %d pivots, %d arcs", round+1, b.steps, len(b.arcs)))
		// Later on few pairs are better: passes over all of them in parallel
		// beat looking at some in each fill.
		for again := true; again; again = round > 0 && b.addBetter(tolerance) > 0 {
			if err := b.optimize(ctx, tolerance, round == 0); err != nil {
				return err
			}
		}
		b.reprice()
		if straight, smooth := b.trueSlack(); finest && max(straight, smooth) <= gridTolerance {
			return nil // the polish does not arrive, but nothing can be gained
		}
		if b.polish(polishTries) && b.isOptimal() && b.addBetter(b.final) == 0 {
			return nil
		}
		finest = b.regrid(gridShrink)
		tolerance = max(b.final, tolerance*gridShrink*gridShrink)
	}
	return errNotPolished
}

// gridTolerance is what the finest grid may leave of violations, relative to
// prices. It is a difference of prices over a step of 1e-9 of a limit, so the
// gap that comes of it is smaller by as much again.
const gridTolerance = 1e-7

// polishTries is how many arcs of each component polishing may drop in a round.
const polishTries = 100

// bypassSlack is the part of all demand that may be left over by rounding; the
// mean source has a supply of about 1.
const bypassSlack = 1e-13

const gridShrink = 1.0 / 16

// warmTries is polishTries before the first round of a warm start.
const warmTries = 30

// warmShrink is how much finer than the first grid that of a warm start is.
const warmShrink = 1.0 / 4

// smoothSlack is what rounding may leave between the marginal of a load and its
// price, relative: the last load of a component takes the rounding of all its
// others. What that costs is of the order of its square.
const smoothSlack = 1e-9

// isOptimal reports whether no arc violates optimality after polishing.
func (b *builder) isOptimal() bool {
	straight, smooth := b.trueSlack()
	return straight <= b.final && smooth <= smoothSlack
}

// trueSlack returns the worst violations of optimality of straight and of
// smooth arcs, relative to their prices, with the marginals of smooth arcs in
// the place of their slopes.
func (b *builder) trueSlack() (straight, smooth float64) {
	for a := range b.arcs {
		x := &b.arcs[a]
		drop := b.graph.prices[x.tail] - b.graph.prices[x.head]
		left, right := b.trueSides(int32(a))
		slack := max(drop-right, left-drop) / (1 + math.Abs(drop))
		if b.smoothOf(int32(a)) == nil {
			straight = max(straight, slack)
		} else {
			smooth = max(smooth, slack)
		}
	}
	return straight, smooth
}

// trueSides returns the left and the right derivative of the cost of arc a at
// its flow. A load beside a kink by rounding is at the kink; what that costs is
// of the order of its square.
func (b *builder) trueSides(a int32) (left, right float64) {
	c := b.smoothOf(a)
	if c == nil {
		return b.arcs[a].down, b.arcs[a].up
	}
	y, fuzz := b.state[a].flow, loadFuzz*c.limit
	left, _ = c.sides(y - fuzz)
	_, right = c.sides(y + fuzz)
	return left, right
}

// loadFuzz is how far, in parts of its limit, an engine's load may be from what
// its price asks for.
const loadFuzz = 1e-12

// solution reads the answer off the graph, in original units.
func (b *builder) solution(cuts []model.ShedCut) *model.Solution {
	b.settle()
	p := b.program
	out := &model.Solution{
		Method: "network simplex", Iterations: b.steps, ShedCuts: cuts,
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
		if !p.lifted[i] {
			// Its pairs are at their own lower bounds, which hold the group up.
			out.GroupPriceMs[i] = max(0, out.GroupPriceMs[i])
		}
	}
	return out
}

func (b *builder) flows(out *model.Solution) {
	for k := range b.lowerPairs() {
		out.Flows = append(out.Flows, model.Flow{Pair: k, RPS: b.Lower[k]})
	}
	for i, k := range b.pairs {
		a := b.firstPair + int32(i)
		if flow := b.state[a].flow; flow > 0 {
			s := b.sourceOf(b.arcs[a].tail)
			out.Flows = append(out.Flows, model.Flow{Pair: k, RPS: flow / b.perRPS[s]})
		}
	}
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
