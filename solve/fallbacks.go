package solve

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/figure"
	"github.com/irb-project/irb/solve/network"
)

// fallbackDomains is in how many failure domains beside those it uses each
// source has fallbacks, where so many are eligible.
const fallbackDomains = 2

// Contingency is the best plan after one used engine is lost.
type Contingency struct {
	Lost     int             // engine node
	Gains    map[int]float64 // by pair of the sources that used it: req/s beyond plan
	ShortRPS float64         // what could not be served any more
}

// contingencyPairs bounds, over all contingencies of one solve, the pairs that
// are solved again: some seconds of work.
const contingencyPairs = 10_000_000

// interiorWork is how many times longer a pair takes where the program is no
// network (measured: 0.5 against 28 us on 96 sources x 100 engines), rounded
// down, as fallbacks that were solved for are worth some more seconds.
const interiorWork = 20

// DefaultContingencies is how many engines Contingencies loses unless told
// otherwise: all that are in use, on large fleets as many as a few seconds
// allow.
func (p *Plan) DefaultContingencies() int {
	pairs := max(1, p.Pairs())
	if network.Supports(p.Problem) != nil {
		pairs *= interiorWork
	}
	return min(len(p.busiest()), contingencyPairs/pairs)
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

// lose solves the program without an engine, from the plan with it. What cannot be served is shed by
// priority, as a contingency is no reason to refuse a plan.
func (p *Plan) lose(ctx context.Context, e int) (Contingency, error) {
	reduced := p.Problem.Without(e)
	c := Contingency{Lost: e, Gains: make(map[int]float64)}
	solution, _, err := Certified(ctx, reduced.Problem, reduced.Narrow(p.Solution.Flows))
	if err != nil {
		return c, err
	}
	planned := make(map[int]float64, len(p.Solution.Flows))
	touched := make([]bool, len(p.Sources))
	for s := range p.Sources {
		for _, f := range p.Reader.Flows(s) {
			planned[f.Pair] = f.RPS
			touched[s] = touched[s] || int(p.Col[f.Pair]) == e
		}
	}
	s := 0
	for _, f := range solution.Flows { // in order of pair
		k := reduced.PairOf[f.Pair]
		for k >= p.Row[s+1] {
			s++
		}
		if gain := f.RPS - planned[k]; touched[s] && gain > 1e-9*f.RPS {
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
	domainsUsed := make(map[string]bool)
	for _, f := range p.Reader.Flows(s) {
		domainsUsed[p.Engines[p.Col[f.Pair]].Domain] = true
	}
	var out []snapshot.Fallback
	otherDomains := make(map[string]bool) // of fallbacks, none of them used at plan
	chosen := make(map[int]bool)
	choose := func(k int, absorbRPS float64, text string) {
		chosen[k] = true
		if domain := p.Engines[p.Col[k]].Domain; !domainsUsed[domain] {
			otherDomains[domain] = true
		}
		out = append(out, snapshot.Fallback{Engine: p.Engines[p.Col[k]].Name, AbsorbRPS: absorbRPS, Text: text})
	}
	ranked := p.Reader.Ranked(s) // unused pairs, cheapest first
	for _, k := range ranked {
		if gain := gains[k]; gain > 0 {
			choose(k, gain, fmt.Sprintf("takes over most cheaply when %s is lost", p.Engines[cause[k]].Name))
		}
	}
	share := p.Sources[s].DemandRPS * p.Sources[s].Work / p.totalWork()
	next := func(wanted func(domain string) bool) {
		for _, k := range ranked {
			e := p.Col[k]
			if chosen[k] || !wanted(p.Engines[e].Domain) {
				continue
			}
			free := p.Engines[e].Limit - p.Reader.Load(int(e)).Work
			if free <= 1e-9*p.Engines[e].Limit {
				choose(k, 0, "next by marginal cost; full at plan, a last resort")
				continue
			}
			choose(k, free*share/p.Sources[s].Work, "next by marginal cost; its part of the free capacity")
		}
	}
	next(func(domain string) bool {
		return len(otherDomains) < fallbackDomains && !domainsUsed[domain] && !otherDomains[domain]
	})
	next(func(string) bool { return len(out) < fallbackDomains })
	return out
}

func (p *Plan) totalWork() (work float64) {
	for _, s := range p.Sources {
		work += s.DemandRPS * s.Work
	}
	return work
}
