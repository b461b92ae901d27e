package interior

import (
	"math"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/rows"
)

const (
	settleRounds = 12
	// Each source spreads over its pairs by exp(-price/temperature), ms.
	firstTemperature, lastTemperature = 40.0, 5.0
)

// settledPrices returns row prices near those of the optimum. They start at
// the one price per kind of content at which all engines together take what is
// demanded (at the optimum nearly all engines share it); then each moves by
// how much the sources, spread softly over their pairs, ask more of its row
// than the row offers at that price (Sinkhorn's steps).
func settledPrices(g *rows.Program) []float64 {
	demand, mean := contents(g)
	y := commonPrices(g, demand)
	damp := 0.7
	if g.Work == model.WorkSplit {
		damp /= 2 // both prices of an engine answer to the same requests
	}
	for round := range settleRounds {
		t := firstTemperature * math.Pow(lastTemperature/firstTemperature, float64(round)/(settleRounds-1))
		load := softLoads(g, y, t)
		for j := range g.Rows[:g.CapRow] {
			r := &g.Rows[j]
			if r.Sink == nil || mean[r.Kind] == 0 {
				continue
			}
			offer, _ := r.Sink.Load(y[j])
			asked := max(load[j], 1e-3*r.Max) / max(offer, 1e-3*r.Max)
			y[j] = max(0, y[j]+damp*t/mean[r.Kind]*math.Log(asked))
		}
	}
	return y
}

// contents returns the demand for each kind of content, and its mean per
// request.
func contents(g *rows.Program) (demand, mean [rows.Kinds]float64) {
	total := 0.0
	for s, served := range g.Served {
		total += served
		for kind := range demand {
			demand[kind] += served * g.Contents[kind][s]
		}
	}
	for kind := range mean {
		mean[kind] = demand[kind] / total
	}
	return demand, mean
}

// commonPrices returns per row the price at which all delays of its kind
// together take the demand for it.
func commonPrices(g *rows.Program, demand [rows.Kinds]float64) []float64 {
	var lo, hi [rows.Kinds]float64
	engineRows := g.Rows[:g.CapRow]
	for j := range engineRows {
		if r := &engineRows[j]; r.Sink != nil {
			last, _ := r.Sink.Marginal(r.Max)
			hi[r.Kind] = max(hi[r.Kind], last)
		}
	}
	for range bisections {
		var load [rows.Kinds]float64
		for j := range engineRows {
			if r := &engineRows[j]; r.Sink != nil {
				t, _ := r.Sink.Load((lo[r.Kind] + hi[r.Kind]) / 2)
				load[r.Kind] += t
			}
		}
		for kind := range load {
			if mid := (lo[kind] + hi[kind]) / 2; load[kind] < demand[kind] {
				lo[kind] = mid
			} else {
				hi[kind] = mid
			}
		}
	}
	y := make([]float64, len(g.Rows))
	for j := range engineRows {
		if r := &engineRows[j]; r.Sink != nil {
			y[j] = hi[r.Kind]
		}
	}
	return y
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
