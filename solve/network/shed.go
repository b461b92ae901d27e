package network

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/irb-project/irb/solve/model"
)

// Serve returns how much of each source's demand is served where not all of it
// can be, in req/s, and a cut for each priority of which something is refused,
// the highest first. Only limits of work count, not latency; so m may have
// split work, whose joint limit is one of work.
//
// The error is a *model.Infeasible where nothing may ever serve a source or
// where minima do not fit, that of Supports where bounds are no network, or the
// context's.
func Serve(ctx context.Context, m *model.Problem) (servedRPS []float64, cuts []model.ShedCut, err error) {
	limits := *m
	limits.Work, limits.Shed, limits.Stay, limits.StayPenaltyMs = model.WorkSingle, true, nil, nil
	p, err := newProgram(&limits)
	if err != nil {
		return nil, nil, err
	}
	p.flatten()
	if err := errors.Join(p.checkMinimums(), p.checkReach()); err != nil {
		return nil, nil, err
	}
	full := slices.Clone(p.supply)
	if cuts, err = p.shed(ctx); err != nil {
		return nil, nil, err
	}
	servedRPS = make([]float64, len(p.Sources))
	for s := range p.Sources {
		servedRPS[s] = p.Sources[s].DemandRPS
		if refused := full[s] - p.supply[s]; refused > 0 {
			servedRPS[s] = max(0, servedRPS[s]-refused/p.perRPS[s])
		}
	}
	return servedRPS, cuts, nil
}

// flatten makes load cost nothing up to the limit of work of each engine.
func (p *program) flatten() {
	sinks := make([]*smooth, len(p.Engines))
	for e, sink := range p.sinks {
		limit := p.Engines[e].Limit / p.flowUnit
		if sink != nil {
			limit = sink.limit
		}
		if limit > 0 {
			sinks[e] = &smooth{limit: limit, pieces: []slopePiece{{hi: limit}}}
		}
	}
	p.sinks = sinks
}

// shed takes from the supplies what cannot be served. Priority by priority,
// the highest first: as much of its work as possible is served beside that of
// higher ones, and of the ways to do so the one with the most equal parts of
// demand.
//
// What can be served together is a polymatroid (its sources feed a network);
// so serving as much as possible of the highest priority never lowers the
// total, and the point with the least sum of squares of what is refused, over
// demand, is also the one that is fairest in the order of parts: the smallest
// part is as large as can be, then the next (Fujishige, Lexicographically
// optimal base of a polymatroid, 1980). That point is a flow with quadratic
// costs on the bypass alone, which the simplex and the polish find exactly.
func (p *program) shed(ctx context.Context) ([]model.ShedCut, error) {
	prices := make([]float64, len(p.Engines))
	long := p.cheapest(prices, longlist)
	var cuts []model.ShedCut
	side := make([]bool, p.rootNode()+1)
	supply := slices.Clone(p.supply)
	for _, priority := range p.priorities() {
		level := p.withoutCosts()
		level.flatten()
		level.supply = slices.Clone(supply)
		for s := range p.Sources {
			if p.Sources[s].Priority < priority {
				level.supply[s] = 0
			}
		}
		b := newBuilder(level, true, &priority)
		b.start(prices, long)
		if err := b.run(ctx, coldTries); err != nil {
			return nil, err
		}
		refused, stuck := 0.0, 0.0
		for v, a := range b.bypass {
			if a < 0 {
				continue
			}
			flow := b.state[a].flow
			if b.smoothOf(a) == nil {
				stuck += flow
				continue
			}
			supply[v] = max(0, supply[v]-flow)
			refused += flow
		}
		if !p.isSlack(stuck) {
			// Minimums that engines cannot take: no shedding helps.
			return nil, level.explain(ctx, long)
		}
		for v, price := range b.graph.prices {
			side[v] = side[v] || price > cutPrice
		}
		if !p.isSlack(refused) {
			cuts = append(cuts, p.shedCut(priority, side))
		}
	}
	p.supply = supply
	return cuts, nil
}

// priorities returns the priorities of all sources, the highest first.
func (p *program) priorities() []int {
	var levels []int
	for s := range p.Sources {
		levels = append(levels, p.Sources[s].Priority)
	}
	slices.SortFunc(levels, func(a, b int) int { return cmp.Compare(b, a) })
	return slices.Compact(levels)
}

// cutPrice is above which price a node is on the side that cannot reach the
// root without the bypass: the part of demand that is refused there.
const cutPrice = 1e-9

// shedCut reads the minimum cut off the nodes on the side that cannot reach the
// root. That of a priority takes in those of higher ones: what these refused
// stays refused.
func (p *program) shedCut(priority int, side []bool) model.ShedCut {
	out := model.ShedCut{Priority: priority}
	for s := range p.Sources {
		if p.Sources[s].Priority >= priority && side[s] {
			out.Sources = append(out.Sources, s)
		}
	}
	for e := range p.Engines {
		if v := p.engine(int32(e)); p.sinks[e] != nil && side[v] && !side[p.above[v]] {
			out.Engines = append(out.Engines, e)
		}
	}
	for c := range p.Caps {
		if v := p.capNode(c); side[v] && !side[p.above[v]] {
			out.Caps = append(out.Caps, c)
		}
	}
	for i := range p.Groups {
		if v := p.group(i); side[p.above[v]] && !side[v] {
			out.Groups = append(out.Groups, i)
		}
	}
	return out
}
