package bench

import (
	"math"
	"strings"

	"github.com/irb-project/irb/solve/figure"
)

// DefaultOutputTokenWork is the policy's output_token_work unless it says
// another.
const DefaultOutputTokenWork = 4

// Work is the estimate of output_token_work r from the capacities C_i of one
// configuration at several request shapes of p_i prompt and o_i output tokens.
// If work is p + r o, an engine of work capacity W has C_i (p_i + r o_i) = W.
// With a = 1/W and b = r/W the estimate is
//
//	minimize sum_i (C_i (a p_i + b o_i) - 1)²,  r = b/a
//
// linear least squares in the relative error of capacity.
type Work struct {
	Labels []Label `json:"labels"`
	Shapes int     `json:"shapes"`
	// OutputTokenWork is r; 0 if the shapes do not tell it, see Reason.
	OutputTokenWork float64 `json:"output_token_work"`
	Reason          string  `json:"reason,omitempty"`
	// WorstRelError is the largest error of capacity with this r, and with the
	// default of the policy; 2 shapes always fit.
	WorstRelError        float64 `json:"worst_rel_error"`
	DefaultWorstRelError float64 `json:"default_worst_rel_error"`
}

// EstimateWork returns an estimate for every configuration that has capacities
// at two shapes or more. Where saturation was not reached there is none.
func EstimateWork(profiles []*Profile) []Work {
	var order []string
	families := make(map[string][]*Profile)
	for _, p := range profiles {
		if p.CapacityRPS == 0 || p.CapacityAtLeast || len(p.Points) < 2 {
			continue
		}
		key := labelKey(p.Labels)
		if families[key] == nil {
			order = append(order, key)
		}
		families[key] = append(families[key], p)
	}
	var list []Work
	for _, key := range order {
		if family := families[key]; len(family) > 1 {
			list = append(list, estimateWork(family))
		}
	}
	return list
}

func estimateWork(family []*Profile) Work {
	w := Work{Labels: family[0].Labels, Shapes: len(family)}
	var xx, xy, yy, x1, y1 float64
	for _, p := range family {
		x, y := p.CapacityRPS*p.PromptTokens, p.CapacityRPS*p.OutputTokens
		xx, xy, yy, x1, y1 = xx+x*x, xy+x*y, yy+y*y, x1+x, y1+y
	}
	w.DefaultWorstRelError = worstError(family, DefaultOutputTokenWork)
	det := xx*yy - xy*xy // 0: all have the same mix
	if det <= 1e-6*xx*yy {
		w.Reason = "all shapes have the same ratio of output to prompt tokens"
		return w
	}
	a, b := (yy*x1-xy*y1)/det, (xx*y1-xy*x1)/det
	switch {
	case a <= 0:
		w.Reason = "capacity does not depend on prompt tokens in these runs"
		return w
	case b <= 0:
		w.Reason = "capacity does not depend on output tokens in these runs"
		return w
	}
	w.OutputTokenWork = round(b/a, 3)
	w.WorstRelError = worstError(family, w.OutputTokenWork)
	return w
}

// worstError returns the largest relative error of capacity with r, the work
// capacity being that of least relative squares.
func worstError(family []*Profile, r float64) float64 {
	var ss, s1 float64
	work := make([]float64, len(family))
	for i, p := range family {
		work[i] = p.CapacityRPS * (p.PromptTokens + r*p.OutputTokens)
		ss, s1 = ss+work[i]*work[i], s1+work[i]
	}
	worst := 0.0
	for _, w := range work {
		worst = max(worst, math.Abs(w*s1/ss-1))
	}
	return worst
}

// String says the estimate in a sentence.
func (w Work) String() string {
	byDefault := "4 would be off by up to " + figure.Percent(w.DefaultWorstRelError)
	if w.OutputTokenWork == 0 {
		return "output_token_work: none, " + w.Reason + "; " + byDefault
	}
	text := "output_token_work = " + figure.Number(w.OutputTokenWork, 3)
	if w.Shapes == 2 {
		return text + " from 2 request shapes, which always fit exactly; a third would test it; " + byDefault
	}
	return text + " from " + figure.Number(float64(w.Shapes), 3) + " request shapes: as one number it is off by up to " +
		figure.Percent(w.WorstRelError) + " of capacity; " + byDefault
}

// Name says which configuration an estimate is of.
func (w Work) Name() string {
	var values []string
	for _, l := range w.Labels {
		if l.Value != "" {
			values = append(values, l.Value)
		}
	}
	return strings.Join(values, " ")
}
