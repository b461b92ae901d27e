package rows

import (
	"math"

	"github.com/irb-project/irb/solve/model"
)

// Solution returns flows and row prices y as a model.Solution, with the source
// prices that the bound has at y. Prices that cannot be valid are cleaned.
func (g *Program) Solution(method string, iterations int, flows []model.Flow, y []float64) *model.Solution {
	g.Clean(y)
	_, sourcePrice := g.Bound(y)
	sol := &model.Solution{
		Method: method, Iterations: iterations, Flows: flows,
		ServedRPS: g.Served, SourcePriceMs: sourcePrice,
		EnginePrice:  make([]float64, len(g.Engines)),
		CapPrice:     y[g.CapRow:g.GroupRow:g.GroupRow],
		GroupPriceMs: y[g.GroupRow:],
	}
	if g.Work == model.WorkSplit {
		sol.PrefillPrice = make([]float64, len(g.Engines))
		sol.OutputPrice = make([]float64, len(g.Engines))
	}
	for e := range g.Engines {
		for _, entry := range g.engineRows(e) {
			priceOf(sol, entry.Kind)[e] = y[entry.Row]
		}
	}
	return sol
}

// RowPrices is the inverse of Solution: the row prices that sol carries.
func (g *Program) RowPrices(sol *model.Solution) []float64 {
	y := make([]float64, len(g.Rows))
	for e := range g.Engines {
		for _, entry := range g.engineRows(e) {
			y[entry.Row] = priceOf(sol, entry.Kind)[e]
		}
	}
	copy(y[g.CapRow:], sol.CapPrice)
	copy(y[g.GroupRow:], sol.GroupPriceMs)
	return y
}

// engineRows returns the entries of an engine's own rows, caps left out.
func (g *Program) engineRows(e int) []Entry {
	n := 0
	for n < len(g.Entries[e]) && int(g.Entries[e][n].Row) < g.CapRow {
		n++
	}
	return g.Entries[e][:n]
}

func priceOf(sol *model.Solution, kind Kind) []float64 {
	switch kind {
	case Prompt:
		return sol.PrefillPrice
	case Output:
		return sol.OutputPrice
	default:
		return sol.EnginePrice
	}
}

// Gap returns the gap between an objective and a lower bound of it, relative
// to the objective.
func Gap(objective, bound float64) float64 {
	if objective == bound { // also 0 and 0
		return 0
	}
	return (objective - bound) / math.Abs(objective)
}
