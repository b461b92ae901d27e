package solve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/layout"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/reason"
)

// addSources fills in what each source does: those with demand by the plan,
// those without by where their first request would be cheapest.
func (p *Plan) addSources(out, previous *snapshot.Snapshot, contingencies []Contingency) error {
	before := make(map[model.SourceKey]*snapshot.Source)
	if previous != nil {
		for i := range previous.Sources {
			s := &previous.Sources[i]
			before[model.SourceKey{Cluster: s.Cluster, Class: s.Class}] = s
		}
	}
	fallbacks := p.fallbacks(contingencies)
	for s := range p.Sources {
		out.Sources = append(out.Sources, p.busySource(s, fallbacks[s]))
	}
	for _, demand := range p.Idle {
		if source, ok := p.idleSource(demand); ok {
			out.Sources = append(out.Sources, source)
		}
	}
	slices.SortFunc(out.Sources, func(a, b snapshot.Source) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Class, b.Class))
	})
	var compacted []string
	for i := range out.Sources {
		source := &out.Sources[i]
		keys, err := lay(source, before[model.SourceKey{Cluster: source.Cluster, Class: source.Class}])
		if err != nil {
			return err
		}
		if keys > 0 {
			compacted = append(compacted, fmt.Sprintf("%s/%s: %.4f %% of keys moved to keep its layout short", source.Cluster, source.Class, 100*float64(keys)/snapshot.QuotaSum))
		}
	}
	p.Warnings = append(p.Warnings, compacted...)
	return nil
}

// lay gives a source its quotas and its layout, made from the previous one so
// that as few keys move as the change of weights asks for. It returns how many
// further keys compaction spent.
func lay(source, before *snapshot.Source) (compacted uint64, err error) {
	fractions := make([]float64, len(source.Weights))
	engines := make([]string, len(source.Weights))
	for i, w := range source.Weights {
		fractions[i], engines[i] = w.Fraction, w.Engine
	}
	quotas, err := layout.Quotas(fractions)
	if err != nil {
		return 0, fmt.Errorf("%s/%s: %w", source.Cluster, source.Class, err)
	}
	kept := source.Weights[:0]
	for i, w := range source.Weights {
		if w.Quota = quotas[i]; w.Quota > 0 {
			kept = append(kept, w)
		}
	}
	source.Weights = kept
	var was []layout.Range
	if before != nil {
		was = layout.Of(before)
	}
	ranges, change, err := layout.Next(was, engines, quotas)
	if err != nil {
		return 0, fmt.Errorf("%s/%s: %w", source.Cluster, source.Class, err)
	}
	for _, r := range ranges {
		source.LayoutFrom = append(source.LayoutFrom, r.From)
		source.LayoutTo = append(source.LayoutTo, r.Engine)
	}
	return change.Compacted, nil
}

// roundingRPS is the part of demand that counts as served though rounding, not
// a limit, left it out.
const roundingRPS = 1e-9

// busySource is a source with demand.
func (p *Plan) busySource(s int, fallbacks []snapshot.Fallback) snapshot.Source {
	out := p.newSource(p.SourceDemand[s])
	out.ServedRPS = p.Solution.ServedRPS[s]
	if out.ServedRPS >= out.OfferedRPS*(1-roundingRPS) {
		out.ServedRPS = out.OfferedRPS
	}
	out.ShedRPS = out.OfferedRPS - out.ServedRPS
	out.PriceMs = p.Solution.SourcePriceMs[s]
	out.LatencyMs, out.ProfileMs = p.sourceLatency(s)
	used, unused := p.Reader.Options(s, alternativesShown)
	if len(used) == 0 { // all of it is shed: the layout still says where a request would go
		used = []reason.Option{unused[0]}
		unused = unused[1:]
		out.Weights = p.Reader.ShedWeight(s, used[0])
	} else {
		out.Weights = p.Reader.Weights(s, used, unused)
	}
	out.Alternatives = p.Reader.Alternatives(s, used, unused)
	out.Fallbacks = fallbacks
	return out
}

// idleSource is a source without demand: all of its weight is on the engine
// where its first request would cost least. False if nothing may serve it.
func (p *Plan) idleSource(demand int) (snapshot.Source, bool) {
	out := p.newSource(demand)
	options := p.Reader.IdleOptions(demand)
	if len(options) == 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%s/%s has no demand and no engine may serve it; it is left out", out.Cluster, out.Class))
		return out, false
	}
	source := p.SourceOf(demand)
	out.PriceMs = options[0].Cost.Total
	out.Weights = p.Reader.IdleWeight(source, demand, options[0])
	chooser := newChooser(p.Engines)
	chooser.use(options[0].Engine)
	engines := make([]int, len(options))
	for i, o := range options {
		engines[i] = o.Engine
	}
	out.Fallbacks = chooser.fill(engines, func(int) (float64, string) { return 0, "next by marginal cost; without demand, no rate is set aside" })
	return out, true
}

func (p *Plan) newSource(demand int) snapshot.Source {
	d := p.Fleet.Demand[demand]
	return snapshot.Source{
		Cluster: d.Cluster, Class: d.Class, OfferedRPS: d.RPS,
		PromptTokens: d.PromptTokens, OutputTokens: d.OutputTokens,
		CachedFraction: d.CachedFraction, RequestsPerKey: d.RequestsPerKey,
	}
}
