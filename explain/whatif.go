package explain

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

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

// Text prints the two side by side, the largest changes first.
func (w *WhatIf) Text(out io.Writer) {
	fmt.Fprintf(out, "what if: %s\n\n", strings.Join(w.Changes, "; "))
	w.totals(out)
	w.sources(out)
	w.engines(out)
	if len(w.Moves) == 0 {
		fmt.Fprintln(out, "\nno weight would move")
		return
	}
	fmt.Fprintln(out)
	printMoves(out, w.Moves)
}

func (w *WhatIf) totals(out io.Writer) {
	t := newTable("", "<", "now", "then", "change")
	row := func(name string, now, then float64, text func(float64) string) {
		t.add(name, text(now), text(then), signed(then-now, text))
	}
	objective := func(v float64) string { return figure.Number(v, 10) }
	row("objective, ms x req/s", w.Now.ObjectiveMsRPS, w.Then.ObjectiveMsRPS, objective)
	row("mean latency, ms", w.Now.MeanLatencyMs, w.Then.MeanLatencyMs, figure.Ms)
	row("offered, req/s", w.Now.OfferedRPS, w.Then.OfferedRPS, figure.Rate)
	row("served, req/s", w.Now.ServedRPS, w.Then.ServedRPS, figure.Rate)
	if w.Now.ShedRPS() > 0 || w.Then.ShedRPS() > 0 {
		row("shed, req/s", w.Now.ShedRPS(), w.Then.ShedRPS(), figure.Rate)
	}
	t.write(out)
	for _, o := range []struct {
		when    string
		outcome *Outcome
	}{{"now", w.Now}, {"then", w.Then}} {
		if o.outcome.Infeasible != "" {
			fmt.Fprintf(out, "%s: %s\n", o.when, o.outcome.Infeasible)
		}
	}
}

func (w *WhatIf) sources(out io.Writer) {
	names := sourceNames(w.Now, w.Then)
	weight := func(name string) float64 {
		a, b := w.Now.source(name), w.Then.source(name)
		return math.Abs(b.LatencyMs*b.ServedRPS-a.LatencyMs*a.ServedRPS) + math.Abs(b.ServedRPS-a.ServedRPS)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(weight(b), weight(a)) })
	t := newTable("", "source<", "req/s now", "then", "latency now", "then", "change", "shed then", "engines then<")
	for _, name := range names[:min(len(names), rowsShown)] {
		a, b := w.Now.source(name), w.Then.source(name)
		shed := ""
		if b.OfferedRPS-b.ServedRPS > 1e-9*b.OfferedRPS {
			shed = figure.Rate(b.OfferedRPS - b.ServedRPS)
		}
		change := ""
		if a.ServedRPS > 0 && b.ServedRPS > 0 {
			change = figure.SignedMs(b.LatencyMs - a.LatencyMs)
		}
		t.add(name, figure.Rate(a.ServedRPS), figure.Rate(b.ServedRPS), a.latencyText(), b.latencyText(), change, shed, flowList(b))
	}
	fmt.Fprintln(out)
	t.write(out)
	writeRest(out, len(names)-rowsShown, "sources that change less")
}

func (w *WhatIf) engines(out io.Writer) {
	then := make(map[string]EngineOutcome)
	for _, e := range w.Then.Engines {
		then[e.Engine] = e
	}
	order := slices.Clone(w.Now.Engines)
	weight := func(e EngineOutcome) float64 { return math.Abs(then[e.Engine].PlannedRPS - e.PlannedRPS) }
	slices.SortStableFunc(order, func(a, b EngineOutcome) int { return cmp.Compare(weight(b), weight(a)) })
	t := newTable("", "engine<", "reference req/s now", "then", "of limit now", "then")
	for _, a := range order[:min(len(order), rowsShown)] {
		b := then[a.Engine]
		t.add(a.Engine, figure.Rate(a.PlannedRPS), figure.Rate(b.PlannedRPS), limitText(a), limitText(b))
	}
	fmt.Fprintln(out)
	t.write(out)
	writeRest(out, len(order)-rowsShown, "engines that change less")
}

func (s SourceOutcome) latencyText() string {
	if s.ServedRPS == 0 {
		return "-"
	}
	return figure.Ms(s.LatencyMs)
}

func limitText(e EngineOutcome) string {
	if e.LimitRPS <= 0 {
		return "down"
	}
	return figure.Percent(e.ofLimit())
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

func printMoves(out io.Writer, list []Move) {
	t := newTable("", "moves<", "to<", "req/s now", "then", "change")
	for _, m := range list[:min(len(list), rowsShown)] {
		t.add(m.Source, m.Engine, figure.Rate(m.NowRPS), figure.Rate(m.ThenRPS), signed(m.ThenRPS-m.NowRPS, figure.Rate))
	}
	t.write(out)
	writeRest(out, len(list)-rowsShown, "smaller moves")
}

func writeRest(out io.Writer, n int, what string) {
	if n > 0 {
		fmt.Fprintf(out, "... and %d %s\n", n, what)
	}
}

// signed prints a difference with its sign.
func signed(v float64, text func(float64) string) string {
	if s := text(v); v > 0 && s != "0" {
		return "+" + s
	}
	return text(v)
}
