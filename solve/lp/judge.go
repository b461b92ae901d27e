//go:build cgo

package lp

import (
	"context"
	"errors"
	"math"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/rows"
)

// nearMs is the reduced cost up to which a pair is in the judge's program.
const nearMs = 0.5

// judgeRounds is how often the judge adds pairs that its duals find too cheap:
// where prices are not unique CLP's may be others than the solver's.
const judgeRounds = 6

// Judge asks CLP for its own opinion of an optimum: a dual simplex from scratch
// over the pairs that are used or lose by less than nearMs, with segments that
// narrow towards the loads found. The duals are then priced over all pairs and
// exact delays, so the bound holds whatever the solver of s did.
//
// A program that CLP finds infeasible, or cannot finish, is an error.
func Judge(ctx context.Context, p *model.Problem, s *model.Solution) (Verdict, error) {
	g := rows.New(p, s.ServedRPS)
	in := nearby(g, s)
	grids := gridsAround(g, s, pointGrid)
	v := Verdict{Objective: g.Objective(s.Flows), Bound: math.Inf(-1)}
	widen := false // where CLP leaves too little room, it finds no flows or no good ones
	for range judgeRounds {
		m := newMaster(g, listed(in), grids)
		if widen {
			m.widen()
		}
		err := m.solve(ctx)
		if errors.Is(err, errInfeasible) && !widen {
			widen = true
			continue
		}
		if err != nil {
			if errors.Is(err, errInfeasible) {
				err = errors.New("lp: CLP finds no flows that serve what the plan serves within all limits")
			}
			return v, err
		}
		y := m.prices()
		bound, _ := g.Bound(y)
		v.Found, v.Bound = m.found(y), max(v.Bound, bound)
		v.Gap = rows.Gap(v.Objective, v.Bound)
		v.Agrees = math.Abs(v.Gap) <= JudgeGap && v.Found >= v.Objective*(1-JudgeGap)
		if v.Agrees {
			break
		}
		if !takeNear(g, in, y, m.sourcePrices(), -violationMs) {
			if widen {
				break
			}
			widen = true
		}
	}
	return v, nil
}

// found returns what CLP's own flows cost at exact delays, and by its prices y
// what they miss: it serves and keeps limits within a tolerance of its own, and
// where engines are full what it overlooks may be worth more than JudgeGap.
func (m *master) found(y []float64) float64 {
	flows := m.flows()
	cost := m.g.Objective(flows)
	for j, t := range m.g.Activity(flows) {
		r := &m.g.Rows[j]
		cost += max(0, y[j])*max(0, t-r.Max) - min(0, y[j])*max(0, r.Min-t)
	}
	price := m.sourcePrices()
	routed := make([]float64, len(price))
	s := 0
	for _, f := range flows {
		for f.Pair >= m.g.Row[s+1] {
			s++
		}
		routed[s] += f.RPS
	}
	for s, served := range m.g.Served {
		cost += price[s] * (served - routed[s])
	}
	return cost
}

// nearby returns the pairs that a solution uses, or that lose by little.
func nearby(g *rows.Program, s *model.Solution) []bool {
	in := make([]bool, g.Pairs())
	for _, f := range s.Flows {
		in[f.Pair] = true
	}
	takeNear(g, in, g.RowPrices(s), s.SourcePriceMs, nearMs)
	for k := range in {
		stay, _ := g.StayTerm(k)
		in[k] = in[k] || stay > 0 || (g.Lower != nil && g.Lower[k] > 0)
	}
	return in
}

// takeNear adds the pairs whose price is less than margin above their source's
// and says whether there were any.
func takeNear(g *rows.Program, in []bool, y, sourcePrice []float64, margin float64) (added bool) {
	u := g.UnitPrices(y)
	var prices []float64
	for s := range g.Sources {
		prices = g.PairPrices(s, &u, y, prices)
		for i, price := range prices {
			if k := g.Row[s] + i; !in[k] && price < sourcePrice[s]+margin {
				in[k], added = true, true
			}
		}
	}
	return added
}

func listed(in []bool) (pairs []int) {
	for k := range in {
		if in[k] {
			pairs = append(pairs, k)
		}
	}
	return pairs
}

// gridsAround returns a grid for each delay around its load in a solution.
func gridsAround(g *rows.Program, s *model.Solution, grid func(r *rows.Row, load float64) []float64) [][]float64 {
	loads := g.Activity(s.Flows)
	grids := make([][]float64, len(g.Rows))
	for j := range grids {
		if g.Rows[j].Sink != nil {
			grids[j] = grid(&g.Rows[j], loads[j])
		}
	}
	return grids
}
