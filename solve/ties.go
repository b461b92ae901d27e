package solve

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/network"
	"github.com/irb-project/irb/solve/profile"
)

// tie is how near, relative, costs are that count as the same.
const tie = 1e-12

// spreadTies divides what costs the same anywhere in proportion to capacity.
//
// Only engines without delay tie: up to the load e from which its profile grows
// an engine costs nothing but the way there, and the simplex method would fill
// one after the other. Of what free sources send to such engines,
//
//	minimise    sum over e of Y_e² / K_e
//	subject to  each source sends as much as before, to engines that cost it
//	            the least; Y_e <= where delay begins
//
// which levels utilization and leaves the latency of everybody as it is. Sources
// with shares or a previous plan stay as they are, and so do engines under caps.
// It returns s where nothing ties.
func spreadTies(ctx context.Context, p *model.Problem, s *model.Solution) *model.Solution {
	if p.Work != model.WorkSingle {
		return s
	}
	t := newTies(p, s)
	if !slices.ContainsFunc(t.flat, func(load float64) bool { return load > 0 }) {
		return s
	}
	t.build()
	if len(t.sub.Sources) == 0 {
		return s
	}
	level, err := network.Solve(ctx, &t.sub, network.Options{})
	if err != nil {
		return s // as good, only less even
	}
	out := *s
	out.Flows = append(t.kept, level.Flows...)
	for i := len(t.kept); i < len(out.Flows); i++ {
		out.Flows[i].Pair = t.pairs[out.Flows[i].Pair]
	}
	slices.SortFunc(out.Flows, func(a, b model.Flow) int { return cmp.Compare(a.Pair, b.Pair) })
	return &out
}

// ties is the program of spreadTies.
type ties struct {
	p     *model.Problem
	s     *model.Solution
	bound []bool    // per source: it has shares or a previous plan
	flat  []float64 // per engine: work/s up to which it has no delay, 0 where it does not tie
	sub   model.Problem
	pairs []int        // pair of the whole for each of sub
	kept  []model.Flow // flows that stay
}

func newTies(p *model.Problem, s *model.Solution) *ties {
	t := &ties{p: p, s: s, bound: p.BoundSources(), flat: make([]float64, len(p.Engines))}
	for e := range p.Engines {
		if n := &p.Engines[e]; n.Delay != nil && s.EnginePrice[e] <= 0 {
			_, t.flat[e] = n.Delay.Load(0)
		}
	}
	for _, limit := range p.Caps {
		for _, e := range limit.Engines {
			t.flat[e] = 0
		}
	}
	return t
}

// tied says whether pair k of source s is one of the cheapest, on an engine
// without delay.
func (t *ties) tied(s, k int) bool {
	price := t.s.SourcePriceMs[s]
	return !t.bound[s] && t.flat[t.p.Col[k]] > 0 && math.Abs(t.p.CostMs[k]-price) <= tie*math.Abs(price)
}

// build makes the program: the sources with several tied pairs, and how much
// each sends there.
func (t *ties) build() {
	t.sub = model.Problem{Work: model.WorkSingle, Row: []int{0}, Engines: slices.Clone(t.p.Engines)}
	other := make([]float64, len(t.p.Engines)) // work/s that stays on each engine
	moved := make([]float64, len(t.p.Engines)) // and that may move
	rps := make([]float64, len(t.p.Sources))   // of it, per source
	flows := t.s.Flows
	for s := range t.p.Sources {
		n := 0
		for n < len(flows) && flows[n].Pair < t.p.Row[s+1] {
			n++
		}
		rps[s] = t.move(s, flows[:n], other, moved)
		flows = flows[n:]
	}
	t.addEngines(other, moved)
	for s, source := range t.p.Sources {
		if source.DemandRPS = rps[s]; rps[s] == 0 {
			continue
		}
		t.sub.Sources = append(t.sub.Sources, source)
		for k := t.p.Row[s]; k < t.p.Row[s+1]; k++ {
			if e := t.p.Col[k]; t.tied(s, k) && t.sub.Engines[e].Delay != nil {
				t.pairs = append(t.pairs, k)
				t.sub.Col = append(t.sub.Col, e)
				t.sub.CostMs = append(t.sub.CostMs, 2*source.Work*other[e]/t.p.Engines[e].Capacity)
			}
		}
		t.sub.Row = append(t.sub.Row, len(t.pairs))
	}
}

// move returns what source s sends to engines that tie for it, if they are
// several, and adds its work to other or moved.
func (t *ties) move(s int, flows []model.Flow, other, moved []float64) (rps float64) {
	several := 0
	for k := t.p.Row[s]; k < t.p.Row[s+1] && several < 2; k++ {
		if t.tied(s, k) {
			several++
		}
	}
	work := t.p.Sources[s].Work
	for _, f := range flows {
		e := t.p.Col[f.Pair]
		if several > 1 && t.tied(s, f.Pair) {
			rps += f.RPS
			moved[e] += f.RPS * work
		} else {
			t.kept = append(t.kept, f)
			other[e] += f.RPS * work
		}
	}
	return rps
}

// addEngines gives those that tie and have room the delay D(v) = v, so that
// F = Y²/K; the marginal cost 2 w Y/K of what stays on them is that of pairs.
func (t *ties) addEngines(other, moved []float64) {
	line := []profile.Curve{{V: []float64{0, 1}, Ms: []float64{1, 2}}}
	for e := range t.sub.Engines {
		n := &t.sub.Engines[e]
		n.Limit = max(t.flat[e]-other[e], moved[e]) // rounding may have put more there
		n.Delay = nil
		if t.flat[e] > 0 && n.Limit > 0 {
			n.Delay, _ = profile.NewSink(n.Capacity, n.Limit, 1, line, []float64{1}) // all finite and > 0
		} else {
			n.Limit = 0
		}
	}
}
