package explain

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/irb-project/irb/explain/report"
	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/figure"
	"github.com/irb-project/irb/solve/model"
)

// Sensitivities is what each knob of the policy costs: the plan without it,
// one by one.
type Sensitivities struct {
	Now   *Outcome `json:"now"`
	Knobs []Knob   `json:"knobs"` // the dearest first
}

// Knob is one setting of the policy, and what the fleet would do without it.
type Knob struct {
	Name        string  `json:"knob"`
	Off         string  `json:"off"`           // what stands in its place
	CostsMsRPS  float64 `json:"costs_ms_rps"`  // of the objective
	CostsMeanMs float64 `json:"costs_mean_ms"` // of the mean latency
	ShedsRPS    float64 `json:"sheds_rps"`     // demand that is shed because of it

	relax func(f *model.Fleet)
}

// Sensitivity solves the fleet again without each knob of its policy.
func Sensitivity(ctx context.Context, fleet *model.Fleet, opts solve.Options) (*Sensitivities, error) {
	now, err := Resolve(ctx, fleet, opts)
	if err != nil {
		return nil, err
	}
	out := &Sensitivities{Now: now, Knobs: knobs(fleet, opts.Previous != nil)}
	err = inParallel(ctx, len(out.Knobs), func(ctx context.Context, i int) error {
		k := &out.Knobs[i]
		relaxed := *fleet
		relaxed.Policy.Classes = slices.Clone(fleet.Policy.Classes)
		relaxed.Engines = slices.Clone(fleet.Engines)
		k.relax(&relaxed)
		then, err := Resolve(ctx, &relaxed, opts)
		if err != nil {
			return fmt.Errorf("without %s: %w", k.Name, err)
		}
		k.CostsMsRPS = now.ObjectiveMsRPS - then.ObjectiveMsRPS
		k.CostsMeanMs = now.MeanLatencyMs - then.MeanLatencyMs
		k.ShedsRPS = now.ShedRPS() - then.ShedRPS()
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(out.Knobs, func(a, b Knob) int {
		return cmp.Or(cmp.Compare(b.ShedsRPS, a.ShedsRPS), cmp.Compare(b.CostsMsRPS, a.CostsMsRPS))
	})
	return out, nil
}

// knobs lists what a policy sets, each with the way to do without it.
func knobs(f *model.Fleet, previous bool) []Knob {
	var list []Knob
	add := func(name, off string, relax func(f *model.Fleet)) {
		list = append(list, Knob{Name: name, Off: off, relax: relax})
	}
	for i, r := range f.Policy.Rules {
		add(r.Name, "no such rule", func(f *model.Fleet) { f.Policy.Rules = slices.Delete(slices.Clone(f.Policy.Rules), i, i+1) })
	}
	for i, c := range f.Policy.Caps {
		add(c.Name, "no such cap", func(f *model.Fleet) { f.Policy.Caps = slices.Delete(slices.Clone(f.Policy.Caps), i, i+1) })
	}
	for i, c := range f.Policy.Classes {
		if c.MaxShare > 0 && c.MaxShare < 1 {
			add(fmt.Sprintf("max_share %g of class %s", c.MaxShare, c.Name), "no such share", func(f *model.Fleet) { f.Policy.Classes[i].MaxShare = 0 })
		}
		if c.MaxDomainShare > 0 && c.MaxDomainShare < 1 {
			add(fmt.Sprintf("max_domain_share %g of class %s", c.MaxDomainShare, c.Name), "no such share", func(f *model.Fleet) { f.Policy.Classes[i].MaxDomainShare = 0 })
		}
		for _, label := range slices.Sorted(maps.Keys(c.Residency)) {
			add(fmt.Sprintf("residency %s = %q of class %s", label, c.Residency[label], c.Name), "anywhere", func(f *model.Fleet) {
				f.Policy.Classes[i].Residency = maps.Clone(c.Residency)
				delete(f.Policy.Classes[i].Residency, label)
			})
		}
	}
	list = append(list, utilizationKnobs(f)...)
	if previous {
		add("the cache penalty", "moving costs nothing", func(f *model.Fleet) {
			none := 0.0
			f.Policy.CachePenaltyMs = &none
			for i := range f.Policy.Classes {
				f.Policy.Classes[i].CachePenaltyMs = nil
			}
		})
	}
	return list
}

// utilizationKnobs are those that end an engine before utilization 1. Processor
// sharing has no latency at 1: its engines are let up to 0.99.
func utilizationKnobs(f *model.Fleet) []Knob {
	var list []Knob
	full := 1.0
	for _, p := range f.Profiles {
		if p.Queueing == "ps" {
			full = 0.99
		}
	}
	off := fmt.Sprint(full)
	if f.Policy.MaxUtilization < full {
		list = append(list, Knob{Name: fmt.Sprintf("max_utilization %g of the policy", f.Policy.MaxUtilization), Off: off, relax: func(f *model.Fleet) { f.Policy.MaxUtilization = full }})
	}
	for i, e := range f.Engines {
		if e.MaxUtilization > 0 && e.MaxUtilization < full {
			list = append(list, Knob{Name: fmt.Sprintf("max_utilization %g of engine %s", e.MaxUtilization, e.Name), Off: off, relax: func(f *model.Fleet) { f.Engines[i].MaxUtilization = full }})
		}
		if e.TTFTLimitMs > 0 || e.TBOTLimitMs > 0 {
			list = append(list, Knob{Name: "latency limits of engine " + e.Name, Off: "the policy's", relax: func(f *model.Fleet) { f.Engines[i].TTFTLimitMs, f.Engines[i].TBOTLimitMs = 0, 0 }})
		}
	}
	if f.Policy.TTFTLimitMs > 0 {
		list = append(list, Knob{Name: fmt.Sprintf("ttft_limit_ms %g of the policy", f.Policy.TTFTLimitMs), Off: "no limit", relax: func(f *model.Fleet) { f.Policy.TTFTLimitMs = 0 }})
	}
	if f.Policy.TBOTLimitMs > 0 {
		list = append(list, Knob{Name: fmt.Sprintf("tbot_limit_ms %g of the policy", f.Policy.TBOTLimitMs), Off: "no limit", relax: func(f *model.Fleet) { f.Policy.TBOTLimitMs = 0 }})
	}
	return list
}

// Report has a row per knob, the dearest first.
func (s *Sensitivities) Report() *report.Report {
	r := &report.Report{}
	if len(s.Knobs) == 0 {
		r.Line("the policy has no knob that could cost latency")
		return r
	}
	r.Heading("what each knob of the policy costs, one by one (now: mean latency %s ms, %s req/s shed)", figure.Ms(s.Now.MeanLatencyMs), figure.Rate(s.Now.ShedRPS()))
	t := newTable(report.Texts("knob", "instead"), report.Numbers("costs ms x req/s", "mean ms", "sheds req/s"))
	for _, k := range s.Knobs[:min(len(s.Knobs), rowsShown)] {
		t.Add(report.Word(k.Name), report.Word(k.Off), report.Ms(k.CostsMsRPS), report.SignedMs(k.CostsMeanMs), rateUnlessZero(k.ShedsRPS))
	}
	r.Add(t)
	r.Rest(len(s.Knobs)-rowsShown, "knobs that cost less")
	return r
}
