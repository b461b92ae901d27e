package certify

import (
	"math"
	"sort"

	"github.com/irb-project/irb/solve/model"
)

// pass is the work space of one thread in the pass over the sources.
type pass struct {
	*checker
	fill knapsack
	// Of the source at hand, by engine; zero between sources.
	groupPrices []float64 // sum of the prices of its groups
	flowOn      []float64 // its flow
}

func newPass(c *checker) *pass {
	w := &pass{checker: c}
	if c.groupsOf != nil {
		w.groupPrices = make([]float64, len(c.p.Engines))
		w.flowOn = make([]float64, len(c.p.Engines))
	}
	return w
}

// block adds the sources from <= s < to.
func (w *pass) block(from, to int, t *totals) {
	all := w.s.Flows
	i := sort.Search(len(all), func(i int) bool { return all[i].Pair >= w.p.Row[from] })
	for s := from; s < to; s++ {
		j := i
		for j < len(all) && all[j].Pair < w.p.Row[s+1] {
			j++
		}
		w.flows(s, all[i:j], t)
		w.bound(s, t)
		i = j
	}
}

// flows adds what the flows of source s cost, and checks its rows.
func (w *pass) flows(s int, flows []model.Flow, t *totals) {
	p := w.p
	src, served := &p.Sources[s], w.s.ServedRPS[s]
	var routed, size sum
	for _, f := range flows {
		t.latency.add(p.CostMs[f.Pair] * f.RPS)
		routed.add(f.RPS)
		size.add(math.Abs(f.RPS))
		t.worst.atMost(row{rowFlow, s, f.Pair}, -f.RPS, 0, w.totalRPS)
		if p.Upper != nil {
			t.worst.atMost(row{rowMaxShare, s, f.Pair}, f.RPS, p.Upper[f.Pair], w.totalRPS)
		}
	}
	t.worst.equal(row{kind: rowServed, i: s}, routed.value(), served, size.value(), w.totalRPS)
	demand := row{kind: rowDemand, i: s}
	if p.Shed {
		t.worst.atMost(demand, served, src.DemandRPS, w.totalRPS)
		t.worst.atMost(demand, -served, 0, w.totalRPS)
	} else {
		t.worst.equal(demand, served, src.DemandRPS, math.Abs(served), w.totalRPS)
	}
	if p.Lower != nil || p.Stay != nil {
		w.everyPair(s, flows, t)
	}
	if len(w.groupsIn(s)) > 0 {
		w.groups(s, flows, t)
	}
}

// everyPair checks and adds what concerns pairs without flow too.
func (w *pass) everyPair(s int, flows []model.Flow, t *totals) {
	p, i := w.p, 0
	for k := p.Row[s]; k < p.Row[s+1]; k++ {
		x := 0.0
		if i < len(flows) && flows[i].Pair == k {
			x = flows[i].RPS
			i++
		}
		if p.Lower != nil {
			t.worst.atMost(row{rowMinShare, s, k}, -x, -p.Lower[k], w.totalRPS)
		}
		if p.Stay != nil && p.Stay[k] > x {
			t.churn.add(p.StayPenaltyMs[k] * (p.Stay[k] - x))
		}
	}
}

func (w *pass) groups(s int, flows []model.Flow, t *totals) {
	for _, f := range flows {
		w.flowOn[w.p.Col[f.Pair]] = f.RPS
	}
	for _, g := range w.groupsIn(s) {
		var in sum
		for _, e := range w.p.Groups[g].Engines {
			in.add(w.flowOn[e])
		}
		t.worst.atMost(row{kind: rowGroup, i: g}, in.value(), w.p.Groups[g].MaxRPS, w.totalRPS)
		t.worst.atMost(row{kind: rowGroup, i: g}, -in.value(), -w.p.Groups[g].MinRPS, w.totalRPS)
	}
	for _, f := range flows {
		w.flowOn[w.p.Col[f.Pair]] = 0
	}
}

// bound adds h_s, the least that source s costs at the prices, and compares its
// published price.
func (w *pass) bound(s int, t *totals) {
	served := w.s.ServedRPS[s]
	var lo, hi float64
	if w.p.Upper == nil && w.p.Lower == nil && w.p.Stay == nil && (w.priced == nil || !w.priced[s]) {
		lo = w.cheapest(s)
		hi = lo
		if served > 0 && !math.IsInf(lo, 0) { // without a pair: its row tells
			t.addBound(lo * served)
		}
	} else {
		var h sum
		h, lo, hi = w.bounded(s)
		t.bound.merge(h)
		t.gross.add(math.Abs(h.value()))
	}
	price := w.s.SourcePriceMs[s]
	off := max(lo-price, price-hi)
	if served > 0 && off > 0 && !math.IsInf(off, 0) {
		cost := off * served
		t.mispriced.add(cost)
		t.price.keep(mispricing{source: s, cost: cost, got: price, least: lo, up: hi})
	}
}

// cheapest returns the least r_k of source s: all of a knapsack without bounds.
// This loop sees every pair of a dense program once; it is what a certificate
// costs.
func (w *pass) cheapest(s int) float64 {
	from, to := w.p.Row[s], w.p.Row[s+1]
	cost, col := w.p.CostMs[from:to], w.p.Col[from:to]
	src := &w.p.Sources[s]
	least := math.Inf(1)
	if w.prefill == nil {
		for k, e := range col {
			if r := cost[k] + src.Work*w.workPrice[e]; r < least {
				least = r
			}
		}
		return least
	}
	for k, e := range col {
		r := cost[k] + src.Work*w.workPrice[e] + src.PromptTokens*w.prefill[e] + src.OutputTokens*w.output[e]
		if r < least {
			least = r
		}
	}
	return least
}

// bounded returns h_s of a source with bounds, stay terms or priced groups. A
// pair is its least flow and up to two segments beyond: up to Stay each req/s
// also saves the penalty of leaving.
func (w *pass) bounded(s int) (h sum, lo, hi float64) {
	p := w.p
	served := w.s.ServedRPS[s]
	need := served
	if p.Lower != nil {
		for k := p.Row[s]; k < p.Row[s+1]; k++ {
			need -= p.Lower[k]
		}
	}
	w.setGroupPrices(s, 1)
	w.fill.reset(max(0, need))
	src := &p.Sources[s]
	for k := p.Row[s]; k < p.Row[s+1]; k++ {
		e := p.Col[k]
		cost := p.CostMs[k] + src.Work*w.workPrice[e]
		if w.prefill != nil {
			cost += src.PromptTokens*w.prefill[e] + src.OutputTokens*w.output[e]
		}
		if w.groupPrices != nil {
			cost += w.groupPrices[e]
		}
		from, to := 0.0, 2*served // room for one more beyond served, whatever Upper allows
		if p.Lower != nil {
			from = p.Lower[k]
		}
		if p.Upper != nil {
			to = min(to, p.Upper[k])
		}
		if from > 0 {
			h.add(cost * from)
		}
		if p.Stay != nil && p.StayPenaltyMs[k] > 0 && p.Stay[k] > from {
			penalty := p.StayPenaltyMs[k]
			h.add(penalty * (p.Stay[k] - from))
			kink := min(p.Stay[k], to)
			w.fill.add(cost-penalty, kink-from)
			from = max(from, kink)
		}
		w.fill.add(cost, to-from)
	}
	w.setGroupPrices(s, 0)
	rest, lo, hi := w.fill.fill()
	h.merge(rest)
	return h, lo, hi
}

// setGroupPrices adds the prices of the groups of source s to groupPrices, or
// with factor 0 clears them.
func (w *pass) setGroupPrices(s int, factor float64) {
	for _, g := range w.groupsIn(s) {
		price := w.groupPrice(g)
		for _, e := range w.p.Groups[g].Engines {
			w.groupPrices[e] = factor * (w.groupPrices[e] + price)
		}
	}
}
