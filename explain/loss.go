package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/explain/report"
	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/figure"
	"github.com/irb-project/irb/solve/model"
)

// Losses is what happens when each engine and each failure domain is lost in
// turn.
type Losses struct {
	Now    *Outcome `json:"now"`
	Losses []Loss   `json:"losses"` // the worst first
}

// Loss is the loss of an engine, or of all engines of a failure domain.
type Loss struct {
	Lost       string    `json:"lost"` // "a-1", "region region-a"
	Engines    []string  `json:"engines"`
	CarriedRPS float64   `json:"carried_reference_rps"` // what they carried
	Reaction   *Reaction `json:"immediate"`             // of the agents, before a new file

	Infeasible    string  `json:"infeasible,omitempty"` // the new plan cannot serve everything
	MeanLatencyMs float64 `json:"mean_latency_ms"`      // of the new plan, over served requests
	RiseMs        float64 `json:"rise_ms"`              // against now
	ShedRPS       float64 `json:"shed_rps"`
	ShedSources   []Shed  `json:"shed_sources,omitempty"`
}

// Shed is what a source is refused.
type Shed struct {
	Source string  `json:"source"`
	RPS    float64 `json:"rps"`
}

// LoseEach loses each engine and each failure domain of several engines in
// turn: what the agents do at once by the fallbacks of the snapshot, and what
// the best new plan is. The snapshot is that of the fleet's plan.
func LoseEach(ctx context.Context, fleet *model.Fleet, opts solve.Options, s *snapshot.Snapshot) (*Losses, error) {
	now, err := Resolve(ctx, fleet, opts)
	if err != nil {
		return nil, err
	}
	if now.plan == nil {
		return nil, solve.ErrNoDemand
	}
	out := &Losses{Now: now, Losses: possibleLosses(now.plan)}
	reactor, err := newReactor(s, now.plan)
	if err != nil {
		return nil, err
	}
	err = inParallel(ctx, len(out.Losses), func(ctx context.Context, i int) error {
		l := &out.Losses[i]
		l.Reaction = reactor.lose(l.Engines)
		return l.solveAgain(ctx, fleet, opts, now)
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(out.Losses, func(a, b Loss) int {
		return cmp.Or(cmp.Compare(b.ShedRPS, a.ShedRPS), cmp.Compare(b.RiseMs, a.RiseMs), cmp.Compare(b.CarriedRPS, a.CarriedRPS))
	})
	return out, nil
}

// possibleLosses lists the engines that are up, and the failure domains with
// more than one of them.
func possibleLosses(p *solve.Plan) []Loss {
	var losses []Loss
	domains := make(map[string]*Loss)
	for e, node := range p.Engines {
		if node.Limit <= 0 {
			continue
		}
		carried := p.Reader.Load(e).Work / node.ReferenceWork
		losses = append(losses, Loss{Lost: node.Name, Engines: []string{node.Name}, CarriedRPS: carried})
		d := domains[node.Domain]
		if d == nil {
			d = &Loss{Lost: p.Fleet.Policy.FailureDomain + " " + node.Domain}
			domains[node.Domain] = d
		}
		d.Engines = append(d.Engines, node.Name)
		d.CarriedRPS += carried
	}
	for _, name := range sortedKeys(domains) {
		if len(domains[name].Engines) > 1 {
			losses = append(losses, *domains[name])
		}
	}
	return losses
}

// solveAgain finds the best plan without the engines of a loss.
func (l *Loss) solveAgain(ctx context.Context, fleet *model.Fleet, opts solve.Options, now *Outcome) error {
	then := now
	if l.CarriedRPS > 0 { // else nothing changes: what was best without them still is
		changed := *fleet
		changed.Engines = slices.Clone(fleet.Engines)
		for i := range changed.Engines {
			if slices.Contains(l.Engines, changed.Engines[i].Name) {
				changed.Engines[i].Health = 0
			}
		}
		var err error
		if then, err = Resolve(ctx, &changed, opts); err != nil {
			return fmt.Errorf("without %s: %w", l.Lost, err)
		}
	}
	l.Infeasible, l.MeanLatencyMs, l.ShedRPS = then.Infeasible, then.MeanLatencyMs, then.ShedRPS()
	if then.ServedRPS > 0 {
		l.RiseMs = then.MeanLatencyMs - now.MeanLatencyMs
	}
	for _, s := range then.Sources {
		if shed := s.OfferedRPS - s.ServedRPS; shed > 1e-9*s.OfferedRPS {
			l.ShedSources = append(l.ShedSources, Shed{s.Source, shed})
		}
	}
	slices.SortStableFunc(l.ShedSources, func(a, b Shed) int { return cmp.Compare(b.RPS, a.RPS) })
	return nil
}

// Report has a row per loss, the worst first, and a sentence for each that
// cannot be borne.
func (l *Losses) Report() *report.Report {
	r := &report.Report{}
	r.Heading("each engine and failure domain lost in turn; now: mean latency %s ms, %s req/s shed",
		figure.Ms(l.Now.MeanLatencyMs), figure.Rate(l.Now.ShedRPS()))
	t := newTable(engineColumn("lost"), report.Numbers("carried", "at once: latency ms"), report.Texts("fullest"),
		report.Numbers("refused", "no engine", "new plan: latency ms", "rise", "shed req/s"))
	for _, x := range l.Losses[:min(len(l.Losses), rowsShown)] {
		rise := report.SignedMs(x.RiseMs)
		if x.MeanLatencyMs == 0 {
			rise = report.Word("")
		}
		t.Add(report.Word(x.Lost), report.Rate(x.CarriedRPS), x.Reaction.latencyCell(), x.Reaction.fullestCell(), rateUnlessZero(x.Reaction.RefusedRPS),
			rateUnlessZero(x.Reaction.UnroutedRPS), report.Ms(x.MeanLatencyMs), rise, rateUnlessZero(x.ShedRPS))
	}
	r.Add(t)
	r.Rest(len(l.Losses)-rowsShown, "losses that cost less")
	r.Note("%s", lossLegend)
	l.sentences(r)
	return r
}

// lossLegend says what the columns of the table of losses are.
const lossLegend = `"at once" is what agents do before a new file: what went to the lost engines walks on by rank, an engine takes
no more than its capacity, a fallback no more than it may absorb while others have room; what finds all full is
refused, a cluster's lowest priority first. They may refuse less than a new plan sheds, as a plan keeps engines
at their limits. "fullest" is the engine that then carries most of its limit`

// sentences tells of the worst losses that cannot be borne, and counts the rest.
func (l *Losses) sentences(r *report.Report) {
	list := l.Findings()
	for _, text := range list[:min(len(list), sentencesShown)] {
		r.Item("%s", text)
	}
	r.Rest(len(list)-sentencesShown, "losses that fill an engine beyond its limit or shed")
}

// Findings are what to know first: the losses that cannot be borne, the worst
// first.
func (l *Losses) Findings() []string {
	var list []string
	for _, x := range l.Losses {
		if text := x.sentence(); text != "" {
			list = append(list, text)
		}
	}
	if len(list) == 0 && len(l.Losses) > 0 {
		list = append(list, "no loss of one engine or failure domain sheds or fills an engine beyond its limit")
	}
	return list
}

// sentence says what a loss means, "" if a new plan bears it in full and the
// agents hold until then.
func (x Loss) sentence() string {
	var parts []string
	if x.ShedRPS > 0 {
		var list []string
		for _, s := range x.ShedSources[:min(4, len(x.ShedSources))] {
			list = append(list, fmt.Sprintf("%s %s", s.Source, figure.Rate(s.RPS)))
		}
		if n := len(x.ShedSources) - 4; n > 0 {
			list = append(list, fmt.Sprintf("%d more", n))
		}
		parts = append(parts, fmt.Sprintf("%s req/s cannot be served even by a new plan (%s)", figure.Rate(x.ShedRPS), strings.Join(list, ", ")))
	}
	if text := x.Reaction.overload(); text != "" {
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("without %s: %s", x.Lost, strings.Join(parts, "; "))
}
