//go:build cgo

package lp

import (
	"context"
	"math"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/rows"
)

// master is the program with each delay replaced by its chords between the
// points of a grid, over some of the pairs. A chord lies above a convex
// function, so what is feasible here is feasible, at no more than this cost.
//
// CLP's tolerances are absolute, 1e-7, so everything is scaled: flows by the
// mean demand, each row by a typical activity; prices stay in ms.
type master struct {
	g    *rows.Program
	flow float64   // req/s of one unit of a pair column
	unit []float64 // per row, activity of one unit

	lin         *linear
	columns     []column // pair columns, in order of pair; segments follow
	lastSegment []int    // per row, the column of its last segment
	answer      *answer
}

// column is what a column of pairs carries: a pair with a stay term has two.
type column struct{ pair, source int }

// newMaster builds the program over pairs (ascending) and the grid of each row.
func newMaster(g *rows.Program, pairs []int, grids [][]float64) *master {
	m := &master{g: g, lin: newLinear(len(g.Sources) + len(g.Rows))}
	m.scale()
	for s, served := range g.Served {
		m.lin.RowLo[s] = served / m.flow
		m.lin.RowHi[s] = served / m.flow
	}
	m.lastSegment = make([]int, len(g.Rows))
	s := 0
	for _, k := range pairs {
		for k >= g.Row[s+1] {
			s++
		}
		m.addPair(k, s)
	}
	for j := range g.Rows {
		m.addRow(j, grids[j])
	}
	return m
}

// scale takes the mean demand as the unit of flow, and its mean content as the
// unit of each row.
func (m *master) scale() {
	total, n := 0.0, 0
	var content [rows.Kinds]float64
	for s, served := range m.g.Served {
		if served > 0 {
			n++
			total += served
			for kind := range content {
				content[kind] += served * m.g.Contents[kind][s]
			}
		}
	}
	m.flow = total / float64(max(n, 1))
	if m.flow == 0 {
		m.flow = 1
	}
	m.unit = make([]float64, len(m.g.Rows))
	for j := range m.unit {
		m.unit[j] = m.flow
		if c := content[m.g.Rows[j].Kind]; j < m.g.GroupRow && c > 0 {
			m.unit[j] = c / float64(n)
		}
	}
}

func (m *master) addPair(k, s int) {
	lo, hi := m.g.Bounds(k, s)
	if hi <= 0 || hi < lo {
		return
	}
	stay, penalty := m.g.StayTerm(k)
	if knee := min(max(stay, lo), hi); penalty > 0 && knee > lo && knee < hi {
		m.addPairColumn(k, s, m.g.CostMs[k]-penalty, lo, knee)
		m.addPairColumn(k, s, m.g.CostMs[k], 0, hi-knee)
		return
	} else if penalty > 0 && knee == hi {
		m.addPairColumn(k, s, m.g.CostMs[k]-penalty, lo, hi)
		return
	}
	m.addPairColumn(k, s, m.g.CostMs[k], lo, hi)
}

func (m *master) addPairColumn(k, s int, cost, lo, hi float64) {
	g := m.g
	if hi >= g.Served[s] { // the source's row bounds it already
		hi = math.Inf(1)
	}
	m.lin.addColumn(cost, lo/m.flow, hi/m.flow)
	m.columns = append(m.columns, column{k, s})
	m.lin.addEntry(s, 1)
	for _, entry := range g.Entries[g.Col[k]] {
		if content := g.Contents[entry.Kind][s]; content > 0 {
			m.lin.addEntry(len(g.Sources)+int(entry.Row), content*m.flow/m.unit[entry.Row])
		}
	}
	for _, j := range g.PairGroups(k) {
		m.lin.addEntry(len(g.Sources)+int(j), m.flow/m.unit[j])
	}
}

// addRow bounds row j, or makes it the sum of segments between grid points.
func (m *master) addRow(j int, grid []float64) {
	r := &m.g.Rows[j]
	row := len(m.g.Sources) + j
	if r.Sink == nil {
		m.lin.RowLo[row], m.lin.RowHi[row] = r.Min/m.unit[j], r.Max/m.unit[j]
		if r.Min <= 0 {
			m.lin.RowLo[row] = math.Inf(-1)
		}
		return
	}
	chord := func(from, to float64) float64 {
		return (r.Sink.Value(to) - r.Sink.Value(from)) / (to - from)
	}
	for i := 1; i < len(grid); {
		from, slope := grid[i-1], chord(grid[i-1], grid[i])
		// A straight stretch is one segment: a basis that changes inside it
		// would tell ranging nothing.
		for i++; i < len(grid) && math.Abs(chord(grid[i-1], grid[i])-slope) <= 1e-12*math.Abs(slope); i++ {
		}
		m.lastSegment[j] = m.lin.addColumn(slope*m.unit[j]/m.flow, 0, (grid[i-1]-from)/m.unit[j])
		m.lin.addEntry(row, -1)
	}
}

// narrow is what the segments that CLP takes for fixed, as they are narrower
// than its tolerance, may come to, relative to a row's maximum.
const narrow = 1e-6

// widen gives the last segment of each delay the room that CLP may not see in
// narrow ones. Where engines are filled to their limits it is needed.
func (m *master) widen() {
	for j, r := range m.g.Rows {
		if r.Sink != nil {
			m.lin.ColHi[m.lastSegment[j]] += narrow * r.Max / m.unit[j]
		}
	}
}

func (m *master) solve(ctx context.Context) (err error) {
	m.answer, err = m.lin.solve(ctx)
	return err
}

// flows returns the positive flows of the answer.
func (m *master) flows() []model.Flow {
	var flows []model.Flow
	for i, c := range m.columns {
		x := m.answer.X[i] * m.flow
		if n := len(flows); n > 0 && flows[n-1].Pair == c.pair {
			flows[n-1].RPS += x
		} else if x > 0 {
			flows = append(flows, model.Flow{Pair: c.pair, RPS: x})
		}
	}
	return flows
}

// prices returns the price of each row: CLP's row dual is the change of the
// objective by the right-hand side, so a limit that binds has a negative one,
// and a unit more of activity costs minus the dual.
func (m *master) prices() []float64 {
	y := make([]float64, len(m.g.Rows))
	for j := range y {
		y[j] = -m.answer.RowDual[len(m.g.Sources)+j] * m.flow / m.unit[j]
	}
	m.g.Clean(y)
	return y
}

// sourcePrices returns the cost of one more request of each source in ms.
func (m *master) sourcePrices() []float64 { return m.answer.RowDual[:len(m.g.Sources)] }
