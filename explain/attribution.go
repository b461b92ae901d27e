package explain

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/model"
)

// Attribution says how much of each change between two solves came from which
// group of inputs: the Shapley value, the mean over all orders in which the
// groups could have changed one after the other, of what each adds. The parts
// sum to the whole change, and a group that did not change has none.
//
// Where a mixture of old and new inputs cannot serve all demand, what it sheds
// counts at the larger of the prices that its source has in the two plans.
type Attribution struct {
	Groups []GroupPart `json:"groups"` // of those that changed
	Flows  []FlowPart  `json:"flows"`  // the largest change first
	// ObjectiveMsRPS and MeanLatencyMs are the changes that are attributed.
	ObjectiveMsRPS float64 `json:"objective_ms_rps"`
	MeanLatencyMs  float64 `json:"mean_latency_ms"`

	// Solved are the two plans that the inputs make.
	OldSolved *Outcome `json:"-"`
	NewSolved *Outcome `json:"-"`
}

// GroupPart is what one group of inputs changed.
type GroupPart struct {
	Group          string  `json:"group"`
	ObjectiveMsRPS float64 `json:"objective_ms_rps"`
	MeanLatencyMs  float64 `json:"mean_latency_ms"`
}

// FlowPart is the change of one flow in req/s, by group of inputs.
type FlowPart struct {
	Move
	By map[string]float64 `json:"by"`
}

// Inputs are what one plan is made from.
type Inputs struct {
	Fleet    *model.Fleet
	Previous model.Previous
}

// Attribute attributes the change from the best plan of the old inputs to that
// of the new ones. It solves every mixture of the groups that changed, at most
// 64. Work is the model of both.
func Attribute(ctx context.Context, old, now Inputs, work model.WorkKind) (*Attribution, error) {
	changed := changedGroups(old, now)
	outcomes := make([]*Outcome, 1<<len(changed))
	err := inParallel(ctx, len(outcomes), func(ctx context.Context, i int) error {
		mixed := mix(old, now, func(g group) bool {
			j := slices.Index(changed, g)
			return j >= 0 && i>>j&1 == 1
		})
		var err error
		if outcomes[i], err = Resolve(ctx, mixed.Fleet, solve.Options{Previous: mixed.Previous, Work: work}); err != nil {
			return fmt.Errorf("with some inputs old and some new: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	first, last := outcomes[0], outcomes[len(outcomes)-1]
	a := &Attribution{OldSolved: first, NewSolved: last}
	objective := shapley(len(changed), func(set int) float64 { return priced(outcomes[set], first, last) })
	latency := shapley(len(changed), func(set int) float64 { return outcomes[set].MeanLatencyMs })
	for j, g := range changed {
		a.Groups = append(a.Groups, GroupPart{groupNames[g], objective[j], latency[j]})
		a.ObjectiveMsRPS += objective[j]
		a.MeanLatencyMs += latency[j]
	}
	slices.SortStableFunc(a.Groups, func(x, y GroupPart) int {
		return cmp.Compare(math.Abs(y.ObjectiveMsRPS), math.Abs(x.ObjectiveMsRPS))
	})
	for _, m := range moves(first, last) {
		parts := shapley(len(changed), func(set int) float64 { return outcomes[set].source(m.Source).FlowRPS[m.Engine] })
		by := make(map[string]float64, len(changed))
		for j, g := range changed {
			by[groupNames[g]] = parts[j]
		}
		a.Flows = append(a.Flows, FlowPart{m, by})
	}
	return a, nil
}

// priced is the objective of an outcome with what it sheds at the larger of the
// source's prices in two others.
func priced(o, first, last *Outcome) float64 {
	total := o.ObjectiveMsRPS
	for _, s := range o.Sources {
		if shed := s.OfferedRPS - s.ServedRPS; shed > 1e-9*s.OfferedRPS {
			total += shed * max(first.source(s.Source).PriceMs, last.source(s.Source).PriceMs)
		}
	}
	return total
}

// shapley returns the Shapley values of n players, whose sets are bit masks:
//
//	phi_j = sum over sets S without j of |S|! (n-|S|-1)! / n! x (v(S+j) - v(S))
func shapley(n int, v func(set int) float64) []float64 {
	weight := make([]float64, n) // by size of S
	for size := range weight {
		weight[size] = 1 / (float64(n) * binomial(n-1, size))
	}
	phi := make([]float64, n)
	for set := range 1 << n {
		for j := range n {
			if set>>j&1 == 0 {
				phi[j] += weight[bits.OnesCount(uint(set))] * (v(set|1<<j) - v(set))
			}
		}
	}
	return phi
}

func binomial(n, k int) float64 {
	b := 1.0
	for i := range k {
		b = b * float64(n-i) / float64(i+1)
	}
	return b
}
