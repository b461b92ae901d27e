package network

import (
	"context"

	"github.com/irb-project/irb/solve/model"
)

// checkMinimums returns the minimum of a source or group that its demand or
// its maximum rules out whatever the engines do.
func (p *program) checkMinimums() error {
	for i := range p.Groups {
		g := &p.Groups[i]
		demand := p.Sources[g.Source].DemandRPS * p.perRPS[g.Source]
		if p.room[i] < -boundSlack*demand {
			return p.broken(g.Source, []int{i}, -p.room[i])
		}
		p.room[i] = max(0, p.room[i])
	}
	for s := range p.Sources {
		if p.supply[s] < 0 {
			var groups []int
			for i := range p.Groups {
				if p.Groups[i].Source == s && p.Groups[i].MinRPS > 0 {
					groups = append(groups, i)
				}
			}
			return p.broken(s, groups, -p.supply[s])
		}
	}
	return nil
}

// checkReach returns the sources that nothing may ever serve.
func (p *program) checkReach() error {
	e := &model.Infeasible{}
	for s := range p.Sources {
		reached := false
		for k := p.Row[s]; k < p.Row[s+1] && !reached; k++ {
			reached = p.Upper == nil || p.Upper[k] > 0
		}
		if !reached {
			src := &p.Sources[s]
			e.Sources = append(e.Sources, s)
			e.ShortRPS += src.DemandRPS
			e.ShortWork += src.DemandRPS * src.Work
		}
	}
	if len(e.Sources) == 0 {
		return nil
	}
	e.DemandWork = e.ShortWork
	return e
}

// broken returns the error for bounds of source s that contradict each other
// by flow.
func (p *program) broken(s int, groups []int, flow float64) error {
	e := &model.Infeasible{Sources: []int{s}, Groups: groups, ShortRPS: flow / p.perRPS[s], ShortWork: flow * p.flowUnit}
	for k := p.Row[s]; p.Lower != nil && k < p.Row[s+1]; k++ {
		if p.Lower[k] > 0 {
			e.Pairs = append(e.Pairs, k)
		}
	}
	e.DemandWork = p.Sources[s].DemandRPS * p.Sources[s].Work
	e.ReachWork = e.DemandWork - e.ShortWork
	return e
}

// withoutCosts returns the program with costs 0.
func (p *program) withoutCosts() *program {
	free := *p
	free.perWork = make([]float64, len(p.Sources))
	return &free
}

// maxFlow finds the most that can be served: the same network with costs 0 but
// for the bypass, which costs 1. Prices are then 1 on the side of the minimum
// cut that cannot reach the root, and 0 on the other.
func (p *program) maxFlow(ctx context.Context, long *offers) (*builder, error) {
	b := newBuilder(p.withoutCosts(), true, nil)
	b.start(make([]float64, len(p.Engines)), long)
	if err := b.optimize(ctx, 1e-6, true); err != nil {
		return nil, err
	}
	b.reprice()
	return b, nil
}

// bypassed returns the flow that passes everything by, per node.
func (b *builder) bypassed() (total float64) {
	for _, a := range b.bypass {
		if a >= 0 {
			total += b.state[a].flow
		}
	}
	return total
}

// infeasible reads the binding set off a maximum flow.
func (b *builder) infeasible() *model.Infeasible {
	p := b.program
	e := &model.Infeasible{}
	cut := func(v int32) bool { return b.prices[v] > 0.5 }
	crosses := func(from, to int32) bool { return cut(from) && !cut(to) }
	for s := range p.Sources {
		if cut(int32(s)) {
			e.Sources = append(e.Sources, s)
			e.DemandWork += p.Sources[s].DemandRPS * p.Sources[s].Work
		}
	}
	for i := range p.Engines {
		if v := p.engine(int32(i)); p.sinks[i] != nil && crosses(v, p.above[v]) {
			e.Engines = append(e.Engines, i)
		}
	}
	for c := range p.Caps {
		if v := p.capNode(c); crosses(v, p.above[v]) {
			e.Caps = append(e.Caps, c)
		}
	}
	for i := range p.Groups {
		if v := p.group(i); cut(v) != cut(p.above[v]) {
			e.Groups = append(e.Groups, i)
		}
	}
	for s := range p.Sources {
		for k := p.Row[s]; k < p.Row[s+1]; k++ {
			tail, head := p.tail(int32(s), k), p.engine(p.Col[k])
			bounded := p.Lower != nil && p.Lower[k] > 0 && crosses(head, tail)
			if bounded || crosses(tail, head) {
				e.Pairs = append(e.Pairs, k)
			}
		}
	}
	for v, a := range b.bypass {
		if a < 0 || b.state[a].flow <= 0 {
			continue
		}
		e.ShortWork += b.state[a].flow * p.flowUnit
		e.ShortRPS += b.state[a].flow / b.perRPSAt(int32(v))
	}
	e.ReachWork = e.DemandWork - e.ShortWork
	return e
}

// perRPSAt returns what one req/s is in units of flow at node v: that of its
// source, or at an engine the mean of those with a lower bound there.
func (b *builder) perRPSAt(v int32) float64 {
	if s := b.sourceOf(v); s < b.engine(0) {
		return b.perRPS[s]
	}
	flow, rps := 0.0, 0.0
	for k, s := range b.lowerPairs() {
		if b.engine(b.Col[k]) == v {
			flow += b.Lower[k] * b.perRPS[s]
			rps += b.Lower[k]
		}
	}
	return flow / rps
}
