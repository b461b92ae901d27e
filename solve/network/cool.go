package network

import (
	"math"

	"github.com/irb-project/irb/solve/model"
)

// The start of a large program with short rows goes on from its prices to colder
// ones by Newton's method, until soft choices are nearly the flows of a tree. At
// a temperature t the prices sought are those at which the loads that soft
// choices make are the loads that marginals ask for. With x_se what source s of
// supply d_s sends to engine e, the matrix of a step is
//
//	diag(1/F_e'') + sum_s (diag(x_s) - x_s x_s'/d_s) / t
//
// and conjugate gradients solve for the step. It sees how engines far apart
// depend on each other, which steps of Sinkhorn's kind carry only from
// neighbour to neighbour. Where rows are long, too many pairs are near at
// temperatures at which a step is good, and pivots are the cheaper way on.
const (
	coolNodes = 2000 // at least, to be worth it
	coolPairs = 64   // per node, at most

	warmest = 0.002 // in mean costs
	coolest = 0.0002
	// nearReach is how many temperatures above the cheapest of its source a pair
	// counts, and startError, in mean costs, how wrong start prices may be.
	nearReach  = 12
	startError = 0.0075

	coolSteps  = 4     // at each temperature, at most
	coolEnough = 0.015 // part of all supply that need not be where it is asked for
	coolGiveUp = 0.025 // the same at which pivots from other prices are fewer
	coolStride = 3     // temperatures that a price moves at most in a step
	coolTries  = 3     // lengths of a step

	gradientSteps    = 60
	gradientAccuracy = 0.1
	// coolStray is how much of the work a plan may route otherwise than asked for
	// and still be the better start.
	coolStray = 0.02
	// matter is the part of its source's supply or of its engine's load that a
	// flow must be to be a flow of the start.
	matter = 0.01
)

// cooler holds the state of the cold part of the start.
type cooler struct {
	*program
	prices []float64
	total  float64 // of all loads

	// Near pairs, those of source sources[i] from first[i] on.
	sources []int32
	first   []int
	pair    []int32
	col     []int32
	cost    []float64
	flow    []float64 // the soft choices

	load, excess, growth []float64 // per engine: what it gets, what marginals ask for beyond it, growth of that
	step, at             []float64
	matrix               stepMatrix
}

// isCool reports whether the start of the program should cool.
func (p *program) isCool() bool {
	nodes := len(p.Sources) + len(p.Engines)
	return nodes >= coolNodes && p.Pairs() <= coolPairs*nodes
}

// cool returns the flows of the soft choices at the coolest temperature, in
// order of pair, from prices of the start, which it changes; or nil where
// Newton's method does not arrive: engines at their limits can be dearer than
// the start found by more than near pairs can tell.
func (p *program) cool(prices []float64) []model.Flow {
	m := len(p.Engines)
	f := &cooler{program: p, prices: prices, load: make([]float64, m), excess: make([]float64, m),
		growth: make([]float64, m), step: make([]float64, m), at: make([]float64, m), matrix: newStepMatrix(m)}
	for _, s := range p.supply[:p.capNode(0)] {
		f.total += max(0, s)
	}
	f.gather(nearReach*warmest*p.typical + startError*p.typical)
	var warmer, now []float64
	for t := warmest * p.typical; t > coolest*p.typical; t /= 2 {
		now = append(now[:0], f.prices...)
		if warmer != nil { // prices are about linear in t
			for e := range f.prices {
				f.prices[e] += (f.prices[e] - warmer[e]) / 2
			}
			f.narrow(nearReach * t)
		}
		warmer = append(warmer[:0], now...)
		p.level(f.prices, f.total)
		f.choose(f.prices, t)
		for range coolSteps {
			if f.misplaced() < coolEnough*f.total {
				break
			}
			f.move(t)
		}
		if f.misplaced() > coolGiveUp*f.total {
			return nil
		}
	}
	return f.plan()
}

// misplaced returns how much load is not where it is asked for.
func (f *cooler) misplaced() (sum float64) {
	for _, x := range f.excess {
		sum += math.Abs(x)
	}
	return sum / 2
}

// gather collects the pairs within width of the cheapest of their source. An
// engine that is near no source becomes as cheap as the first would use it at.
func (f *cooler) gather(width float64) {
	above := make([]float64, len(f.Engines)) // the cheapest of a source, at least
	for e := range above {
		above[e] = math.Inf(1)
	}
	var price []float64
	for s := range f.Sources {
		first := f.Row[s]
		col := f.Col[first:f.Row[s+1]]
		if f.supply[s] <= 0 || len(col) == 0 {
			continue
		}
		cost, scale, least := f.CostMs[first:][:len(col)], f.perWork[s], math.Inf(1)
		price = append(price[:0], cost...)
		for i, e := range col {
			price[i] = price[i]*scale + f.prices[e]
			least = min(least, price[i])
		}
		f.sources, f.first = append(f.sources, int32(s)), append(f.first, len(f.col))
		for i, e := range col {
			above[e] = min(above[e], price[i]-least)
			if price[i] < least+width {
				f.pair, f.col, f.cost = append(f.pair, int32(first+i)), append(f.col, e), append(f.cost, cost[i]*scale)
			}
		}
	}
	f.first = append(f.first, len(f.col))
	f.flow = make([]float64, len(f.col))
	for e, x := range above {
		if x > width && !math.IsInf(x, 1) {
			f.prices[e] -= x
		}
	}
}

// narrow keeps the pairs within width of the cheapest of their source.
func (f *cooler) narrow(width float64) {
	n := 0
	for i := range f.sources {
		from, to, least := f.first[i], f.first[i+1], math.Inf(1)
		for j := from; j < to; j++ {
			least = min(least, f.cost[j]+f.prices[f.col[j]])
		}
		f.first[i] = n
		for j := from; j < to; j++ {
			if f.cost[j]+f.prices[f.col[j]] < least+width {
				f.pair[n], f.col[n], f.cost[n] = f.pair[j], f.col[j], f.cost[j]
				n++
			}
		}
	}
	f.first[len(f.sources)] = n
	f.pair, f.col, f.cost, f.flow = f.pair[:n], f.col[:n], f.cost[:n], f.flow[:n]
}

// choose computes the soft choices at prices, the loads that they and lower
// bounds make, and how these differ from those asked for.
func (f *cooler) choose(prices []float64, t float64) {
	copy(f.load, f.supply[f.engine(0):])
	inverse := 1 / t
	for i, s := range f.sources {
		from, to := f.first[i], f.first[i+1]
		col, cost, flow := f.col[from:to], f.cost[from:to], f.flow[from:to]
		least, sum := math.Inf(1), 0.0
		for j, e := range col {
			flow[j] = cost[j] + prices[e]
			least = min(least, flow[j])
		}
		for j, v := range flow {
			flow[j] = softExp((v - least) * inverse)
			sum += flow[j]
		}
		scale := f.supply[s] / sum
		for j, e := range col {
			flow[j] *= scale
			f.load[e] += flow[j]
		}
	}
	for e, sink := range f.sinks {
		if sink != nil {
			lo, hi, g := sink.load(prices[e])
			f.excess[e], f.growth[e] = min(max(f.load[e], lo), hi)-f.load[e], g
		}
	}
}

// move makes a step, shorter where it would overshoot.
func (f *cooler) move(t float64) {
	f.matrix.set(f, t)
	far := coolStride * t
	f.matrix.solve(f.excess, f.step, far)
	lack, growth := 0.0, 0.0
	for e := range f.step {
		f.step[e] = min(max(f.step[e], -far), far)
		lack -= f.excess[e] + f.growth[e]*f.step[e]
		growth += f.growth[e]
	}
	if growth > 0 { // all loads together stay all supply
		shift := min(max(lack/growth, -far), far)
		for e := range f.step {
			f.step[e] += shift
		}
	}
	slope, length := dot(f.excess, f.step), 1.0
	for range coolTries {
		for e, d := range f.step {
			f.at[e] = f.prices[e] + length*d
		}
		f.choose(f.at, t)
		now := dot(f.excess, f.step)
		if now <= 0 || now < -0.7*slope {
			break
		}
		length *= max(0.1, min(0.5, slope/(slope-now)))
	}
	f.prices, f.at = f.at, f.prices
}

// plan returns the flows that matter.
func (f *cooler) plan() []model.Flow {
	var flows []model.Flow
	for i, s := range f.sources {
		for j := f.first[i]; j < f.first[i+1]; j++ {
			if x := f.flow[j]; x > matter*f.supply[s] || x > matter*f.load[f.col[j]] {
				k := int(f.pair[j])
				flows = append(flows, model.Flow{Pair: k, RPS: x/f.perRPS[s] + f.lower(k)})
			}
		}
	}
	return flows
}
