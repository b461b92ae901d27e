package explain

import (
	"context"
	"errors"
	"slices"

	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/model"
)

// Outcome is what the best plan for a fleet comes to.
type Outcome struct {
	// Infeasible says why not all demand can be served; the figures are then
	// those with the rest shed by priority, whatever the policy says of it.
	Infeasible     string  `json:"infeasible,omitempty"`
	ObjectiveMsRPS float64 `json:"objective_ms_rps"` // latency and churn
	MeanLatencyMs  float64 `json:"mean_latency_ms"`  // over served requests
	OfferedRPS     float64 `json:"offered_rps"`
	ServedRPS      float64 `json:"served_rps"`

	Sources []SourceOutcome `json:"sources"` // with demand, in order of name
	Engines []EngineOutcome `json:"engines"` // in order of name

	plan *solve.Plan // nil: nothing could be served
}

// SourceOutcome is a source in an Outcome.
type SourceOutcome struct {
	Source     string             `json:"source"` // "cluster/class"
	OfferedRPS float64            `json:"offered_rps"`
	ServedRPS  float64            `json:"served_rps"`
	LatencyMs  float64            `json:"latency_ms"` // mean over served requests
	PriceMs    float64            `json:"price_ms"`   // cost of one more request
	FlowRPS    map[string]float64 `json:"flow_rps"`   // by engine
}

// EngineOutcome is an engine in an Outcome; its rates are reference req/s.
type EngineOutcome struct {
	Engine      string  `json:"engine"`
	PlannedRPS  float64 `json:"planned_reference_rps"`
	LimitRPS    float64 `json:"limit_rps"`
	Utilization float64 `json:"utilization"`
}

// ofLimit is the part of its limit that an engine carries.
func (e EngineOutcome) ofLimit() float64 {
	if e.LimitRPS <= 0 {
		return 0
	}
	return e.PlannedRPS / e.LimitRPS
}

// Resolve solves a fleet. Demand that cannot be served is no error here but
// part of the outcome.
func Resolve(ctx context.Context, fleet *model.Fleet, opts solve.Options) (*Outcome, error) {
	plan, err := solve.Solve(ctx, fleet, opts)
	var infeasible *solve.InfeasibleError
	switch {
	case err == nil:
		return newOutcome(plan, nil), nil
	case errors.Is(err, solve.ErrNoDemand):
		return &Outcome{}, nil
	case !errors.As(err, &infeasible):
		return nil, err
	}
	relaxed, stranded, err := withoutStranded(fleet, opts)
	if err != nil {
		return nil, err
	}
	plan, err = solve.Solve(ctx, relaxed, opts)
	if err != nil && !errors.Is(err, solve.ErrNoDemand) {
		return nil, err
	}
	out := newOutcome(plan, stranded)
	out.Infeasible = infeasible.Error()
	return out, nil
}

// withoutStranded returns the fleet with shedding allowed and without the
// demand that no engine may serve at all, which it returns apart.
func withoutStranded(fleet *model.Fleet, opts solve.Options) (*model.Fleet, []model.Demand, error) {
	f := *fleet
	f.Policy.Shed = true
	compiled, err := model.Compile(&f, model.CompileOptions{Previous: opts.Previous, Work: opts.Work, SplitPairsMax: opts.SplitPairsMax})
	if err != nil {
		return nil, nil, err
	}
	f.Demand = slices.Clone(fleet.Demand)
	var stranded []model.Demand
	for s, row := range compiled.SourceDemand {
		if compiled.Row[s] == compiled.Row[s+1] {
			stranded = append(stranded, fleet.Demand[row])
			f.Demand[row].RPS = 0
		}
	}
	return &f, stranded, nil
}

func newOutcome(plan *solve.Plan, stranded []model.Demand) *Outcome {
	out := &Outcome{plan: plan}
	if plan != nil {
		out.ObjectiveMsRPS = plan.Report.ObjectiveMsRPS
		for s := range plan.Sources {
			source := sourceOutcome(plan, s)
			out.OfferedRPS += source.OfferedRPS
			out.ServedRPS += source.ServedRPS
			out.Sources = append(out.Sources, source)
		}
		for e := range plan.Engines {
			out.Engines = append(out.Engines, engineOutcome(plan, e))
		}
		if out.ServedRPS > 0 {
			out.MeanLatencyMs = plan.Report.LatencyMsRPS / out.ServedRPS
		}
	}
	for _, d := range stranded {
		out.OfferedRPS += d.RPS
		out.Sources = append(out.Sources, SourceOutcome{Source: d.Cluster + "/" + d.Class, OfferedRPS: d.RPS})
	}
	return out
}

func sourceOutcome(p *solve.Plan, s int) SourceOutcome {
	source := p.Sources[s]
	out := SourceOutcome{
		Source: source.Cluster + "/" + source.Class, OfferedRPS: source.DemandRPS,
		ServedRPS: p.Solution.ServedRPS[s], PriceMs: p.Solution.SourcePriceMs[s],
		FlowRPS: make(map[string]float64),
	}
	var totalMs float64
	for _, f := range p.Reader.Flows(s) {
		e := int(p.Col[f.Pair])
		out.FlowRPS[p.Engines[e].Name] = f.RPS
		totalMs += f.RPS * (p.CostMs[f.Pair] + p.Reader.EngineCost(source, e).Delay)
	}
	if out.ServedRPS > 0 {
		out.LatencyMs = totalMs / out.ServedRPS
	}
	return out
}

func engineOutcome(p *solve.Plan, e int) EngineOutcome {
	node := p.Engines[e]
	return EngineOutcome{
		Engine: node.Name, PlannedRPS: p.Reader.Load(e).Work / node.ReferenceWork,
		LimitRPS: node.Limit / node.ReferenceWork, Utilization: p.Reader.Utilization(e),
	}
}

func (o *Outcome) source(name string) SourceOutcome {
	for _, s := range o.Sources {
		if s.Source == name {
			return s
		}
	}
	return SourceOutcome{Source: name}
}

// ShedRPS is what is offered and not served, in req/s.
func (o *Outcome) ShedRPS() float64 {
	if shed := o.OfferedRPS - o.ServedRPS; shed > 1e-9*o.OfferedRPS {
		return shed
	}
	return 0
}
