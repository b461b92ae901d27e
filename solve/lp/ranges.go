//go:build cgo

package lp

import (
	"context"
	"errors"
	"math"
	"runtime"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/rows"
)

// rangeSpan is the width of the segments around a load, as a part of the row's
// maximum, in the program that is ranged. Narrow ones would only say how far a
// figure may change before the load leaves its segment.
const rangeSpan = 0.4

// Ranges asks CLP how far the latency of each pair near the plan and the limit
// of each full engine may change before its basis does. All pairs of source count
// as near.
func Ranges(ctx context.Context, p *model.Problem, s *model.Solution, source int) (*Ranging, error) {
	g := rows.New(p, s.ServedRPS)
	near := nearby(g, s)
	for k := p.Row[source]; k < p.Row[source+1]; k++ {
		near[k] = true
	}
	grids := gridsAround(g, s, func(r *rows.Row, load float64) []float64 { return focusedGrid(r, load, rangeSpan*r.Max) })
	m := newMaster(g, listed(near), grids)
	if err := m.solve(ctx); err != nil {
		return nil, err
	}
	out := &Ranging{}
	var err error
	if out.Routes, err = m.routeRanges(); err != nil {
		return nil, err
	}
	out.Limits, err = m.limitRanges()
	return out, err
}

// errRanging is CLP's refusal to range a basis.
var errRanging = errors.New("lp: CLP cannot range its basis")

// routeRanges ranges the cost of all pair columns. Where a pair has two, for
// its stay term, the one that carries its last flow counts.
func (m *master) routeRanges() ([]RouteRange, error) {
	which := make([]int, len(m.columns))
	for i := range which {
		which[i] = i
	}
	up, down, err := m.answer.costRange(which)
	if err != nil {
		return nil, err
	}
	var routes []RouteRange
	for i, c := range m.columns {
		now := m.g.CostMs[c.pair]
		used := m.answer.X[i] > 0
		r := RouteRange{Pair: c.pair, Used: used, NowMs: now, LowMs: now - down[i], HighMs: math.Inf(1)}
		if used {
			r.HighMs = now + up[i]
		}
		if n := len(routes); n > 0 && routes[n-1].Pair == c.pair {
			if used {
				routes[n-1] = r
			}
			continue
		}
		routes = append(routes, r)
	}
	return routes, nil
}

// limitRanges ranges the limit of each engine that is at it: the last segment
// of its delay, or its limit row for split work.
func (m *master) limitRanges() ([]LimitRange, error) {
	var ranges []LimitRange
	var which, row []int
	for e, entries := range m.g.Entries {
		for _, entry := range entries {
			j := int(entry.Row)
			if j >= m.g.CapRow || entry.Kind != rows.Work {
				continue // a cap, or the tokens of split work
			}
			if column, full := m.limitColumn(j); full {
				ranges = append(ranges, LimitRange{Engine: e, Now: m.g.Rows[j].Max})
				which = append(which, column)
				row = append(row, j)
			}
		}
	}
	up, down, err := m.answer.valueRange(which)
	if err != nil {
		return nil, err
	}
	for i := range ranges {
		unit := m.unit[row[i]]
		ranges[i].Low = max(0, ranges[i].Now-down[i]*unit)
		ranges[i].High = ranges[i].Now + up[i]*unit
	}
	return ranges, nil
}

// limitColumn returns the column whose upper bound is the limit of row j, and
// whether it is there. CLP numbers the slacks of rows after the columns.
func (m *master) limitColumn(j int) (column int, full bool) {
	const rounding = 1e-7
	r := &m.g.Rows[j]
	if r.Sink == nil {
		row := len(m.g.Sources) + j
		limit := m.lin.RowHi[row]
		return len(m.lin.Cost) + row, limit > 0 && m.answer.RowValue[row] >= limit*(1-rounding)
	}
	column = m.lastSegment[j]
	return column, m.answer.X[column] >= m.lin.ColHi[column]*(1-rounding)
}

// costRange returns by how much the cost of columns may rise and fall before
// the basis changes.
func (a *answer) costRange(which []int) (up, down []float64, err error) {
	n := len(which)
	up, down = make([]float64, n), make([]float64, n)
	if n == 0 { // CLP's binding panics on none
		return up, down, nil
	}
	in, out := make([]int, n), make([]int, n)
	if a.simplex.DualRanging(n, which, up, in, down, out, nil, nil) != 0 {
		return nil, nil, errRanging
	}
	runtime.KeepAlive(a)
	endless(up)
	endless(down)
	return up, down, nil
}

// valueRange returns by how much the value of columns may rise and fall before
// the basis changes.
func (a *answer) valueRange(which []int) (up, down []float64, err error) {
	n := len(which)
	up, down = make([]float64, n), make([]float64, n)
	if n == 0 {
		return up, down, nil
	}
	in, out := make([]int, n), make([]int, n)
	if a.simplex.PrimalRanging(n, which, up, in, down, out) != 0 {
		return nil, nil, errRanging
	}
	runtime.KeepAlive(a)
	endless(up)
	endless(down)
	return up, down, nil
}

// endless turns CLP's largest number into what it stands for.
func endless(ranges []float64) {
	for i, r := range ranges {
		if r >= 1e30 {
			ranges[i] = math.Inf(1)
		}
	}
}
