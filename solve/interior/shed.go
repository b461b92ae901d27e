package interior

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/rows"
)

const (
	// fairness is the curvature of the cost of shedding: small, so that the
	// most work is served even where sources are no polymatroid.
	fairness = 0.1
	// shedRounding is the fraction of demand shed that is rounding.
	shedRounding = 1e-8
	// inCut is the price, as a part of the price of shedding, above which a
	// source or limit is on the saturated side. Any number below 1 gives a
	// minimum cut.
	inCut = 0.5
)

// Shed returns what each source can have served when not all can: by priority,
// highest first, as much work as possible, in equal fractions where reachable;
// and a cut per priority that proves it.
func Shed(ctx context.Context, p *model.Problem) (served []float64, cuts []model.ShedCut, err error) {
	served = make([]float64, len(p.Sources))
	var cut model.ShedCut
	shedding := false
	for _, priority := range priorities(p) {
		weight := make([]float64, len(p.Sources))
		for s := range p.Sources {
			if p.Sources[s].Priority == priority {
				served[s] = p.Sources[s].DemandRPS
				weight[s] = p.Sources[s].Work
			}
		}
		o, err := allot(ctx, p, served, weight)
		if err != nil {
			return nil, nil, err
		}
		for s, v := range o.shed {
			if v >= 0 && o.pt.v[v] > shedRounding {
				// A little less than the most leaves room for rounding.
				served[s] *= max(0, 1-o.pt.v[v]-1e-11)
				shedding = true
			}
		}
		cut = o.cut(cut)
		cut.Priority = priority
		if shedding {
			cuts = append(cuts, cut)
		}
	}
	return served, cuts, nil
}

func priorities(p *model.Problem) []int {
	var all []int
	for s := range p.Sources {
		all = append(all, p.Sources[s].Priority)
	}
	slices.SortFunc(all, func(a, b int) int { return cmp.Compare(b, a) })
	return slices.Compact(all)
}

// allot serves as much work as possible of the sources with a weight, and all
// of the others.
func allot(ctx context.Context, p *model.Problem, served, weight []float64) (*outcome, error) {
	g := rows.New(p, served)
	c := newGenerator(g.Free(), goal{shed: weight, fairness: fairness, price: slices.Max(weight)}, make([]float64, len(g.Rows)))
	o, err := c.run(ctx)
	if errors.Is(err, errStalled) {
		if infeasible := explain(ctx, p); infeasible != nil {
			return nil, infeasible
		}
	}
	return o, err
}

// cut returns the saturated side, joined with that of higher priorities: what
// of it is saturated stays so.
func (o *outcome) cut(above model.ShedCut) model.ShedCut {
	source, row := o.sourcePrices(o.pt), o.prices(o.pt)
	in := model.ShedCut{}
	for s := range source {
		w := o.g.Contents[rows.Work][s]
		if o.g.Served[s] > 0 && source[s] > inCut*w || slices.Contains(above.Sources, s) {
			in.Sources = append(in.Sources, s)
		}
	}
	for e, entries := range o.g.Entries {
		full := slices.Contains(above.Engines, e)
		for _, entry := range entries {
			full = full || int(entry.Row) < o.g.CapRow && entry.Kind == rows.Work && row[entry.Row] > inCut
		}
		if full {
			in.Engines = append(in.Engines, e)
		}
	}
	for i := range o.g.Caps {
		if row[o.g.CapRow+i] > inCut || slices.Contains(above.Caps, i) {
			in.Caps = append(in.Caps, i)
		}
	}
	for i, group := range o.g.Groups {
		w := o.g.Contents[rows.Work][group.Source]
		if math.Abs(row[o.g.GroupRow+i]) > inCut*w || slices.Contains(above.Groups, i) {
			in.Groups = append(in.Groups, i)
		}
	}
	return in
}
