// Package rows writes a model.Problem as one set of rows, whatever its work
// model, bounds, groups and caps, and evaluates its primal and dual:
//
//	minimize   sum_k g_k(x_k) + sum_j phi_j(t_j)    t_j = sum_k a_jk x_k
//	subject to sum_{k of s} x_k = d_s               every source s
//
// g_k(x) = CostMs x + StayPenaltyMs (Stay - x)+ on [Lower, Upper], and phi_j is
// a convex function on [Min_j, Max_j]: the delay of an engine, or zero for a
// row that is only a limit (joint work limit, cap, group).
package rows

import (
	"math"
	"slices"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
)

// Kind is what one request of a pair brings into a row of its engine.
type Kind uint8

// The kinds of content of a request.
const (
	Work   Kind = iota // w_s token equivalents
	Prompt             // q_s tokens
	Output             // o_s tokens
	Kinds
)

// Row is a row of the program other than a source's.
type Row struct {
	Sink     *profile.Sink // phi over [0, Max]; nil: phi = 0
	Min, Max float64
	Kind     Kind // unit of its activity; groups are in req/s
}

// Entry puts the pairs of an engine into a row.
type Entry struct {
	Row  int32
	Kind Kind
}

// Program is a Problem as rows. Rows of engines come first, then one per cap,
// then one per group.
type Program struct {
	*model.Problem
	Served   []float64 // per source, what must be routed, req/s
	Rows     []Row
	Entries  [][]Entry // per engine
	Contents [Kinds][]float64

	CapRow, GroupRow int // rows of the first cap and group

	groupStart []int // pair k is in rows groupRows[groupStart[k]:groupStart[k+1]]; nil: no groups
	groupRows  []int32
}

// New returns the program that routes served req/s of each source.
func New(p *model.Problem, served []float64) *Program {
	g := &Program{Problem: p, Served: served, Entries: make([][]Entry, len(p.Engines))}
	for k := range g.Contents {
		g.Contents[k] = make([]float64, len(p.Sources))
	}
	for s, src := range p.Sources {
		g.Contents[Work][s] = src.Work
		g.Contents[Prompt][s] = src.PromptTokens
		g.Contents[Output][s] = src.OutputTokens
	}
	for e := range p.Engines {
		n := &p.Engines[e]
		if p.Work == model.WorkSplit {
			g.addSink(e, Prompt, n.Prefill)
			g.addSink(e, Output, n.Output)
			g.addRow(e, Row{Max: n.Limit, Kind: Work})
		} else if n.Delay != nil {
			g.addRow(e, Row{Sink: n.Delay, Max: min(n.Limit, n.Delay.Limit), Kind: Work})
		} else {
			g.addRow(e, Row{Max: n.Limit, Kind: Work})
		}
	}
	g.CapRow = len(g.Rows)
	for _, c := range p.Caps {
		g.Rows = append(g.Rows, Row{Max: c.MaxWork, Kind: Work})
		for _, e := range c.Engines {
			g.Entries[e] = append(g.Entries[e], Entry{int32(len(g.Rows) - 1), Work})
		}
	}
	g.addGroups()
	return g
}

func (g *Program) addSink(e int, kind Kind, sink *profile.Sink) {
	if sink != nil { // nil: an engine without capacity, or a profile without these tokens
		g.addRow(e, Row{Sink: sink, Max: sink.Limit, Kind: kind})
	}
}

func (g *Program) addRow(e int, r Row) {
	g.Entries[e] = append(g.Entries[e], Entry{int32(len(g.Rows)), r.Kind})
	g.Rows = append(g.Rows, r)
}

func (g *Program) addGroups() {
	g.GroupRow = len(g.Rows)
	if len(g.Groups) == 0 {
		return
	}
	in := make([][]int32, g.Pairs())
	for i, group := range g.Groups {
		g.Rows = append(g.Rows, Row{Min: group.MinRPS, Max: group.MaxRPS})
		member := make(map[int32]bool, len(group.Engines))
		for _, e := range group.Engines {
			member[e] = true
		}
		for k := g.Row[group.Source]; k < g.Row[group.Source+1]; k++ {
			if member[g.Col[k]] {
				in[k] = append(in[k], int32(g.GroupRow+i))
			}
		}
	}
	g.groupStart = make([]int, 1, g.Pairs()+1)
	for _, rows := range in {
		g.groupRows = append(g.groupRows, rows...)
		g.groupStart = append(g.groupStart, len(g.groupRows))
	}
}

// PairGroups returns the rows of the groups that hold pair k.
func (g *Program) PairGroups(k int) []int32 {
	if g.groupStart == nil {
		return nil
	}
	return g.groupRows[g.groupStart[k]:g.groupStart[k+1]]
}

// Bounds returns the range of x_k; no pair carries more than its source serves.
func (g *Program) Bounds(k, s int) (lo, hi float64) {
	hi = g.Served[s]
	if g.Upper != nil {
		hi = min(hi, g.Upper[k])
	}
	if g.Lower != nil {
		lo = g.Lower[k]
	}
	if lo > hi && lo <= hi*(1+boundRounding) {
		lo = hi
	}
	return lo, hi
}

// boundRounding is how far, relative, a lower bound may be above what its source
// serves by rounding: where a minimum is all that is served.
const boundRounding = 1e-12

// StayTerm returns the kink of g_k and the cost of each req/s below it, or
// zeros where nothing is lost by leaving.
func (g *Program) StayTerm(k int) (stay, penaltyMs float64) {
	if g.Stay == nil || g.StayPenaltyMs[k] <= 0 {
		return 0, 0
	}
	return g.Stay[k], g.StayPenaltyMs[k]
}

// SourceOf returns the source of each pair.
func (g *Program) SourceOf() []int32 {
	of := make([]int32, g.Pairs())
	for s := range g.Sources {
		for k := g.Row[s]; k < g.Row[s+1]; k++ {
			of[k] = int32(s)
		}
	}
	return of
}

// Activity returns t of flows.
func (g *Program) Activity(flows []model.Flow) []float64 {
	t := make([]float64, len(g.Rows))
	s := 0
	for _, f := range flows {
		for f.Pair >= g.Row[s+1] {
			s++
		}
		for _, entry := range g.Entries[g.Col[f.Pair]] {
			t[entry.Row] += g.Contents[entry.Kind][s] * f.RPS
		}
		for _, j := range g.PairGroups(f.Pair) {
			t[j] += f.RPS
		}
	}
	return t
}

// Objective returns the objective of flows in ms x req/s.
func (g *Program) Objective(flows []model.Flow) float64 {
	sum := g.StayCost(flows)
	for _, f := range flows {
		sum += g.CostMs[f.Pair] * f.RPS
	}
	for j, t := range g.Activity(flows) {
		if sink := g.Rows[j].Sink; sink != nil {
			sum += sink.Value(t)
		}
	}
	return sum
}

// StayCost returns what flows pay for leaving previous engines, ms x req/s.
func (g *Program) StayCost(flows []model.Flow) (sum float64) {
	if g.Stay == nil {
		return 0
	}
	for k := range g.Stay {
		stay, penalty := g.StayTerm(k)
		sum += stay * penalty
	}
	for _, f := range flows {
		stay, penalty := g.StayTerm(f.Pair)
		sum -= penalty * math.Min(stay, f.RPS)
	}
	return sum
}

// Free returns g with the same bounds and limits, where nothing costs
// anything.
func (g *Program) Free() *Program {
	p := *g.Problem
	p.CostMs = make([]float64, p.Pairs())
	p.Stay, p.StayPenaltyMs = nil, nil
	free := *g
	free.Problem = &p
	free.Rows = slices.Clone(g.Rows)
	for j := range free.Rows {
		free.Rows[j].Sink = nil
	}
	return &free
}
