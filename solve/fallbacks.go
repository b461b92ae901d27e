package solve

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/figure"
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

// contingencyPairs bounds, over all contingencies of one solve, the pairs that
// are solved again: some seconds of work.
const contingencyPairs = 10_000_000

// DefaultContingencies is how many engines Contingencies loses unless told
// otherwise: all that are in use, on large fleets as many as a few seconds
// allow.
func (p *Plan) DefaultContingencies() int {
	return min(len(p.busiest()), contingencyPairs/max(1, p.Pairs()))
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

// coverage says which contingencies the fallbacks come from, and whether all
// demand could be served in each.
func (p *Plan) coverage(contingencies []Contingency) string {
	if len(contingencies) == 0 {
		return "fallbacks are the next engines by marginal cost; no loss of an engine was solved for"
	}
	used := len(p.busiest())
	text := fmt.Sprintf("fallbacks come from solving again without each of the %d engines in use", used)
	if len(contingencies) < used {
		text = fmt.Sprintf("fallbacks come from solving again without each of the %d busiest of %d engines in use; the others' are the next by marginal cost", len(contingencies), used)
	}
	worst := slices.MaxFunc(contingencies, func(a, b Contingency) int { return cmp.Compare(a.ShortRPS, b.ShortRPS) })
	if worst.ShortRPS > 1e-6 {
		return fmt.Sprintf("%s; without %s, %s req/s could not be served", text, p.Engines[worst.Lost].Name, figure.Rate(worst.ShortRPS))
	}
	return text + "; all demand could be served in each"
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
	out := make([][]snapshot.Fallback, len(p.Sources))
	for s := range p.Sources {
		out[s] = p.sourceFallbacks(s, gains, cause)
	}
	return out
}

func (p *Plan) sourceFallbacks(s int, gains map[int]float64, cause map[int]int) []snapshot.Fallback {
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
			free := max(0, p.Engines[e].Limit-p.Reader.Load(int(e)).Work)
			choose(k, free*share/p.Sources[s].Work, "next by marginal cost; its part of the free capacity")
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
