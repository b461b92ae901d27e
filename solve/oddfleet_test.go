package solve

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
)

// odd makes choices.
type odd struct{ *rand.Rand }

func (o odd) chance(p float64) bool      { return o.Float64() < p }
func (o odd) pick(of ...float64) float64 { return of[o.IntN(len(of))] }

// oddFleet makes a fleet of a few engines and sources in which everything that a
// policy can say happens now and then. Its numbers are few, so that limits, ties
// and contradictions are frequent.
func oddFleet(r *rand.Rand) *model.Fleet {
	o := odd{r}
	f := &model.Fleet{Policy: model.Policy{
		Fleet: "odd", MaxUtilization: o.pick(0.5, 0.75, 0.9), OutputTokenWork: 4, RoundTrips: o.pick(0, 1, 2),
		Reference: &model.Tokens{Prompt: 1024, Output: 256}, Shed: o.chance(0.5), FailureDomain: []string{"region", "zone"}[r.IntN(2)],
		Work: []model.WorkKind{model.WorkAuto, model.WorkSingle, model.WorkSplit}[r.IntN(3)],
	}}
	if o.chance(0.2) {
		f.Policy.TTFTLimitMs = 150
	}
	f.Profiles = []profile.Spec{
		{Name: "table", PromptTokens: 1024, OutputTokens: 256, Utilization: []float64{0, 0.25, 0.5, 0.75, 1}, TTFTMs: []float64{80, 85, 100, 140, 400}, TBOTMs: []float64{12, 13, 15, 18, 30}},
		{Name: "ps", PromptTokens: 1024, OutputTokens: 256, TTFTMs: []float64{70}, TBOTMs: []float64{9}, Queueing: "ps"},
		{Name: "flat", PromptTokens: 1024, OutputTokens: 256, TTFTMs: []float64{60}, TBOTMs: []float64{8}, Queueing: "none"},
	}
	regions := 1 + r.IntN(4)
	region := func() string { return fmt.Sprintf("r%d", r.IntN(regions)) }
	capacity := o.addEngines(f, region)
	o.addClasses(f)
	o.addLatency(f, regions)
	o.addDemand(f, capacity)
	o.addRules(f, region)
	if o.chance(0.2) {
		scale(f, math.Pow(10, float64(r.IntN(19)-9)))
	}
	return f
}

// addEngines returns the work that all may take, in reference requests/s.
func (o odd) addEngines(f *model.Fleet, region func() string) (capacity float64) {
	for e := range 1 + o.IntN(6) {
		engine := model.Engine{
			Name: fmt.Sprintf("e%d", e), Region: region(), Endpoints: []string{fmt.Sprintf("http://192.0.2.1:%d", 8000+e)},
			Profile: f.Profiles[o.IntN(3)].Name, CapacityRPS: o.pick(8, 8, 16, 32), Health: o.pick(1, 1, 1, 1, 0.5, 0),
			Labels: map[string]string{"zone": []string{"eu", "us"}[o.IntN(2)]},
		}
		if o.chance(0.1) {
			engine.MaxContextTokens = 1500
		}
		if o.chance(0.7) {
			engine.Capabilities = []string{"tools"}
		}
		if e > 0 && o.chance(0.3) { // a twin
			twin := f.Engines[e-1]
			twin.Name, twin.Endpoints = engine.Name, engine.Endpoints
			engine = twin
		}
		f.Engines = append(f.Engines, engine)
		capacity += engine.CapacityRPS * engine.Health * f.Policy.MaxUtilization
	}
	return capacity
}

func (o odd) addClasses(f *model.Fleet) {
	for c := range 1 + o.IntN(3) {
		class := model.Class{Name: fmt.Sprintf("class%d", c), Priority: o.IntN(2)}
		if o.chance(0.2) {
			class.Residency = map[string][]string{"zone": {"eu"}}
		}
		if o.chance(0.2) {
			class.Requires = []string{"tools"}
		}
		if o.chance(0.2) {
			class.MaxShare = o.pick(0.25, 0.5, 0.75)
		}
		if o.chance(0.2) {
			class.MaxDomainShare = o.pick(0.5, 0.75)
		}
		f.Policy.Classes = append(f.Policy.Classes, class)
	}
}

func (o odd) addLatency(f *model.Fleet, regions int) {
	clusters := 1 + o.IntN(4)
	for c := range clusters {
		f.Latency.From = append(f.Latency.From, fmt.Sprintf("c%d", c))
	}
	for i := range regions {
		f.Latency.To = append(f.Latency.To, fmt.Sprintf("r%d", i))
	}
	for range clusters * regions {
		f.Latency.RTTMs = append(f.Latency.RTTMs, float32(o.pick(2, 2, 40, 80, 80, 120)))
	}
	if o.chance(0.2) {
		f.Latency.RTTMs[o.IntN(len(f.Latency.RTTMs))] = float32(math.NaN())
	}
}

func (o odd) addDemand(f *model.Fleet, capacity float64) {
	load := o.pick(0.25, 0.5, 0.5, 0.75, 1, 1.25)
	var parts float64
	for _, cluster := range f.Latency.From {
		for _, class := range f.Policy.Classes {
			if o.chance(0.2) {
				continue
			}
			d := model.Demand{
				Cluster: cluster, Class: class.Name, RPS: o.pick(0, 1, 1, 2, 4), PromptTokens: o.pick(1024, 1024, 512, 2048), OutputTokens: o.pick(256, 256, 64),
				CachedFraction: o.pick(0, 0, 0.5), RequestsPerKey: o.pick(1, 4),
			}
			parts += d.RPS * ((1-d.CachedFraction)*d.PromptTokens + 4*d.OutputTokens) / 2048
			f.Demand = append(f.Demand, d)
		}
	}
	if parts == 0 {
		f.Demand = []model.Demand{{Cluster: "c0", Class: "class0", RPS: 1, PromptTokens: 1024, OutputTokens: 256, RequestsPerKey: 1}}
		parts = 1
	}
	for i := range f.Demand {
		f.Demand[i].RPS *= load * max(1, capacity) / parts
	}
}

// scale multiplies all rates.
func scale(f *model.Fleet, by float64) {
	for i := range f.Demand {
		f.Demand[i].RPS *= by
	}
	for i := range f.Engines {
		f.Engines[i].CapacityRPS *= by
	}
	for i := range f.Policy.Caps {
		f.Policy.Caps[i].MaxRPS *= by
	}
}

func (o odd) addRules(f *model.Fleet, region func() string) {
	share := func(of ...float64) *float64 { return &of[o.IntN(len(of))] }
	for i := range o.IntN(4) {
		rule := model.Rule{Name: fmt.Sprintf("rule %d (policy.toml:%d)", i+1, 10*i+5)}
		if o.chance(0.7) {
			rule.Cluster = f.Latency.From[o.IntN(len(f.Latency.From))]
		}
		if o.chance(0.5) {
			rule.Class = f.Policy.Classes[o.IntN(len(f.Policy.Classes))].Name
		}
		if rule.Engine = f.Engines[o.IntN(len(f.Engines))].Name; o.chance(0.4) {
			rule.Engine, rule.Region = "", region()
		}
		switch o.IntN(4) {
		case 0:
			rule.Forbid = true
		case 1:
			rule.MinShare = share(0, 0.125, 0.25, 1)
		default:
			rule.MaxShare = share(0, 0.25, 0.5, 1)
		}
		f.Policy.Rules = append(f.Policy.Rules, rule)
	}
	for i := range o.IntN(3) {
		c := model.Cap{Name: fmt.Sprintf("cap %d (policy.toml:%d)", i+1, 10*i+100), MaxRPS: *share(0, 4, 8, 16)}
		if c.Engine = f.Engines[o.IntN(len(f.Engines))].Name; o.chance(0.5) {
			c.Engine, c.Region = "", region()
		}
		f.Policy.Caps = append(f.Policy.Caps, c)
	}
}
