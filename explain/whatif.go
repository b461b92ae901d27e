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
)

// WhatIf is a fleet as it is and as it would be, both solved.
type WhatIf struct {
	Changes []string `json:"changes"`
	Now     *Outcome `json:"now"`
	Then    *Outcome `json:"then"`
	// Moves are the flows that change, the largest first.
	Moves []Move `json:"moves"`
}

// Move is a change of what a source sends to an engine, in req/s.
type Move struct {
	Source  string  `json:"source"`
	Engine  string  `json:"engine"`
	NowRPS  float64 `json:"now_rps"`
	ThenRPS float64 `json:"then_rps"`
}

// AskWhatIf solves a fleet with and without changes.
func AskWhatIf(ctx context.Context, fleet *model.Fleet, opts solve.Options, changes []Change) (*WhatIf, error) {
	changed, err := ApplyChanges(fleet, changes)
	if err != nil {
		return nil, err
	}
	w := &WhatIf{}
	for _, c := range changes {
		w.Changes = append(w.Changes, c.Text)
	}
	if w.Now, err = Resolve(ctx, fleet, opts); err != nil {
		return nil, err
	}
	if w.Then, err = Resolve(ctx, changed, opts); err != nil {
		return nil, fmt.Errorf("with %s: %w", strings.Join(w.Changes, "; "), err)
	}
	w.Moves = moves(w.Now, w.Then)
	return w, nil
}

// moves lists the flows in which two outcomes differ by more than rounding.
func moves(now, then *Outcome) []Move {
	var list []Move
	for _, name := range sourceNames(now, then) {
		a, b := now.source(name), then.source(name)
		for _, engine := range sortedKeys(a.FlowRPS, b.FlowRPS) {
			x, y := a.FlowRPS[engine], b.FlowRPS[engine]
			if math.Abs(x-y) > 1e-6*max(a.OfferedRPS, b.OfferedRPS) {
				list = append(list, Move{name, engine, x, y})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Move) int {
		return cmp.Compare(math.Abs(b.ThenRPS-b.NowRPS), math.Abs(a.ThenRPS-a.NowRPS))
	})
	return list
}

func sourceNames(outcomes ...*Outcome) []string {
	seen := make(map[string]bool)
	for _, o := range outcomes {
		for _, s := range o.Sources {
			seen[s.Source] = true
		}
	}
	return sortedKeys(seen)
}

func sortedKeys[V any](maps ...map[string]V) []string {
	var keys []string
	for _, m := range maps {
		for k := range m {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Report puts the two side by side, the largest changes first.
func (w *WhatIf) Report() *report.Report {
	r := &report.Report{}
	r.Heading("what if: %s", strings.Join(w.Changes, "; "))
	w.totals(r)
	w.sources(r)
	w.engines(r)
	if len(w.Moves) == 0 {
		r.Line("no weight would move")
		return r
	}
	moveTable(r, w.Moves)
	return r
}

func (w *WhatIf) totals(r *report.Report) {
	t := newTable(report.Texts(""), report.Numbers("now", "then", "change"))
	row := func(name string, now, then float64, text func(float64) string) {
		t.Add(report.Word(name), report.As(now, text(now)), report.As(then, text(then)), change(then-now, text))
	}
	objective := func(v float64) string { return figure.Number(v, 10) }
	row("objective, ms x req/s", w.Now.ObjectiveMsRPS, w.Then.ObjectiveMsRPS, objective)
	row("mean latency, ms", w.Now.MeanLatencyMs, w.Then.MeanLatencyMs, figure.Ms)
	row("offered, req/s", w.Now.OfferedRPS, w.Then.OfferedRPS, figure.Rate)
	row("served, req/s", w.Now.ServedRPS, w.Then.ServedRPS, figure.Rate)
	if w.Now.ShedRPS() > 0 || w.Then.ShedRPS() > 0 {
		row("shed, req/s", w.Now.ShedRPS(), w.Then.ShedRPS(), figure.Rate)
	}
	r.Add(t)
	for _, o := range []struct {
		when    string
		outcome *Outcome
	}{{"now", w.Now}, {"then", w.Then}} {
		if o.outcome.Infeasible != "" {
			r.Line("%s: %s", o.when, o.outcome.Infeasible)
		}
	}
}

func (w *WhatIf) sources(r *report.Report) {
	names := sourceNames(w.Now, w.Then)
	weight := func(name string) float64 {
		a, b := w.Now.source(name), w.Then.source(name)
		return math.Abs(b.LatencyMs*b.ServedRPS-a.LatencyMs*a.ServedRPS) + math.Abs(b.ServedRPS-a.ServedRPS)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(weight(b), weight(a)) })
	t := newTable(sourceColumn("source"), report.Numbers("req/s now", "then", "latency now", "then", "change", "shed then"), report.Texts("engines then"))
	for _, name := range names[:min(len(names), rowsShown)] {
		a, b := w.Now.source(name), w.Then.source(name)
		shed, by := report.Word(""), report.Word("")
		if b.OfferedRPS-b.ServedRPS > 1e-9*b.OfferedRPS {
			shed = report.Rate(b.OfferedRPS - b.ServedRPS)
		}
		if a.ServedRPS > 0 && b.ServedRPS > 0 {
			by = report.SignedMs(b.LatencyMs - a.LatencyMs)
		}
		t.Add(report.Word(name), report.Rate(a.ServedRPS), report.Rate(b.ServedRPS), a.latencyCell(), b.latencyCell(), by, shed, report.Word(flowList(b)))
	}
	r.Add(t)
	r.Rest(len(names)-rowsShown, "sources that change less")
}

func (w *WhatIf) engines(r *report.Report) {
	then := make(map[string]EngineOutcome)
	for _, e := range w.Then.Engines {
		then[e.Engine] = e
	}
	order := slices.Clone(w.Now.Engines)
	weight := func(e EngineOutcome) float64 { return math.Abs(then[e.Engine].PlannedRPS - e.PlannedRPS) }
	slices.SortStableFunc(order, func(a, b EngineOutcome) int { return cmp.Compare(weight(b), weight(a)) })
	t := newTable(engineColumn("engine"), report.Numbers("reference req/s now", "then", "of limit now", "then"))
	for _, a := range order[:min(len(order), rowsShown)] {
		b := then[a.Engine]
		t.Add(report.Word(a.Engine), report.Rate(a.PlannedRPS), report.Rate(b.PlannedRPS), a.limitCell(), b.limitCell())
	}
	r.Add(t)
	r.Rest(len(order)-rowsShown, "engines that change less")
}

func (s SourceOutcome) latencyCell() report.Cell {
	if s.ServedRPS == 0 {
		return report.Word("-")
	}
	return report.Ms(s.LatencyMs)
}

func (e EngineOutcome) limitCell() report.Cell {
	if e.LimitRPS <= 0 {
		return report.Word("down")
	}
	return report.Percent(e.ofLimit())
}

// flowList is "a-1 74.2 %, c-1 25.8 %", the largest first.
func flowList(s SourceOutcome) string {
	const most = 4
	names := sortedKeys(s.FlowRPS)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(s.FlowRPS[b], s.FlowRPS[a]) })
	var list []string
	for _, name := range names[:min(most, len(names))] {
		list = append(list, name+" "+figure.Percent(s.FlowRPS[name]/s.ServedRPS))
	}
	if len(names) > most {
		list = append(list, fmt.Sprintf("%d more", len(names)-most))
	}
	return strings.Join(list, ", ")
}

func moveTable(r *report.Report, list []Move) {
	t := newTable(sourceColumn("moves"), engineColumn("to"), report.Numbers("req/s now", "then", "change"))
	for _, m := range list[:min(len(list), rowsShown)] {
		t.Add(report.Word(m.Source), report.Word(m.Engine), report.Rate(m.NowRPS), report.Rate(m.ThenRPS), change(m.ThenRPS-m.NowRPS, figure.Rate))
	}
	r.Add(t)
	r.Rest(len(list)-rowsShown, "smaller moves")
}
