package rows

import (
	"cmp"
	"math"
	"slices"

	"github.com/irb-project/irb/solve/model"
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

// PairPrices sets dst to the cost of one request on each pair of source s at
// prices, before the stay term: CostMs + sum_j a_jk y_j, in ms. It allocates
// nothing if dst has room.
func (g *Program) PairPrices(s int, u *Prices, y, dst []float64) []float64 {
	first, end := g.Row[s], g.Row[s+1]
	dst = append(dst[:0], g.CostMs[first:end]...)
	engines := g.Col[first:end]
	w, workPrice := g.Contents[Work][s], u[Work]
	if g.Problem.Work == model.WorkSplit {
		q, promptPrice := g.Contents[Prompt][s], u[Prompt]
		o, outputPrice := g.Contents[Output][s], u[Output]
		for i, e := range engines {
			dst[i] += q*promptPrice[e] + o*outputPrice[e] + w*workPrice[e]
		}
	} else {
		for i, e := range engines {
			dst[i] += w * workPrice[e]
		}
	}
	if g.groupStart != nil {
		for i := range dst {
			for _, j := range g.PairGroups(first + i) {
				dst[i] += y[j]
			}
		}
	}
	return dst
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
	var prices []float64
	for s, served := range g.Served {
		prices = g.PairPrices(s, &u, y, prices)
		if g.Lower == nil && g.Upper == nil && g.Stay == nil {
			sourcePrice[s] = math.Inf(1)
			for _, price := range prices {
				sourcePrice[s] = min(sourcePrice[s], price)
			}
			if served > 0 {
				bound += served * sourcePrice[s]
			}
			continue
		}
		var value float64
		value, sourcePrice[s] = g.fill(s, prices, &steps)
		bound += value
	}
	for j := range g.Rows {
		bound -= g.Rows[j].Conjugate(y[j])
	}
	return bound, sourcePrice
}

// step is a stretch of g_k + a_k'y x: width req/s at slope ms each.
type step struct{ slope, width float64 }

// fill serves source s at least cost: each pair at its lower bound, then the
// steps by slope. It returns the cost and the slope of the last step used.
func (g *Program) fill(s int, prices []float64, buffer *[]step) (value, price float64) {
	left, steps := g.Served[s], (*buffer)[:0]
	for i, c := range prices {
		k := g.Row[s] + i
		lo, hi := g.Bounds(k, s)
		if g.Upper == nil || g.Upper[k] > hi {
			hi = math.Inf(1) // room for one more than is served: its price
		}
		stay, penalty := g.StayTerm(k)
		value += c*lo + penalty*max(0, stay-lo)
		left -= lo
		knee := min(max(stay, lo), hi)
		if penalty > 0 && knee > lo {
			steps = append(steps, step{c - penalty, knee - lo})
			lo = knee
		}
		if hi > lo {
			steps = append(steps, step{c, hi - lo})
		}
	}
	*buffer = steps
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.slope, b.slope) })
	rounding := 1e-12 * g.Served[s]
	if left < -rounding {
		return math.Inf(1), math.Inf(1)
	}
	for _, st := range steps {
		price = st.slope
		if left <= st.width+rounding {
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
