package interior

import (
	"math"
	"sort"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/rows"
)

const (
	settleRounds = 24
	// Each source spreads over its pairs by exp(-price/temperature), from the
	// first to the last part of how much its pairs differ in the mean.
	firstTemperature, lastTemperature = 0.5, 0.01
	// settleDamping is the part of a step that is taken; with split work half,
	// as two prices of an engine answer to the same requests.
	settleDamping = 0.7
)

// settledPrices returns row prices near those of the optimum. They start at
// the one price of a mean request at which all engines together take what is
// demanded (at the optimum nearly all share it); then each moves by how much
// the sources, spread softly over their pairs, ask more of its row than the row
// offers at that price (Sinkhorn's steps).
func settledPrices(g *rows.Program) []float64 {
	mean, total := meanContents(g)
	y := commonPrices(g, mean, total)
	spread := meanSpread(g)
	if spread == 0 {
		return y
	}
	damping := settleDamping
	if g.Work == model.WorkSplit {
		damping /= 2
	}
	for round := range settleRounds {
		t := spread * firstTemperature * math.Pow(lastTemperature/firstTemperature, float64(round)/(settleRounds-1))
		load := softLoads(g, y, t)
		for j := range g.Rows[:g.CapRow] {
			r := &g.Rows[j]
			if mean[r.Kind] == 0 || r.Max <= 0 || unpriced(r) {
				continue
			}
			least := 1e-3 * r.Max
			asked := max(load[j], least) / max(offer(r, y[j]), least)
			y[j] = max(0, y[j]+damping*t/mean[r.Kind]*math.Log(asked))
		}
	}
	return y
}

// unpriced says whether the delay of a row of split work never grows: what
// limits such an engine is its joint limit, a row of its own.
func unpriced(r *rows.Row) bool {
	if r.Sink == nil || r.Kind == rows.Work {
		return false
	}
	last, _ := r.Sink.Marginal(r.Max)
	return last == 0
}

// offer returns the activity at which a price is a row's marginal cost.
func offer(r *rows.Row, price float64) float64 {
	if r.Sink == nil {
		return r.Max
	}
	t, _ := r.Sink.Load(price)
	return min(t, r.Max)
}

// meanContents returns the contents of the mean request and the demand for it
// in req/s.
func meanContents(g *rows.Program) (mean [rows.Kinds]float64, total float64) {
	for s, served := range g.Served {
		total += served
		for kind := range mean {
			mean[kind] += served * g.Contents[kind][s]
		}
	}
	for kind := range mean {
		mean[kind] /= total
	}
	return mean, total
}

// curve is the marginal cost in ms of mean requests on an engine, sampled at
// loads in req/s up to the most it takes.
type curve struct{ load, ms []float64 }

const curvePoints = 32

func newCurve(g *rows.Program, e int, mean [rows.Kinds]float64) curve {
	most := math.Inf(1)
	for _, entry := range g.Entries[e] {
		if m := mean[entry.Kind]; int(entry.Row) < g.CapRow && m > 0 {
			most = min(most, g.Rows[entry.Row].Max/m)
		}
	}
	if math.IsInf(most, 1) {
		most = 0
	}
	var c curve
	for i := range curvePoints + 1 {
		load := most * float64(i) / curvePoints
		c.load = append(c.load, load)
		c.ms = append(c.ms, marginal(g, e, mean, load))
	}
	return c
}

// marginal returns what one more mean request costs engine e at a load.
func marginal(g *rows.Program, e int, mean [rows.Kinds]float64, load float64) (ms float64) {
	for _, entry := range g.Entries[e] {
		if r := &g.Rows[entry.Row]; r.Sink != nil {
			left, _ := r.Sink.Marginal(min(load*mean[entry.Kind], r.Max))
			ms += mean[entry.Kind] * left
		}
	}
	return ms
}

// at returns the load that an engine offers at a price.
func (c *curve) at(price float64) float64 {
	i := sort.SearchFloat64s(c.ms, price)
	switch {
	case i == len(c.ms):
		return c.load[i-1]
	case i == 0:
		return 0
	}
	return c.load[i-1] + (c.load[i]-c.load[i-1])*(price-c.ms[i-1])/(c.ms[i]-c.ms[i-1])
}

// rowPrices sets the prices of an engine's rows: its marginal delays at the
// load offered, and on a row that has none what the price is above them.
func (c *curve) rowPrices(g *rows.Program, e int, mean [rows.Kinds]float64, price float64, y []float64) {
	load := c.at(price)
	above := max(0, price-marginal(g, e, mean, load))
	for _, entry := range g.Entries[e] {
		j, m := entry.Row, mean[entry.Kind]
		if r := &g.Rows[j]; r.Sink != nil {
			y[j], _ = r.Sink.Marginal(min(load*m, r.Max))
		}
		if int(j) < g.CapRow && entry.Kind == rows.Work && m > 0 {
			y[j] += above / m
		}
	}
}

// commonPrices returns the row prices at which one more mean request costs the
// same on all engines, and they together take the demand in req/s.
func commonPrices(g *rows.Program, mean [rows.Kinds]float64, demand float64) []float64 {
	curves := make([]curve, len(g.Engines))
	lo, hi := 0.0, 0.0
	for e := range curves {
		curves[e] = newCurve(g, e, mean)
		hi = max(hi, curves[e].ms[curvePoints])
	}
	for range bisections {
		mid, offered := (lo+hi)/2, 0.0
		for e := range curves {
			offered += curves[e].at(mid)
		}
		if offered < demand {
			lo = mid
		} else {
			hi = mid
		}
	}
	y := make([]float64, len(g.Rows))
	for e := range curves {
		curves[e].rowPrices(g, e, mean, hi, y)
	}
	return y
}

// meanSpread returns how much dearer a source's mean pair is than its cheapest.
func meanSpread(g *rows.Program) (ms float64) {
	total := 0.0
	for s, served := range g.Served {
		costs := g.CostMs[g.Row[s]:g.Row[s+1]]
		if len(costs) == 0 {
			continue
		}
		sum, least := 0.0, math.Inf(1)
		for _, c := range costs {
			sum += c
			least = min(least, c)
		}
		ms += served * (sum/float64(len(costs)) - least)
		total += served
	}
	return ms / total
}

// softLoads returns the load of engine rows if every source spreads over its
// pairs by exp(-price/temperature).
func softLoads(g *rows.Program, y []float64, temperature float64) []float64 {
	const negligible = 12 // exp(-12) = 6e-6
	u := g.UnitPrices(y)
	var in rows.Prices
	for kind := range in {
		in[kind] = make([]float64, len(g.Engines))
	}
	var weight []float64
	for s, served := range g.Served {
		weight = g.PairPrices(s, &u, y, weight)
		least, sum := math.Inf(1), 0.0
		for _, price := range weight {
			least = min(least, price)
		}
		for i, price := range weight {
			weight[i] = 0
			if d := (price - least) / temperature; d < negligible {
				weight[i] = math.Exp(-d)
				sum += weight[i]
			}
		}
		for i, w := range weight {
			if w > 0 {
				for kind := range in {
					in[kind][g.Col[g.Row[s]+i]] += served * w / sum * g.Contents[kind][s]
				}
			}
		}
	}
	load := make([]float64, len(g.Rows))
	for e, entries := range g.Entries {
		for _, entry := range entries {
			load[entry.Row] += in[entry.Kind][e]
		}
	}
	return load
}
