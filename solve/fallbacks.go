package solve

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/irb-project/irb/agent/snapshot"
)

// fallbackDomains is in how many failure domains each source has fallbacks,
// where so many are eligible.
const fallbackDomains = 2

// Contingency is the best plan after one used engine is lost.
type Contingency struct {
	Lost     int             // engine node
	Gains    map[int]float64 // by pair of the whole problem, req/s beyond plan
	ShortRPS float64         // what could not be served any more
}

// Contingencies re-solves the program with each used engine lost in turn, the
// busiest first, at most n of them.
func (p *Plan) Contingencies(ctx context.Context, n int) ([]Contingency, error) {
	lost := p.busiest()
	contingencies := make([]Contingency, 0, min(n, len(lost)))
	for _, e := range lost[:min(n, len(lost))] {
		c, err := p.lose(ctx, e)
		if err != nil {
			return nil, fmt.Errorf("without engine %q: %w", p.Engines[e].Name, err)
		}
		contingencies = append(contingencies, c)
	}
	return contingencies, nil
}

// busiest returns the engines in use, most work first.
func (p *Plan) busiest() []int {
	var engines []int
	for e := range p.Engines {
		if p.Reader.Load(e).Work > 0 {
			engines = append(engines, e)
		}
	}
	slices.SortStableFunc(engines, func(a, b int) int {
		return cmp.Compare(p.Reader.Load(b).Work, p.Reader.Load(a).Work)
	})
	return engines
}

// lose solves the program without an engine. What cannot be served is shed by
// priority, as a contingency is no reason to refuse a plan.
func (p *Plan) lose(ctx context.Context, e int) (Contingency, error) {
	reduced := p.Problem.Without(e)
	c := Contingency{Lost: e, Gains: make(map[int]float64)}
	solution, _, err := solveCertified(ctx, reduced.Problem)
	if err != nil {
		return c, err
	}
	planned := make(map[int]float64, len(p.Solution.Flows))
	for _, f := range p.Solution.Flows {
		planned[f.Pair] = f.RPS
	}
	for _, f := range solution.Flows {
		k := reduced.PairOf[f.Pair]
		if gain := f.RPS - planned[k]; gain > 1e-9*f.RPS {
			c.Gains[k] = gain
		}
	}
	for s := range p.Sources {
		c.ShortRPS += p.Solution.ServedRPS[s]
	}
	for _, served := range solution.ServedRPS {
		c.ShortRPS -= served
	}
	c.ShortRPS = max(0, c.ShortRPS)
	return c, nil
}

// fallbacks returns the fallbacks of each source: first the engines that take
// over in the contingencies that touch it, with what they take; then the next
// by marginal cost, other failure domains first, until there are
// fallbackDomains of them.
func (p *Plan) fallbacks(contingencies []Contingency) [][]snapshot.Fallback {
	gains := make(map[int]float64) // by pair: the most it takes over
	cause := make(map[int]int)
	for _, c := range contingencies {
		for k, gain := range c.Gains {
			if gain > gains[k] {
				gains[k], cause[k] = gain, c.Lost
			}
		}
	}
	headroom := p.headroomAfter(contingencies)
	out := make([][]snapshot.Fallback, len(p.Sources))
	for s := range p.Sources {
		out[s] = p.sourceFallbacks(s, gains, cause, headroom)
	}
	return out
}

// headroomAfter returns, per engine, the work/s left free in every contingency.
func (p *Plan) headroomAfter(contingencies []Contingency) []float64 {
	headroom := make([]float64, len(p.Engines))
	for e, node := range p.Engines {
		headroom[e] = max(0, node.Limit-p.Reader.Load(e).Work)
	}
	free := slices.Clone(headroom)
	for _, c := range contingencies {
		taken := make([]float64, len(p.Engines))
		s := 0
		for _, k := range slices.Sorted(mapKeys(c.Gains)) {
			for k >= p.Row[s+1] {
				s++
			}
			taken[p.Col[k]] += c.Gains[k] * p.Sources[s].Work
		}
		for e := range free {
			free[e] = min(free[e], max(0, headroom[e]-taken[e]))
		}
	}
	return free
}

func mapKeys[V any](m map[int]V) func(func(int) bool) {
	return func(yield func(int) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (p *Plan) sourceFallbacks(s int, gains map[int]float64, cause map[int]int, headroom []float64) []snapshot.Fallback {
	used := make(map[int]bool)
	for _, f := range p.Reader.Flows(s) {
		used[f.Pair] = true
	}
	var out []snapshot.Fallback
	domains := make(map[string]bool)
	chosen := make(map[int]bool)
	choose := func(k int, absorbRPS float64, text string) {
		e := p.Col[k]
		chosen[k], domains[p.Engines[e].Domain] = true, true
		out = append(out, snapshot.Fallback{Engine: p.Engines[e].Name, AbsorbRPS: absorbRPS, Text: text})
	}
	ranked := p.Reader.Ranked(s) // unused pairs, cheapest first
	for _, k := range ranked {
		if gain := gains[k]; gain > 0 && !used[k] {
			choose(k, gain, fmt.Sprintf("takes over most cheaply when %s is lost", p.Engines[cause[k]].Name))
		}
	}
	share := p.Sources[s].DemandRPS * p.Sources[s].Work / p.totalWork()
	for pass := range 2 {
		for _, k := range ranked {
			e := p.Col[k]
			if len(out) >= fallbackDomains && len(domains) >= fallbackDomains {
				return out
			}
			if chosen[k] || (pass == 0 && domains[p.Engines[e].Domain]) || (pass == 1 && len(out) >= fallbackDomains) {
				continue
			}
			choose(k, headroom[e]*share/p.Sources[s].Work, "next by marginal cost; its part of the free capacity")
		}
	}
	return out
}

func (p *Plan) totalWork() (work float64) {
	for _, s := range p.Sources {
		work += s.DemandRPS * s.Work
	}
	return work
}
