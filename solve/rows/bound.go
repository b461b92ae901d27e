package rows

import (
	"cmp"
	"math"
	"slices"
)

// Prices is what a request pays on an engine per unit of each kind of content.
type Prices [Kinds][]float64

// UnitPrices sums row prices y into prices per engine and kind.
func (g *Program) UnitPrices(y []float64) Prices {
	var u Prices
	for kind := range u {
		u[kind] = make([]float64, len(g.Engines))
	}
	for e, entries := range g.Entries {
		for _, entry := range entries {
			u[entry.Kind][e] += y[entry.Row]
		}
	}
	return u
}

// PairPrice returns the cost of one request on pair k of source s at prices,
// before the stay term: CostMs + sum_j a_jk y_j, in ms.
func (g *Program) PairPrice(k, s int, u *Prices, y []float64) float64 {
	e := g.Col[k]
	c := g.CostMs[k] + g.Contents[Work][s]*u[Work][e]
	if u[Prompt] != nil {
		c += g.Contents[Prompt][s]*u[Prompt][e] + g.Contents[Output][s]*u[Output][e]
	}
	for _, j := range g.PairGroups(k) {
		c += y[j]
	}
	return c
}

// Conjugate returns phi*_j(y) = max over t in [Min, Max] of y t - phi_j(t).
func (r *Row) Conjugate(y float64) float64 {
	switch {
	case r.Sink != nil && y <= 0:
		return y * r.Min
	case r.Sink != nil:
		t, _ := r.Sink.Load(y)
		t = min(t, r.Max)
		return max(0, y*t-r.Sink.Value(t))
	case y > 0:
		return y * r.Max
	default:
		return y * r.Min
	}
}

// Clean makes row prices valid ones: 0 where the row has no limit on the side
// that the price is for, or is not finite.
func (g *Program) Clean(y []float64) {
	for j := range y {
		r := &g.Rows[j]
		bad := math.IsNaN(y[j]) || math.IsInf(y[j], 0)
		if bad || (y[j] < 0 && r.Min <= 0) || (y[j] > 0 && math.IsInf(r.Max, 1)) {
			y[j] = 0
		}
	}
}

// Bound returns the Lagrangian lower bound of the objective at row prices y,
//
//	L(y) = sum_s min{ sum_k g_k(x_k) + a_k'y x_k : sum x = d_s, x in bounds }
//	       - sum_j phi*_j(y_j)
//
// and the price of each source, the cost of its last request in that minimum.
// Any y gives a valid bound; it is the optimum at optimal prices. A source
// whose pairs cannot carry its demand makes the bound +Inf: no flows exist.
func (g *Program) Bound(y []float64) (bound float64, sourcePrice []float64) {
	u := g.UnitPrices(y)
	sourcePrice = make([]float64, len(g.Sources))
	var steps []step
	for s := range g.Sources {
		var value float64
		switch {
		case g.Served[s] == 0: // all shed: the price of a first request
			sourcePrice[s] = g.cheapest(s, &u, y)
		case g.Lower == nil && g.Upper == nil && g.Stay == nil:
			sourcePrice[s] = g.cheapest(s, &u, y)
			value = g.Served[s] * sourcePrice[s]
		default:
			steps = steps[:0]
			value, sourcePrice[s] = g.fill(s, &u, y, steps)
		}
		bound += value
	}
	for j := range g.Rows {
		bound -= g.Rows[j].Conjugate(y[j])
	}
	return bound, sourcePrice
}

// cheapest returns the lowest price of a source without bounds or stay terms.
func (g *Program) cheapest(s int, u *Prices, y []float64) float64 {
	best := math.Inf(1)
	for k := g.Row[s]; k < g.Row[s+1]; k++ {
		best = min(best, g.PairPrice(k, s, u, y))
	}
	return best
}

// step is a stretch of g_k + a_k'y x: width req/s at slope ms each.
type step struct{ slope, width float64 }

// fill serves source s at least cost: each pair at its lower bound, then the
// steps by slope. It returns the cost and the slope of the last step used.
func (g *Program) fill(s int, u *Prices, y []float64, steps []step) (value, price float64) {
	left := g.Served[s]
	for k := g.Row[s]; k < g.Row[s+1]; k++ {
		c := g.PairPrice(k, s, u, y)
		lo, hi := g.Bounds(k, s)
		stay, penalty := g.StayTerm(k)
		value += c*lo + penalty*max(0, stay-lo)
		left -= lo
		knee := min(max(stay, lo), hi)
		if knee > lo {
			steps = append(steps, step{c - penalty, knee - lo})
		}
		if hi > knee {
			steps = append(steps, step{c, hi - knee})
		}
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.slope, b.slope) })
	rounding := 1e-12 * g.Served[s]
	if left < -rounding {
		return math.Inf(1), math.Inf(1)
	}
	for _, st := range steps {
		price = st.slope
		if left <= st.width {
			return value + st.slope*left, price
		}
		value += st.slope * st.width
		left -= st.width
	}
	if left > rounding {
		return math.Inf(1), math.Inf(1)
	}
	return value, price
}
