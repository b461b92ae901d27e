package interior

import (
	"math"

	"github.com/irb-project/irb/solve/rows"
)

// goal is what is minimised.
type goal struct {
	// latency says whether pairs and rows cost what they do, or nothing.
	latency bool
	// shed[s] is the cost of each req/s that source s sheds, over its cheapest
	// pair; 0: it may shed none.
	shed []float64
	// missed[i] is the cost of each req/s by which group i misses its minimum;
	// nil: none may.
	missed []float64
	// price is a typical price in ms (or work), the scale of the objective.
	price float64
}

// part is a stretch of a pair's flow: from lo, width long (+Inf: none), in
// req/s. A pair with a stay term has two.
type part struct {
	variable, pair, source int
	lo, width              float64
}

// program is the qp of a rows.Program over some of its pairs, scaled: flows by
// the demand of their source, activities by the maximum of their row, the
// objective by total demand x price.
type program struct {
	g     *rows.Program
	goal  goal
	q     *qp
	unit  []float64 // per row, its activity in one scaled unit
	worth float64   // ms x req/s of one scaled unit of the objective
	least []float64 // per source, ms taken off all its costs to keep digits

	touched []bool // per row of q, whether a pair of the program loads it

	parts  []part  // in order of pair
	fixed  []part  // flow that lower bounds fix: lo alone
	pieces [][]int // per row, variables of its phi in order
	shed   []int   // per source, its variable, -1: none
	missed []int   // per group, likewise
}

// newProgram builds the qp over pairs, ascending.
func newProgram(g *rows.Program, pairs []int, goal goal) *program {
	b := &program{g: g, goal: goal, q: newQP(len(g.Sources) + len(g.Rows))}
	b.scale()
	s := 0
	for first, i := 0, 0; i < len(pairs); first = i {
		for pairs[first] >= g.Row[s+1] {
			s++
		}
		for i < len(pairs) && pairs[i] < g.Row[s+1] {
			i++
		}
		if g.Served[s] > 0 {
			b.addPairs(s, pairs[first:i])
		}
	}
	b.touched = make([]bool, len(b.q.b))
	for _, row := range b.q.index {
		b.touched[row] = true
	}
	for _, p := range b.fixed { // also where a lower bound leaves nothing to choose
		b.eachEntry(p.pair, p.source, func(row int32, _ float64) { b.touched[row] = true })
	}
	b.missed = make([]int, len(g.Groups))
	for i := range b.missed {
		b.missed[i] = -1
	}
	b.pieces = make([][]int, len(g.Rows))
	for j := range g.Rows {
		if b.addMissed(j) || b.touched[b.row(j)] {
			b.addRow(j)
		}
	}
	b.addShed()
	return b
}

func (b *program) row(j int) int32 { return int32(len(b.g.Sources) + j) }

func (b *program) scale() {
	total := 0.0
	for s, served := range b.g.Served {
		total += served
		if served > 0 {
			b.q.b[s] = 1
		}
	}
	b.worth = total * b.goal.price
	b.least = make([]float64, len(b.g.Sources))
	b.unit = make([]float64, len(b.g.Rows))
	for j := range b.unit {
		switch r := &b.g.Rows[j]; {
		case r.Max > 0 && !math.IsInf(r.Max, 1):
			b.unit[j] = r.Max
		case r.Min > 0:
			b.unit[j] = r.Min
		default:
			b.unit[j] = 1
		}
	}
}

func (b *program) addPairs(s int, pairs []int) {
	g, served := b.g, b.g.Served[s]
	if b.goal.latency {
		b.least[s] = math.Inf(1)
		for _, k := range pairs {
			b.least[s] = min(b.least[s], g.CostMs[k])
		}
	}
	for _, k := range pairs {
		lo, hi := g.Bounds(k, s)
		if hi <= 0 || closed(g, k, s) {
			continue
		}
		if lo > 0 {
			b.fixed = append(b.fixed, part{pair: k, source: s, lo: lo})
			b.eachEntry(k, s, func(row int32, value float64) { b.q.b[row] -= value * lo / served })
		}
		if hi >= served {
			hi = math.Inf(1) // the source's row bounds it already
		}
		cost, penalty, knee := 0.0, 0.0, 0.0
		if b.goal.latency {
			cost = g.CostMs[k] - b.least[s]
			knee, penalty = g.StayTerm(k)
			knee = min(knee, hi)
		}
		if penalty > 0 && knee > lo {
			b.addPart(k, s, cost-penalty, lo, knee-lo)
			lo = knee
		}
		if hi > lo {
			b.addPart(k, s, cost, lo, hi-lo)
		}
	}
}

// closed says whether pair k of source s may carry nothing because a row that
// it loads has no room at all.
func closed(g *rows.Program, k, s int) bool {
	for _, entry := range g.Entries[g.Col[k]] {
		if g.Rows[entry.Row].Max <= 0 && g.Contents[entry.Kind][s] > 0 {
			return true
		}
	}
	for _, j := range g.PairGroups(k) {
		if g.Rows[j].Max <= 0 {
			return true
		}
	}
	return false
}

func (b *program) addPart(k, s int, cost, lo, width float64) {
	served := b.g.Served[s]
	v := b.q.addVariable(cost*served/b.worth, 0, width/served)
	b.eachEntry(k, s, b.q.addEntry)
	b.parts = append(b.parts, part{v, k, s, lo, width})
}

// eachEntry calls f with the entries of a pair's column, per unit of demand.
func (b *program) eachEntry(k, s int, f func(row int32, value float64)) {
	g := b.g
	f(int32(s), 1)
	for _, entry := range g.Entries[g.Col[k]] {
		if content := g.Contents[entry.Kind][s]; content > 0 {
			f(b.row(int(entry.Row)), content*g.Served[s]/b.unit[entry.Row])
		}
	}
	for _, j := range g.PairGroups(k) {
		f(b.row(int(j)), g.Served[s]/b.unit[j])
	}
}

// addRow makes the activity of row j the sum of pieces, one per quadratic
// stretch of its phi.
func (b *program) addRow(j int) {
	r := &b.g.Rows[j]
	if r.Max <= 0 {
		return
	}
	lo := max(0, r.Min)
	b.q.b[b.row(j)] += lo / b.unit[j]
	sink := r.Sink
	if sink == nil || !b.goal.latency {
		b.addPiece(j, 0, 0, r.Max-lo)
		return
	}
	if c, end := sink.ProcessorSharing(); c > 0 {
		end = min(end, r.Max)
		b.addPiece(j, 0, 0, end)
		b.q.share(sharing{c * b.unit[j] / b.worth, sink.Capacity / b.unit[j]})
		lo = end
	}
	for _, hi := range append(sink.Kinks(), r.Max) {
		if hi = min(hi, r.Max); hi > lo {
			_, first := sink.Marginal(lo)
			last, _ := sink.Marginal(hi)
			b.addPiece(j, first, max(0, last-first)/(hi-lo), hi-lo)
			lo = hi
		}
	}
}

func (b *program) addPiece(j int, c, h, width float64) {
	unit := b.unit[j]
	if width <= 0 { // minimum and maximum are one
		return
	}
	v := b.q.addVariable(c*unit/b.worth, h*unit*unit/b.worth, width/unit)
	b.q.addEntry(b.row(j), -1)
	b.pieces[j] = append(b.pieces[j], v)
}

// addMissed gives a group's minimum a way out, where the goal has one.
func (b *program) addMissed(j int) bool {
	i := j - b.g.GroupRow
	if i < 0 || b.goal.missed == nil || b.g.Rows[j].Min <= 0 {
		return false
	}
	b.missed[i] = b.q.addVariable(b.goal.missed[i]*b.unit[j]/b.worth, 0, math.Inf(1))
	b.q.addEntry(b.row(j), 1)
	return true
}

func (b *program) addShed() {
	b.shed = make([]int, len(b.g.Sources))
	for s, served := range b.g.Served {
		b.shed[s] = -1
		if served > 0 && b.goal.shed[s] > 0 {
			b.shed[s] = b.q.addVariable(b.goal.shed[s]*served/b.worth, 0, math.Inf(1))
			b.q.addEntry(int32(s), 1)
		}
	}
}
