package explain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/irb-project/irb/explain/report"
	"github.com/irb-project/irb/solve/figure"
)

// Verdict is one line for a log or a pull request. MaxMove is the share of
// traffic that may move, 1 for any.
func (d *Diff) Verdict(maxMove float64) string {
	text := fmt.Sprintf("%s of the traffic moves (%s of %s req/s), mean latency %s -> %s ms (%s)",
		figure.Percent(d.MovedShare), figure.Rate(d.MovedRPS), figure.Rate(d.New.ServedRPS),
		figure.Ms(d.Old.MeanLatencyMs), figure.Ms(d.New.MeanLatencyMs), signedZero(d.New.MeanLatencyMs-d.Old.MeanLatencyMs))
	if d.New.ShedRPS > 1e-9*d.New.ServedRPS {
		text += fmt.Sprintf(", %s req/s shed", figure.Rate(d.New.ShedRPS))
	}
	if a := d.Attribution; a != nil && len(a.Groups) > 0 && math.Abs(a.ObjectiveMsRPS) > 0 {
		text += ", mostly by " + a.Groups[0].Group
	}
	if d.TooMuch(maxMove) {
		return fmt.Sprintf("TOO MUCH: %s; at most %s may", text, figure.Percent(maxMove))
	}
	return "ok: " + text
}

// TooMuch says whether more than a share of the traffic moves.
func (d *Diff) TooMuch(maxMove float64) bool { return d.MovedShare > maxMove }

func signedZero(ms float64) string {
	if text := figure.SignedMs(ms); text != "0" {
		return text
	}
	return "unchanged"
}

// Report is what differs, what moves most first, and why if that is known.
func (d *Diff) Report() *report.Report {
	r := &report.Report{}
	r.Heading("routing policy %d -> %d", d.Old.Sequence, d.New.Sequence)
	r.Append(d.MoveReport())
	if d.Attribution != nil {
		r.Append(d.Attribution.Report())
	}
	return r
}

// MoveReport is what differs.
func (d *Diff) MoveReport() *report.Report {
	r := &report.Report{}
	d.totals(r)
	if len(d.Sources) == 0 && len(d.Engines) == 0 {
		r.Line("no weight and no engine differs")
	}
	if len(d.Sources) > 0 {
		r.Heading("what moves")
		d.sourceTable(r)
	}
	if len(d.Engines) > 0 {
		r.Heading("engines")
		d.engineTable(r)
	}
	return r
}

// Report is the part of each group of inputs in what differs.
func (a *Attribution) Report() *report.Report {
	r := &report.Report{}
	if len(a.Groups) == 0 {
		r.Line("the inputs are the same")
		return r
	}
	r.Heading("why: the part of each group of inputs")
	a.groupTable(r)
	if len(a.Flows) > 0 {
		r.Heading("why, by flow (req/s)")
		a.flowTable(r)
	}
	return r
}

func (d *Diff) totals(r *report.Report) {
	t := newTable(report.Texts(""), report.Numbers("old", "new", "change"))
	row := func(name string, old, now float64, text func(float64) string) {
		t.Add(report.Word(name), report.As(old, text(old)), report.As(now, text(now)), change(now-old, text))
	}
	row("objective, ms x req/s", d.Old.ObjectiveMsRPS, d.New.ObjectiveMsRPS, func(v float64) string { return figure.Number(v, 10) })
	row("mean latency, ms", d.Old.MeanLatencyMs, d.New.MeanLatencyMs, figure.Ms)
	row("served, req/s", d.Old.ServedRPS, d.New.ServedRPS, figure.Rate)
	row("shed, req/s", d.Old.ShedRPS, d.New.ShedRPS, figure.Rate)
	none := report.Word("")
	t.Add(report.Word("traffic that moves"), none, report.Percent(d.MovedShare), none)
	t.Add(report.Word("its caches lost at first, ms x req/s"), none, report.Ms(d.CacheLossMsRPS), none)
	r.Add(t)
}

func (d *Diff) sourceTable(r *report.Report) {
	t := newTable(sourceColumn("source"), report.Numbers("req/s old", "new", "latency old", "new", "keys moved"), report.Texts("what"))
	for _, s := range d.Sources[:min(len(d.Sources), rowsShown)] {
		const most = 4
		var list []string
		for _, m := range s.Moves[:min(most, len(s.Moves))] {
			list = append(list, m.Engine+" "+signed(m.ThenRPS-m.NowRPS, figure.Rate))
		}
		if n := len(s.Moves) - most; n > 0 {
			list = append(list, fmt.Sprintf("%d more", n))
		}
		t.Add(report.Word(s.Source), report.Rate(s.OldRPS), report.Rate(s.NewRPS), report.Ms(s.OldLatencyMs), report.Ms(s.NewLatencyMs),
			report.Percent(s.MovedShare), report.Word(strings.Join(list, ", ")))
	}
	r.Add(t)
	r.Rest(len(d.Sources)-rowsShown, "sources that move less")
}

func (d *Diff) engineTable(r *report.Report) {
	t := newTable(engineColumn("engine"), report.Numbers("reference req/s old", "new", "limit old", "new"))
	for _, e := range d.Engines[:min(len(d.Engines), rowsShown)] {
		t.Add(report.Word(e.Engine), report.Rate(e.OldRPS), report.Rate(e.NewRPS), report.Rate(e.OldLimit), report.Rate(e.NewLimit))
	}
	r.Add(t)
	r.Rest(len(d.Engines)-rowsShown, "engines that change less")
}

func (a *Attribution) groupTable(r *report.Report) {
	objective := func(v float64) report.Cell {
		return change(v, func(v float64) string { return figure.Number(v, 6) })
	}
	t := newTable(report.Texts("inputs"), report.Numbers("objective, ms x req/s", "of it", "mean latency, ms"))
	for _, g := range a.Groups {
		part := report.Word("")
		if a.ObjectiveMsRPS != 0 {
			part = report.Percent(g.ObjectiveMsRPS / a.ObjectiveMsRPS)
		}
		t.Add(report.Word(g.Group), objective(g.ObjectiveMsRPS), part, report.SignedMs(g.MeanLatencyMs))
	}
	t.Add(report.Word("together"), objective(a.ObjectiveMsRPS), report.Word(""), report.SignedMs(a.MeanLatencyMs))
	r.Add(t)
}

func (a *Attribution) flowTable(r *report.Report) {
	t := newTable(sourceColumn("source"), engineColumn("engine"), report.Numbers("old", "new"), report.Texts("by"))
	for _, f := range a.Flows[:min(len(a.Flows), rowsShown)] {
		groups := sortedKeys(f.By)
		slices.SortStableFunc(groups, func(x, y string) int { return cmp.Compare(math.Abs(f.By[y]), math.Abs(f.By[x])) })
		var list []string
		for _, g := range groups {
			if math.Abs(f.By[g]) > 1e-6*max(f.NowRPS, f.ThenRPS) {
				list = append(list, g+" "+signed(f.By[g], figure.Rate))
			}
		}
		t.Add(report.Word(f.Source), report.Word(f.Engine), report.Rate(f.NowRPS), report.Rate(f.ThenRPS), report.Word(strings.Join(list, ", ")))
	}
	r.Add(t)
	r.Rest(len(a.Flows)-rowsShown, "flows that change less")
}
