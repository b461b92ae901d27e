package explain

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/irb-project/irb/explain/report"
	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/figure"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
)

// Values ranks the engines by what more capacity there would save, and lists
// what binds.
type Values struct {
	Now     *Outcome  `json:"now"`
	Extra   string    `json:"extra"`   // how much capacity was added, "+10%"
	Values  []Value   `json:"values"`  // the largest saving first
	Binding []Binding `json:"binding"` // the largest price first
}

// Value is what capacity is worth at an engine. A further unit of capacity
// saves
//
//	max utilization x limit price + sum over its delays of work x v (F' - D)
//
// ms per reference request: room at the limit, and the relief of delay
// v² D'(v). It is the slope at plan; as the optimum is convex in capacity, a
// finite addition saves at most that many times its size. Where demand is shed,
// more capacity first serves more of it, at a latency that it had not before:
// then ServesRPS is its worth and what it saves may be below 0.
type Value struct {
	Engine      string  `json:"engine"`
	CapacityRPS float64 `json:"capacity_rps"`
	OfLimit     float64 `json:"of_limit"`
	LimitMs     float64 `json:"limit_ms"`  // part of the slope
	ReliefMs    float64 `json:"relief_ms"` // part of the slope
	ExtraRPS    float64 `json:"extra_rps"` // added capacity
	AtMostMsRPS float64 `json:"at_most_ms_rps"`
	SavesMsRPS  float64 `json:"saves_ms_rps"` // by solving again
	MeanMs      float64 `json:"saves_mean_ms"`
	ServesRPS   float64 `json:"serves_more_rps"` // of what is shed now
}

// Binding is a constraint that the plan would gladly break.
type Binding struct {
	What    string  `json:"what"`
	PriceMs float64 `json:"price_ms"` // saved per (reference) request that it let through
}

// parseExtra reads how much capacity to add: "+10%" or "10" req/s.
func parseExtra(text string) (amount, error) {
	if text == "" {
		return amount{}, badQuestion("the added capacity is empty, want 10 (req/s) or +10%%")
	}
	a, err := parseAmount("+" + strings.TrimPrefix(text, "+"))
	if err != nil || !(a.value > 0) {
		return amount{}, badQuestion("the added capacity is %q, want more than 0: 10 (req/s) or +10%%", text)
	}
	return a, nil
}

// ValueCapacity adds capacity to each engine in turn and solves again.
func ValueCapacity(ctx context.Context, fleet *model.Fleet, opts solve.Options, extra string) (*Values, error) {
	more, err := parseExtra(extra)
	if err != nil {
		return nil, err
	}
	now, err := Resolve(ctx, fleet, opts)
	if err != nil {
		return nil, err
	}
	if now.plan == nil {
		return nil, solve.ErrNoDemand
	}
	out := &Values{Now: now, Extra: extra, Binding: bindings(now.plan)}
	for e, node := range now.plan.Engines {
		if node.Limit > 0 {
			out.Values = append(out.Values, slopeOfCapacity(now.plan, e))
		}
	}
	err = inParallel(ctx, len(out.Values), func(ctx context.Context, i int) error {
		return out.Values[i].solveAgain(ctx, fleet, opts, more, now)
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(out.Values, func(a, b Value) int {
		return cmp.Or(cmp.Compare(b.ServesRPS, a.ServesRPS), cmp.Compare(b.SavesMsRPS, a.SavesMsRPS))
	})
	return out, nil
}

// slopeOfCapacity returns the value of one more reference req/s of capacity.
func slopeOfCapacity(p *solve.Plan, e int) Value {
	node, load := &p.Engines[e], p.Reader.Load(e)
	fitted := p.Profile(e)
	reference := model.Source{PromptTokens: fitted.PromptTokens, OutputTokens: fitted.OutputTokens, Work: node.ReferenceWork}
	v := Value{
		Engine: node.Name, CapacityRPS: node.Capacity / node.ReferenceWork,
		OfLimit: load.Work / node.Limit,
		LimitMs: node.Limit / node.Capacity * p.Reader.EngineCost(reference, e).Limit,
	}
	relief := func(s *profile.Sink, load, perRequest float64) {
		load = min(load, s.Limit)
		left, _ := s.Marginal(load)
		v.ReliefMs += perRequest * load / s.Capacity * (left - s.Delay(load))
	}
	if p.Work == model.WorkSplit {
		relief(node.Prefill, load.Prompt, fitted.PromptTokens)
		relief(node.Output, load.Output, fitted.OutputTokens)
	} else {
		relief(node.Delay, load.Work, node.ReferenceWork)
	}
	return v
}

func (v *Value) solveAgain(ctx context.Context, fleet *model.Fleet, opts solve.Options, more amount, now *Outcome) error {
	changed := *fleet
	changed.Engines = slices.Clone(fleet.Engines)
	i := slices.IndexFunc(changed.Engines, func(e model.Engine) bool { return e.Name == v.Engine })
	e := &changed.Engines[i]
	was := e.CapacityRPS
	e.CapacityRPS = more.of(was)
	v.ExtraRPS = e.CapacityRPS - was
	v.AtMostMsRPS = v.ExtraRPS * e.Health * (v.LimitMs + v.ReliefMs)
	then, err := Resolve(ctx, &changed, opts)
	if err != nil {
		return fmt.Errorf("with more capacity at %s: %w", v.Engine, err)
	}
	v.SavesMsRPS = now.ObjectiveMsRPS - then.ObjectiveMsRPS
	v.MeanMs = now.MeanLatencyMs - then.MeanLatencyMs
	v.ServesRPS = now.ShedRPS() - then.ShedRPS()
	return nil
}

// bindings lists the limits, groups and caps with a price, and the pairs that a
// share stops.
func bindings(p *solve.Plan) []Binding {
	var list []Binding
	add := func(price float64, format string, args ...any) {
		if math.Abs(price) > 1e-6 {
			list = append(list, Binding{fmt.Sprintf(format, args...), price})
		}
	}
	for e, node := range p.Engines {
		fitted := p.Profile(e)
		reference := model.Source{PromptTokens: fitted.PromptTokens, OutputTokens: fitted.OutputTokens, Work: node.ReferenceWork}
		if p.Reader.AtLimit(e) && node.Limit > 0 {
			add(p.Reader.EngineCost(reference, e).Limit, "engine %s is at its limit, %s reference req/s", node.Name, figure.Rate(node.Limit/node.ReferenceWork))
		}
	}
	for i, g := range p.Groups {
		source := p.Sources[g.Source]
		add(p.Solution.GroupPriceMs[i], "%s, for %s/%s", g.Name, source.Cluster, source.Class)
	}
	for i, c := range p.Caps {
		work := p.Engines[c.Engines[0]].ReferenceWork
		add(p.Solution.CapPrice[i]*work, "%s", c.Name)
	}
	if p.Upper != nil {
		for s, source := range p.Sources {
			for _, f := range p.Reader.Flows(s) {
				add(p.Reader.BoundPrice(s, f.Pair), "a share holds %s/%s at %s req/s on %s", source.Cluster, source.Class, figure.Rate(f.RPS), p.Engines[p.Col[f.Pair]].Name)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Binding) int { return cmp.Compare(math.Abs(b.PriceMs), math.Abs(a.PriceMs)) })
	return list
}

// Report is the ranking, a sentence for the best place, and what binds.
func (v *Values) Report() *report.Report {
	r := &report.Report{}
	shed := v.Now.ShedRPS()
	if shed > 0 {
		r.Heading("value of capacity, each engine with %s more in turn; %s req/s are shed now, so that more capacity serves more first", v.Extra, figure.Rate(shed))
	} else {
		r.Heading("value of capacity, each engine with %s more in turn (ms x req/s saved)", v.Extra)
	}
	r.Add(v.table(shed > 0))
	r.Rest(len(v.Values)-rowsShown, "engines where it saves less")
	if len(v.Values) > 0 {
		r.Line("%s", v.Values[0].sentence())
	}
	for _, x := range v.Values {
		if x.AtMostMsRPS <= 1e-6 && x.SavesMsRPS <= 1e-6 && x.ServesRPS <= 1e-6 {
			r.Line("more at %s saves nothing: it carries %s of its limit", x.Engine, figure.Percent(x.OfLimit))
		}
	}
	if len(v.Binding) == 0 {
		r.Line("nothing binds: no engine is at its limit and no share or cap stops anything; what more capacity saves is queueing")
		return r
	}
	r.Line("what binds, with what one request more through it would save:")
	for _, b := range v.Binding[:min(len(v.Binding), rowsShown)] {
		if b.PriceMs > 0 {
			r.Item("%s ms: %s", figure.Ms(b.PriceMs), b.What)
		} else {
			r.Item("%s ms, as it demands a minimum: %s", figure.Ms(-b.PriceMs), b.What)
		}
	}
	r.Rest(len(v.Binding)-rowsShown, "that bind less")
	return r
}

// Findings are what to know first: where more capacity saves most.
func (v *Values) Findings() []string {
	if len(v.Values) == 0 {
		return nil
	}
	return []string{v.Values[0].sentence()}
}

// table ranks by what is served more where demand is shed, else by what is saved.
func (v *Values) table(shed bool) *report.Table {
	titles := []string{"capacity req/s", "of limit", "room ms", "relief ms", "more req/s", "saves at most", "re-solved", "mean ms"}
	if shed {
		titles = []string{"capacity req/s", "of limit", "more req/s", "serves more", "mean ms"}
	}
	t := newTable(engineColumn("engine"), report.Numbers(titles...))
	for _, x := range v.Values[:min(len(v.Values), rowsShown)] {
		cells := []report.Cell{report.Word(x.Engine), report.Rate(x.CapacityRPS), report.Percent(x.OfLimit)}
		if shed {
			cells = append(cells, report.Rate(x.ExtraRPS), report.Rate(x.ServesRPS), report.SignedMs(-x.MeanMs))
		} else {
			cells = append(cells, report.Ms(x.LimitMs), report.Ms(x.ReliefMs), report.Rate(x.ExtraRPS),
				report.Ms(x.AtMostMsRPS), report.Ms(x.SavesMsRPS), report.SignedMs(-x.MeanMs))
		}
		t.Add(cells...)
	}
	return t
}

func (v Value) sentence() string {
	if v.ServesRPS > 1e-6 {
		return fmt.Sprintf("%s req/s more at %s serves %s req/s more of what is shed now; the mean latency changes by %s ms", figure.Rate(v.ExtraRPS), v.Engine,
			figure.Rate(v.ServesRPS), figure.SignedMs(-v.MeanMs))
	}
	return fmt.Sprintf("%s req/s more at %s saves at most %s ms x req/s; re-solved: %s, %s ms of the mean latency", figure.Rate(v.ExtraRPS), v.Engine,
		figure.Ms(v.AtMostMsRPS), figure.Ms(v.SavesMsRPS), figure.Ms(v.MeanMs))
}
