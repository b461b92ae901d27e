package reason

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/figure"
	"github.com/irb-project/irb/solve/model"
)

// Codes of reasons, stable for machines.
const (
	CodeOnlyEligible = "only-eligible" // nothing else may serve the source
	CodeCheapest     = "cheapest"      // all requests go where one more is cheapest
	CodeAtLimit      = "at-limit"      // the engine carries all it may; the rest goes elsewhere
	CodeQueueing     = "queueing"      // more here would queue for longer than elsewhere costs
	CodeSpill        = "spill"         // takes what the preferred engine does not
	CodeMaxShare     = "max-share"     // a share, rule or cap stops it
	CodeMinShare     = "min-share"     // a rule demands it
	CodeCache        = "cache"         // stays for its KV cache
	CodeTie          = "tie"           // another engine costs exactly the same
	CodeIdle         = "idle"          // no demand; where the first request would go
	CodeShed         = "shed"          // all demand is shed; where a request would go
	CodeLoses        = "loses"         // an alternative that costs more
)

// tieMs is the difference in ms under which two marginal costs are the same.
const tieMs = 1e-6

// Option is an eligible engine of a source with what one more request costs.
type Option struct {
	Pair   int
	Engine int
	RPS    float64 // 0: not used
	Cost   snapshot.Cost
}

// Options returns the used engines of a source in order of engine, and the
// next best ones that it does not use, cheapest first, at most `alternatives`.
func (r *Reader) Options(s, alternatives int) (used, unused []Option) {
	for _, f := range r.Flows(s) {
		used = append(used, r.option(s, f.Pair, f.RPS))
	}
	ranked := r.Ranked(s)
	for _, k := range ranked[:min(alternatives, len(ranked))] {
		unused = append(unused, r.option(s, k, 0))
	}
	return used, unused
}

func (r *Reader) option(s, k int, rps float64) Option {
	return Option{Pair: k, Engine: int(r.c.Col[k]), RPS: rps, Cost: r.Cost(s, k)}
}

// total is Cost(s, k).Total of an unused pair from prices alone: it ranks the
// pairs of a source without working out the parts of each.
func (r *Reader) total(s, k int) float64 {
	total := r.priced(s, k)
	if r.c.Stay != nil && r.c.Stay[k] > 0 {
		total -= r.c.StayPenaltyMs[k]
	}
	return total
}

// priced is the cost of a request on pair k in ms by the prices of its engine,
// groups and caps.
func (r *Reader) priced(s, k int) float64 {
	source, e := r.c.Sources[s], int(r.c.Col[k])
	ms := r.c.CostMs[k] + source.Work*r.sol.EnginePrice[e]
	if r.sol.PrefillPrice != nil {
		ms += source.PromptTokens*r.sol.PrefillPrice[e] + source.OutputTokens*r.sol.OutputPrice[e]
	}
	if len(r.groupsOf[s]) > 0 || len(r.capsOf[e]) > 0 {
		ms += r.sharePrice(s, e)
	}
	return ms
}

// Weights returns the weights of a source, in order of engine, with fraction,
// cost, code and sentence; quotas are the layout's.
func (r *Reader) Weights(s int, used, unused []Option) []snapshot.Weight {
	weights := make([]snapshot.Weight, len(used))
	var served float64
	for _, o := range used {
		served += o.RPS
	}
	demand := r.c.SourceDemand[s]
	t := teller{r: r, s: s, used: used, unused: unused}
	for i, o := range used {
		code, text := t.weight(o)
		weights[i] = snapshot.Weight{
			Engine: r.c.Engines[o.Engine].Name, Fraction: o.RPS / served, RPS: o.RPS,
			RTTMs: r.c.RTTMs(demand, o.Engine), Cost: o.Cost, Code: code, Text: text,
		}
	}
	return weights
}

// Alternatives tells why each unused option lost.
func (r *Reader) Alternatives(s int, used, unused []Option) []snapshot.Alternative {
	alternatives := make([]snapshot.Alternative, len(unused))
	t := teller{r: r, s: s, used: used, unused: unused}
	for i, o := range unused {
		code, text := t.alternative(o)
		alternatives[i] = snapshot.Alternative{
			Engine: r.c.Engines[o.Engine].Name, LosesByMs: max(0, o.Cost.Total-r.sol.SourcePriceMs[s]),
			Cost: o.Cost, Code: code, Text: text,
		}
	}
	return alternatives
}

// Ranked returns the unused pairs of a source, cheapest first.
func (r *Reader) Ranked(s int) []int {
	flows := r.Flows(s)
	type priced struct {
		pair  int
		total float64
	}
	var rest []priced
	i := 0
	for k := r.c.Row[s]; k < r.c.Row[s+1]; k++ {
		if i < len(flows) && flows[i].Pair == k {
			i++
			continue
		}
		rest = append(rest, priced{k, r.total(s, k)})
	}
	slices.SortFunc(rest, func(a, b priced) int {
		return cmp.Or(cmp.Compare(a.total, b.total), cmp.Compare(a.pair, b.pair))
	})
	pairs := make([]int, len(rest))
	for i, p := range rest {
		pairs[i] = p.pair
	}
	return pairs
}

// IdleOptions returns where the first request of a row of Fleet.Demand without
// demand would go, cheapest first.
func (r *Reader) IdleOptions(demand int) []Option {
	source := r.c.SourceOf(demand)
	var options []Option
	for _, e := range r.c.EligibleEngines(demand) {
		cost := r.EngineCost(source, int(e))
		cost.Net, cost.Base = r.c.NetMs(demand, int(e)), r.c.BaseMs(source, int(e))
		for _, i := range r.capsOf[e] {
			cost.Share += source.Work * r.sol.CapPrice[i]
		}
		cost.Total = sum(cost)
		options = append(options, Option{Pair: -1, Engine: int(e), Cost: cost})
	}
	slices.SortStableFunc(options, func(a, b Option) int { return cmp.Compare(a.Cost.Total, b.Cost.Total) })
	return options
}

// ShedWeight is the one weight of a source of which all is shed: were a request
// served, it would cost least there.
func (r *Reader) ShedWeight(s int, o Option) []snapshot.Weight {
	weights := r.IdleWeight(r.c.Sources[s], r.c.SourceDemand[s], o)
	weights[0].Code, weights[0].Text = CodeShed, fmt.Sprintf("all of %s/%s is shed; a request of it would cost least at %s, %s ms (%s).",
		r.c.Sources[s].Cluster, r.c.Sources[s].Class, weights[0].Engine, figure.Ms(o.Cost.Total), parts(o))
	return weights
}

// IdleWeight is the one weight of a source that sends nothing at plan.
func (r *Reader) IdleWeight(source model.Source, demand int, o Option) []snapshot.Weight {
	name := r.c.Engines[o.Engine].Name
	return []snapshot.Weight{{
		Engine: name, Fraction: 1, RTTMs: r.c.RTTMs(demand, o.Engine), Cost: o.Cost, Code: CodeIdle,
		Text: fmt.Sprintf("%s/%s sends nothing at plan; its first request would cost least at %s, %s ms (%s).",
			source.Cluster, source.Class, name, figure.Ms(o.Cost.Total), parts(o)),
	}}
}
