package solve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/figure"
	"github.com/irb-project/irb/solve/model"
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
	Unsolved error           // why there is no such plan; the rest is empty then
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
// busiest first, at most n of them. One that cannot be solved says so and is no
// reason to refuse the plan; the only error is the context's.
func (p *Plan) Contingencies(ctx context.Context, n int) ([]Contingency, error) {
	lost := p.busiest()
	contingencies := make([]Contingency, 0, min(n, len(lost)))
	for _, e := range lost[:min(n, len(lost))] {
		c := p.lose(ctx, e)
		if err := ctx.Err(); err != nil {
			return nil, err
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
	solved := len(contingencies)
	for _, c := range contingencies {
		if c.Unsolved != nil {
			solved--
			text += fmt.Sprintf("; without %s none was found (%v)", p.Engines[c.Lost].Name, c.Unsolved)
		}
	}
	if solved == 0 {
		return text
	}
	worst := slices.MaxFunc(contingencies, func(a, b Contingency) int { return cmp.Compare(a.ShortRPS, b.ShortRPS) })
	if worst.ShortRPS > 1e-6 {
		return fmt.Sprintf("%s; without %s, %s req/s could not be served", text, p.Engines[worst.Lost].Name, figure.Rate(worst.ShortRPS))
	}
	if solved < len(contingencies) {
		return text + "; all demand could be served in each of the others"
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

// lose solves the program without an engine, from the plan with it. A loss is no
// reason to refuse a plan: what cannot be served is shed by priority, and least
// shares give way where they cannot be kept.
func (p *Plan) lose(ctx context.Context, e int) Contingency {
	reduced := p.Problem.Without(e)
	c := Contingency{Lost: e, Gains: make(map[int]float64)}
	start := reduced.Narrow(p.Solution.Flows)
	solution, _, err := Certified(ctx, reduced.Problem, start)
	if errors.As(err, new(*model.Infeasible)) {
		solution, _, err = Certified(ctx, reduced.WithoutMinima().Problem, start)
	}
	if err != nil {
		c.Unsolved = err
		return c
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
	return c
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
	chooser := newChooser(p.Engines)
	for _, k := range p.usedPairs(s) {
		chooser.use(int(p.Col[k]))
	}
	ranked := p.Reader.Ranked(s) // unused pairs, cheapest first
	for _, k := range ranked {
		if gain := gains[k]; gain > 0 {
			chooser.choose(int(p.Col[k]), gain, fmt.Sprintf("takes over most cheaply when %s is lost", p.Engines[cause[k]].Name))
		}
	}
	engines := make([]int, len(ranked))
	for i, k := range ranked {
		engines[i] = int(p.Col[k])
	}
	part := p.Sources[s].DemandRPS / p.totalWork() // req/s of this source in a unit of all work
	return chooser.fill(engines, func(e int) (float64, string) {
		free, allowed := p.Reader.FreeWork(e)*part, p.Reader.ShareLeft(s, e)
		switch room := min(free, allowed); {
		case room <= roundingRPS*p.Sources[s].DemandRPS:
			return 0, "next by marginal cost; full at plan, a last resort"
		case allowed < free:
			return room, "next by marginal cost; what its share allows"
		default:
			return room, "next by marginal cost; its part of the free capacity"
		}
	})
}

// usedPairs returns the pairs of the weights of a source: those with flow, or
// where all of it is shed the cheapest.
func (p *Plan) usedPairs(s int) (pairs []int) {
	for _, f := range p.Reader.Flows(s) {
		pairs = append(pairs, f.Pair)
	}
	if pairs == nil {
		pairs = p.Reader.Ranked(s)[:1]
	}
	return pairs
}

func (p *Plan) totalWork() (work float64) {
	for _, s := range p.Sources {
		work += s.DemandRPS * s.Work
	}
	return work
}

// chooser gathers the fallbacks of one source: no engine twice, and none that
// has a weight.
type chooser struct {
	engines   []model.EngineNode
	taken     map[int]bool
	used      map[string]bool // failure domains of weights
	others    map[string]bool // failure domains of fallbacks, none of them used
	fallbacks []snapshot.Fallback
}

func newChooser(engines []model.EngineNode) *chooser {
	return &chooser{engines: engines, taken: make(map[int]bool), used: make(map[string]bool), others: make(map[string]bool)}
}

// use notes that the source has a weight on an engine.
func (c *chooser) use(e int) {
	c.taken[e], c.used[c.engines[e].Domain] = true, true
}

func (c *chooser) choose(e int, absorbRPS float64, text string) {
	c.taken[e] = true
	if domain := c.engines[e].Domain; !c.used[domain] {
		c.others[domain] = true
	}
	c.fallbacks = append(c.fallbacks, snapshot.Fallback{Engine: c.engines[e].Name, AbsorbRPS: absorbRPS, Text: text})
}

// fill chooses of ranked engines, best first: in other failure domains until
// there are fallbackDomains of them, then any until there are as many fallbacks.
// Absorb tells what an engine may take, and why it is a fallback.
func (c *chooser) fill(ranked []int, absorb func(e int) (rps float64, text string)) []snapshot.Fallback {
	pass := func(wanted func(domain string) bool) {
		for _, e := range ranked {
			if !c.taken[e] && wanted(c.engines[e].Domain) {
				rps, text := absorb(e)
				c.choose(e, rps, text)
			}
		}
	}
	pass(func(domain string) bool {
		return len(c.others) < fallbackDomains && !c.used[domain] && !c.others[domain]
	})
	pass(func(string) bool { return len(c.fallbacks) < fallbackDomains })
	return c.fallbacks
}
