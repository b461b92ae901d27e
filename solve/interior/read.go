package interior

import (
	"math"

	"github.com/irb-project/irb/solve/model"
)

// vanishing is the ratio of a flow to its multiplier, both scaled, below which
// the flow is on its way to 0. One near 1 is degenerate and may stay.
const vanishing = 1e-3

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
		if !gone {
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
// left is spread over those that are at no bound, by size.
func (b *program) balance(flows []model.Flow, of []int) {
	for first, end := 0, 0; first < len(flows); first = end {
		s := of[first]
		sum, free := 0.0, 0.0
		for ; end < len(flows) && of[end] == s; end++ {
			sum += flows[end].RPS
			if b.between(flows[end], s) {
				free += flows[end].RPS
			}
		}
		left := b.g.Served[s] - sum
		for i := first; i < end; i++ {
			if b.between(flows[i], s) {
				_, hi := b.g.Bounds(flows[i].Pair, s)
				flows[i].RPS = min(hi, flows[i].RPS*(1+left/free))
			}
		}
	}
}

// between says whether a flow is strictly between its bounds.
func (b *program) between(f model.Flow, s int) bool {
	lo, hi := b.g.Bounds(f.Pair, s)
	if hi >= b.g.Served[s] {
		hi = math.Inf(1)
	}
	return f.RPS > lo && f.RPS < hi
}

// shedShare returns the largest fraction of its demand that a source sheds. A
// variable below its multiplier is on its way to 0.
func (b *program) shedShare(pt *point) (worst float64) {
	for _, v := range b.shed {
		if v >= 0 && pt.v[v] > pt.z[v] {
			worst = max(worst, pt.v[v])
		}
	}
	return worst
}
