package interior

import (
	"math"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/rows"
)

// vanishing is the ratio of a flow to its multiplier, both scaled, below which
// the flow is on its way to 0. One near 1 is degenerate and may stay.
const vanishing = 1e-3

// leastShare is the share of a source below which a flow is rounding: weights
// are quotas of 2^32, in which it would be nothing, yet it would stand among
// the weights at a cost that is not the source's price.
const leastShare = 1.0 / (1 << 33)

// prices returns the row prices of a point in ms per unit. A row multiplier is
// the change of the objective by the row's right side, and one more unit of
// activity costs minus that. A row that no pair of the program loads asks the
// marginal delay at 0.
func (b *program) prices(pt *point) []float64 {
	y := make([]float64, len(b.g.Rows))
	for j := range y {
		if b.touched[b.row(j)] {
			y[j] = -pt.lambda[b.row(j)] * b.worth / b.unit[j]
		} else if sink := b.g.Rows[j].Sink; sink != nil && b.goal.latency {
			_, y[j] = sink.Marginal(0)
		}
	}
	b.g.Clean(y)
	return y
}

// sourcePrices returns what one more request of each source costs in ms.
func (b *program) sourcePrices(pt *point) []float64 {
	price := make([]float64, len(b.g.Sources))
	for s, served := range b.g.Served {
		if served > 0 {
			price[s] = pt.lambda[s]*b.worth/served + b.least[s]
		}
	}
	return price
}

// flows returns the flows of a point. Those below a part of their multiplier
// are left out, and the rest of their source takes them over.
func (b *program) flows(pt *point, part float64) []model.Flow {
	var flows []model.Flow
	var of []int // source of each flow
	fixed := b.fixed
	for i := 0; i < len(b.parts); {
		p := b.parts[i]
		for len(fixed) > 0 && fixed[0].pair < p.pair {
			flows = append(flows, model.Flow{Pair: fixed[0].pair, RPS: fixed[0].lo})
			of = append(of, fixed[0].source)
			fixed = fixed[1:]
		}
		x, gone := p.lo/b.g.Served[p.source], p.lo == 0 && pt.v[p.variable] <= part*pt.z[p.variable]
		if len(fixed) > 0 && fixed[0].pair == p.pair {
			fixed = fixed[1:]
		}
		for ; i < len(b.parts) && b.parts[i].pair == p.pair; i++ {
			x += pt.v[b.parts[i].variable]
		}
		if !gone && (p.lo > 0 || x > leastShare) {
			flows = append(flows, model.Flow{Pair: p.pair, RPS: x * b.g.Served[p.source]})
			of = append(of, p.source)
		}
	}
	for _, p := range fixed {
		flows = append(flows, model.Flow{Pair: p.pair, RPS: p.lo})
		of = append(of, p.source)
	}
	b.balance(flows, of)
	return flows
}

// balance makes the flows of each source sum to what it serves: what rounding
// left is spread over them by their room to the bound in that direction.
func (b *program) balance(flows []model.Flow, of []int) {
	for first, end := 0, 0; first < len(flows); first = end {
		s := of[first]
		left := b.g.Served[s]
		for ; end < len(flows) && of[end] == s; end++ {
			left -= flows[end].RPS
		}
		total := 0.0
		for i := first; i < end; i++ {
			total += b.room(flows[i], s, left)
		}
		if total < math.Abs(left) {
			left = math.Copysign(total, left)
		}
		for i := first; i < end && total > 0; i++ {
			flows[i].RPS += left * b.room(flows[i], s, left) / total
		}
	}
}

// room returns how far a flow is from its bound in the direction of change.
func (b *program) room(f model.Flow, s int, change float64) float64 {
	lo, hi := b.g.Bounds(f.Pair, s)
	if change > 0 {
		return max(0, hi-f.RPS)
	}
	return max(0, f.RPS-lo)
}

// shortShare returns the part of all work that is shed. A variable below its
// multiplier is on its way to 0.
func (b *program) shortShare(pt *point) float64 {
	short, total := 0.0, 0.0
	for s, served := range b.g.Served {
		work := served * b.g.Contents[rows.Work][s]
		total += work
		if v := b.shed[s]; v >= 0 && pt.v[v] > pt.z[v] {
			short += pt.v[v] * work
		}
	}
	return short / total
}
