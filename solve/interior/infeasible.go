package interior

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/rows"
)

// shortRounding is the part of all work that may seem short by rounding.
const shortRounding = 1e-9

// unreachable returns an error that names the sources whose pairs alone cannot
// carry their demand, whatever the engines take.
func unreachable(p *model.Problem) error {
	e := &model.Infeasible{}
	for s, src := range p.Sources {
		reach := 0.0
		for k := p.Row[s]; k < p.Row[s+1]; k++ {
			if p.Engines[p.Col[k]].Limit <= 0 {
				continue
			}
			upper := src.DemandRPS
			if p.Upper != nil {
				upper = min(upper, p.Upper[k])
			}
			reach += upper
		}
		if short := src.DemandRPS - reach; short > shortRounding*src.DemandRPS {
			e.Sources = append(e.Sources, s)
			e.DemandWork += src.DemandRPS * src.Work
			e.ReachWork += reach * src.Work
			e.ShortRPS += short
			e.ShortWork += short * src.Work
			for k := p.Row[s]; reach > 0 && k < p.Row[s+1]; k++ {
				e.Pairs = append(e.Pairs, k)
			}
		}
	}
	if e.Sources == nil {
		return nil
	}
	return e
}

// Explain finds out why not all of p can be served: it serves as much work as
// possible, with a way out of every minimum, and reads the binding set off the
// prices. Lower bounds become groups of one engine for that. The error is a
// *model.Infeasible; nil if all can be served.
func Explain(ctx context.Context, p *model.Problem) error {
	elastic, bound := withoutLower(p)
	served := make([]float64, len(p.Sources))
	weight := make([]float64, len(p.Sources))
	for s, src := range p.Sources {
		served[s], weight[s] = src.DemandRPS, src.Work
	}
	missed := make([]float64, len(elastic.Groups))
	for i, group := range elastic.Groups {
		missed[i] = 2 * p.Sources[group.Source].Work
	}
	g := rows.New(elastic, served)
	c := newGenerator(g.Free(), goal{shed: weight, missed: missed, price: slices.Max(weight)}, make([]float64, len(g.Rows)))
	o, err := c.run(ctx)
	if err != nil && (o == nil || !errors.Is(err, errStalled)) {
		return err
	}
	return o.infeasible(p, bound)
}

// withoutLower returns p with its lower bounds as groups, and the pair of each
// of those groups.
func withoutLower(p *model.Problem) (elastic *model.Problem, bound []int) {
	copied := *p
	copied.Lower = nil
	copied.Groups = slices.Clone(p.Groups)
	for s := range p.Sources {
		for k := p.Row[s]; p.Lower != nil && k < p.Row[s+1]; k++ {
			if p.Lower[k] > 0 {
				bound = append(bound, k)
				copied.Groups = append(copied.Groups, model.Group{
					Source: s, Engines: []int32{p.Col[k]}, MinRPS: p.Lower[k], MaxRPS: math.Inf(1),
				})
			}
		}
	}
	return &copied, bound
}

// infeasible reads the binding set off an outcome; nil if nothing is short.
// bound are the pairs of the groups that stand for lower bounds.
func (o *outcome) infeasible(p *model.Problem, bound []int) error {
	e := &model.Infeasible{}
	total := 0.0
	short := o.short()
	for s, short := range short {
		src := p.Sources[s]
		total += src.DemandRPS * src.Work
		e.ShortRPS += short
		e.ShortWork += short * src.Work
	}
	if e.ShortWork <= shortRounding*total {
		return nil
	}
	cut := o.cut()
	e.Sources, e.Engines, e.Caps = cut.Sources, cut.Engines, cut.Caps
	row := o.prices(o.pt)
	for i, group := range o.g.Groups {
		work := o.g.Contents[rows.Work][group.Source]
		switch binds := math.Abs(row[o.g.GroupRow+i]) > inCut*work; {
		case binds && i < len(p.Groups):
			e.Groups = append(e.Groups, i)
		case binds:
			e.Pairs = append(e.Pairs, bound[i-len(p.Groups)])
		}
	}
	for s := range short {
		if short[s] > shortRounding*p.Sources[s].DemandRPS && !slices.Contains(e.Sources, s) {
			e.Sources = append(e.Sources, s) // short of a minimum alone
		}
	}
	slices.Sort(e.Sources)
	for _, s := range e.Sources {
		e.DemandWork += p.Sources[s].DemandRPS * p.Sources[s].Work
		e.Pairs = append(e.Pairs, o.fullPairs(s, cut.Engines)...)
	}
	slices.Sort(e.Pairs)
	e.Pairs = slices.Compact(e.Pairs)
	e.ReachWork = e.DemandWork - e.ShortWork
	return e
}

// short returns what each source lacks in req/s: what it sheds, or by how much
// it misses its minima if that is more.
func (o *outcome) short() []float64 {
	short, missed := make([]float64, len(o.g.Sources)), make([]float64, len(o.g.Sources))
	for i, group := range o.g.Groups {
		if v := o.missed[i]; v >= 0 && o.pt.v[v] > o.pt.z[v] {
			missed[group.Source] += o.pt.v[v] * o.unit[o.g.GroupRow+i]
		}
	}
	for s, v := range o.shed {
		if v >= 0 && o.pt.v[v] > o.pt.z[v] {
			short[s] = o.pt.v[v] * o.g.Served[s]
		}
		short[s] = max(short[s], missed[s])
	}
	return short
}

// inCut is the price, as a part of the price of shedding, above which a source
// or limit is on the saturated side. Any number below 1 gives a minimum cut.
const inCut = 0.5

// cut returns the saturated side: sources that cannot be served in full, and
// the limits that keep them from it.
func (o *outcome) cut() (in model.ShedCut) {
	source, row := o.sourcePrices(o.pt), o.prices(o.pt)
	for s := range source {
		if source[s] > inCut*o.g.Contents[rows.Work][s] {
			in.Sources = append(in.Sources, s)
		}
	}
	for e, entries := range o.g.Entries {
		for _, entry := range entries {
			// A token of a split row is at most some work; any price of it counts.
			if int(entry.Row) < o.g.CapRow && row[entry.Row] > inCut {
				in.Engines = append(in.Engines, e)
				break
			}
		}
	}
	for i := range o.g.Caps {
		if row[o.g.CapRow+i] > inCut {
			in.Caps = append(in.Caps, i)
		}
	}
	for i, group := range o.g.Groups {
		if row[o.g.GroupRow+i] > inCut*o.g.Contents[rows.Work][group.Source] {
			in.Groups = append(in.Groups, i)
		}
	}
	return in
}

// fullPairs returns the pairs of a source that their upper bound keeps from
// taking more, onto engines outside the cut.
func (o *outcome) fullPairs(s int, engines []int) (full []int) {
	for _, p := range o.parts {
		if p.source != s || math.IsInf(p.width, 1) || slices.Contains(engines, int(o.g.Col[p.pair])) {
			continue
		}
		if o.q.u[p.variable]-o.pt.v[p.variable] < o.pt.w[p.variable] {
			full = append(full, p.pair)
		}
	}
	return full
}
