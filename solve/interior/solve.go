package interior

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/rows"
)

const (
	// Method is the name of the method in a solution.
	Method = "interior point"
	// acceptedGap is the certified gap at which an answer counts although the
	// steps stalled.
	acceptedGap = 1e-7
	// Margin is how far, relative, demand must stay below what just fits: the
	// method needs a point strictly inside all limits.
	Margin = 1e-10
)

// Solve returns a certified optimum of p, all of whose demand is routed. The
// error is a *model.Infeasible where that cannot be; what to shed then is
// decided elsewhere.
func Solve(ctx context.Context, p *model.Problem) (*model.Solution, error) {
	served := make([]float64, len(p.Sources))
	total := 0.0
	for s := range served {
		served[s] = p.Sources[s].DemandRPS
		total += served[s]
	}
	if total == 0 {
		g := rows.New(p, served)
		return g.Solution(Method, 0, nil, make([]float64, len(g.Rows))), nil
	}
	if err := unreachable(p); err != nil {
		return nil, err
	}
	sol, err := solveServed(ctx, rows.New(p, served), 1)
	if !errors.Is(err, errShort) && !errors.Is(err, errStalled) {
		return sol, err
	}
	if err := Explain(ctx, p); err != nil {
		return nil, err
	}
	return solveServed(ctx, rows.New(p, served), raised)
}

// errShort says that not all demand could be routed.
var errShort = errors.New("interior: not all demand can be routed at the price of shedding")

// raised is the factor on the price of shedding where all demand is known to
// be routable: prices beyond what full engines ask come from chains of moves.
const raised = 100

// solveServed routes what g serves at least cost.
func solveServed(ctx context.Context, g *rows.Program, factor float64) (*model.Solution, error) {
	shed := shedPrices(g)
	for s := range shed {
		shed[s] *= factor
	}
	c := newGenerator(g, goal{latency: true, shed: shed, price: 1}, settledPrices(g))
	o, err := c.run(ctx)
	if o == nil {
		return nil, err
	}
	if o.shortShare(o.pt) > shortRounding {
		return nil, errShort
	}
	return finish(ctx, c, o)
}

// shedPrices returns per source a price of shedding above what it can cost to
// make room for it: per unit of work, twice the largest difference between any
// source's dearest pair with every engine full and its cheapest without load.
func shedPrices(g *rows.Program) []float64 {
	y := make([]float64, len(g.Rows))
	for j := range y {
		if r := &g.Rows[j]; r.Sink != nil {
			y[j], _ = r.Sink.Marginal(r.Max)
		}
	}
	u := g.UnitPrices(y)
	perWork := 0.0
	var prices []float64
	for s := range g.Sources {
		prices = g.PairPrices(s, &u, y, prices)
		least, most := math.Inf(1), 0.0
		for i, price := range prices {
			k := g.Row[s] + i
			_, penalty := g.StayTerm(k)
			most = max(most, price+penalty)
			least = min(least, g.CostMs[k])
		}
		if g.Served[s] > 0 && len(prices) > 0 {
			spread := max(most-least, 1e-3*math.Abs(least))
			perWork = max(perWork, spread/g.Contents[rows.Work][s])
		}
	}
	shed := make([]float64, len(g.Sources))
	for s := range shed {
		shed[s] = 2 * perWork * g.Contents[rows.Work][s]
	}
	return shed
}

// finish takes the pairs that carry flow and solves over them alone, with no
// way to shed, until none drops out, so that what is dropped leaves no
// residual. It returns the best of the answers.
func finish(ctx context.Context, c *generator, o *outcome) (*model.Solution, error) {
	best := readAnswer(c, o, vanishing)
	if all := readAnswer(c, o, 0); all.better(best) {
		best = all
	}
	c.goal.shed = make([]float64, len(c.goal.shed))
	for last := readAnswer(c, o, vanishing); ; {
		c.clear()
		for _, f := range last.Flows {
			c.add(f.Pair)
		}
		o, err := c.solve(ctx, c.target()/10, feasibility/10)
		if err != nil && !errors.Is(err, errStalled) {
			return nil, err
		}
		a := readAnswer(c, o, vanishing)
		if a.better(best) {
			best = a
		}
		if err != nil || len(a.Flows) >= len(last.Flows) {
			break
		}
		last = a
	}
	if !(best.gap <= acceptedGap && best.over <= acceptedGap) {
		return nil, fmt.Errorf("%w: gap %.3g, residual %.3g", errStalled, best.gap, best.over)
	}
	return best.Solution, nil
}

// answer is a solution with its certified gap and its worst residual, both
// relative.
type answer struct {
	*model.Solution
	gap, over float64
}

func readAnswer(c *generator, o *outcome, part float64) answer {
	flows, y := o.flows(o.pt, part), o.prices(o.pt)
	bound, _ := c.g.Bound(y)
	a := answer{c.g.Solution(Method, c.steps, flows, y), math.Abs(rows.Gap(c.g.Objective(flows), bound)), missed(c.g, flows)}
	for j, t := range c.g.Activity(flows) {
		a.over = max(a.over, (t-c.g.Rows[j].Max)/o.unit[j], (c.g.Rows[j].Min-t)/o.unit[j])
	}
	return a
}

// missed returns the largest part of what a source serves that its flows miss.
func missed(g *rows.Program, flows []model.Flow) (worst float64) {
	left := slices.Clone(g.Served)
	s := 0
	for _, f := range flows {
		for f.Pair >= g.Row[s+1] {
			s++
		}
		left[s] -= f.RPS
	}
	for s, served := range g.Served {
		if served > 0 {
			worst = max(worst, math.Abs(left[s])/served)
		}
	}
	return worst
}

// better says whether a is the better answer: first by its residual where that
// matters, then by its gap, then by its flows, as what can be left out is
// rounding, then by what is left of both.
func (a answer) better(than answer) bool {
	const residual, gap = 5e-10, acceptedGap / 100
	return slices.Compare(
		[]float64{max(a.over, residual), max(a.gap, gap), float64(len(a.Flows)), max(a.over, feasibility), a.gap},
		[]float64{max(than.over, residual), max(than.gap, gap), float64(len(than.Flows)), max(than.over, feasibility), than.gap}) < 0
}
