// Package shed decides which demand is served when not all of it can be: the
// highest priority first, as much work as possible, in equal fractions within
// a priority where they can be reached.
//
// What can be served together is bounded by a network of capacities, whatever
// the latency (see capacity). The amounts of work that the sources can have
// served are a polymatroid, so that serving one priority after the other, each
// with max-min fair fractions, serves the most work of every set of highest
// priorities at once. A minimum cut of the network proves it for each.
//
// Fair fractions of a priority are found as in parametric maximum flow
// (Gallo, Grigoriadis, Tarjan 1989): the common fraction t falls by Newton
// steps on minimum cuts until it can be routed; the sources on the supply side
// of the last cut keep it, the others rise further.
package shed

import (
	"cmp"
	"math"
	"slices"

	"github.com/irb-project/irb/solve/model"
)

// Margin is how far, relative, served demand stays below what just fits, so
// that rounding leaves the remaining program feasible.
const Margin = 1e-10

// tolerance is the part of all work below which a shortage is rounding.
const tolerance = 1e-11

// Serve returns how much of each source's demand is served, in req/s, and a
// cut for each priority of which something is refused, highest first.
//
// The error is *model.Infeasible where nothing may ever serve a source, or
// where minima do not fit.
func Serve(p *model.Problem) (servedRPS []float64, cuts []model.ShedCut, err error) {
	if err := unservable(p); err != nil {
		return nil, nil, err
	}
	c, err := newCapacity(p)
	if err != nil {
		return nil, nil, err
	}
	demand := make([]float64, len(p.Sources)) // work/s
	for s := range demand {
		demand[s] = p.Sources[s].Work * p.Sources[s].DemandRPS
	}
	supply := make([]float64, len(p.Sources))
	if short := c.route(supply); short > tolerance*c.total {
		return nil, nil, c.minimaInfeasible(short)
	}
	for _, level := range levels(p) {
		if c.serveLevel(level.sources, demand, supply) {
			cuts = append(cuts, c.cut(level.priority, demand))
		}
	}
	servedRPS = make([]float64, len(p.Sources))
	for s := range servedRPS {
		servedRPS[s] = p.Sources[s].DemandRPS
		if supply[s] < demand[s] {
			servedRPS[s] = supply[s] / p.Sources[s].Work
		}
	}
	return servedRPS, cuts, nil
}

// unservable finds sources with no engine at all.
func unservable(p *model.Problem) error {
	var e model.Infeasible
	for s := range p.Sources {
		if p.Row[s] == p.Row[s+1] {
			e.Sources = append(e.Sources, s)
			e.DemandWork += p.Sources[s].Work * p.Sources[s].DemandRPS
			e.ShortRPS += p.Sources[s].DemandRPS
		}
	}
	if e.Sources == nil {
		return nil
	}
	e.ShortWork = e.DemandWork
	return &e
}

type level struct {
	priority int
	sources  []int
}

// levels groups sources by priority, highest first.
func levels(p *model.Problem) []level {
	var out []level
	order := make([]int, len(p.Sources))
	for s := range order {
		order[s] = s
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.Sources[b].Priority, p.Sources[a].Priority) })
	for _, s := range order {
		if n := len(out); n == 0 || out[n-1].priority != p.Sources[s].Priority {
			out = append(out, level{priority: p.Sources[s].Priority})
		}
		last := &out[len(out)-1]
		last.sources = append(last.sources, s)
	}
	return out
}

// serveLevel sets the supply of the sources of one priority to their fair
// fractions of demand, given the supply of all higher ones, and says whether
// something is refused.
func (c *capacity) serveLevel(sources []int, demand, supply []float64) (refused bool) {
	rising := slices.Clone(sources)
	for len(rising) > 0 {
		t, stuck := c.commonFraction(rising, demand, supply)
		if t >= 1 {
			return refused
		}
		refused = true
		for _, s := range stuck {
			supply[s] = max(c.must[s], t*demand[s]*(1-Margin))
		}
		keeps := make(map[int]bool, len(stuck))
		for _, s := range stuck {
			keeps[s] = true
		}
		rising = slices.DeleteFunc(rising, func(s int) bool { return keeps[s] })
	}
	return refused
}

// commonFraction returns the largest fraction t <= 1 of their demand that all
// rising sources can have together, and those that cannot have more. The
// supply of rising sources is left at t.
func (c *capacity) commonFraction(rising []int, demand, supply []float64) (t float64, stuck []int) {
	t = 1
	for {
		for _, s := range rising {
			supply[s] = max(c.must[s], t*demand[s])
		}
		short := c.route(supply)
		if short <= tolerance*c.total {
			return t, stuck
		}
		stuck = stuck[:0]
		for _, s := range rising {
			if c.cutSide(c.setOf[s]) {
				stuck = append(stuck, s)
			}
		}
		next := c.lower(stuck, demand, t, short)
		if next >= t || len(stuck) == 0 { // nothing above rounding is left to give
			return t, rising
		}
		t = next
	}
}

// lower returns the fraction at which the sources of a cut need `short` less
// work than at t; a source does not go below its minima.
func (c *capacity) lower(stuck []int, demand []float64, t, short float64) float64 {
	order := slices.Clone(stuck) // those that reach their minima first
	floor := func(s int) float64 { return c.must[s] / demand[s] }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(floor(b), floor(a)) })
	var slope float64
	for _, s := range order {
		slope += demand[s]
	}
	for _, s := range order {
		if floor(s) >= t {
			slope -= demand[s]
			continue
		}
		if at := max(0, floor(s)); (t-at)*slope < short && at > 0 {
			short -= (t - at) * slope
			slope -= demand[s]
			t = at
			continue
		}
		break
	}
	if slope <= 0 {
		return 0
	}
	return math.Max(0, t-short/slope)
}

// cut is the minimum cut for the full demand of all priorities down to one.
func (c *capacity) cut(priority int, demand []float64) model.ShedCut {
	supply := make([]float64, len(demand))
	for s := range supply {
		if c.p.Sources[s].Priority >= priority {
			supply[s] = demand[s]
		}
	}
	c.route(supply)
	out := model.ShedCut{Priority: priority}
	for s, node := range c.setOf {
		if c.cutSide(node) && c.p.Sources[s].Priority >= priority {
			out.Sources = append(out.Sources, s)
		}
	}
	out.Engines, out.Caps, out.Groups = c.crossed()
	return out
}

// crossed returns the limits that a minimum cut crosses: engines and caps with
// their node on the supply side and the next one outside; groups entered from
// the supply side.
func (c *capacity) crossed() (engines, caps, groups []int) {
	outside := func(node int32) bool {
		for a := c.net.first[node]; a >= 0; a = c.net.next[a] {
			if a&1 == 0 && c.cutSide(c.net.to[a]) {
				return false
			}
		}
		return true
	}
	for e, node := range c.engines {
		if c.cutSide(node) && outside(node) {
			engines = append(engines, e)
		}
	}
	for i, node := range c.caps {
		if c.cutSide(node) && outside(node) {
			caps = append(caps, i)
		}
	}
	for g, node := range c.groups {
		if !c.cutSide(node) && c.net.first[node] >= 0 && c.cutSide(c.net.to[c.arcInto(node)^1]) {
			groups = append(groups, g)
		}
	}
	return engines, caps, groups
}

// minimaInfeasible names what does not let the minima through.
func (c *capacity) minimaInfeasible(short float64) error {
	e := &model.Infeasible{ShortWork: short}
	e.Engines, e.Caps, e.Groups = c.crossed()
	for s, work := range c.must {
		if work > 0 {
			e.Sources = append(e.Sources, s)
			e.DemandWork += work
			e.ShortRPS = max(e.ShortRPS, short/c.p.Sources[s].Work)
		}
	}
	e.ReachWork = e.DemandWork - short
	return e
}
