package explain

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

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

// Text prints the differences for a terminal.
func (d *Diff) Text(w io.Writer) {
	fmt.Fprintf(w, "snapshot %d -> %d\n\n", d.Old.Sequence, d.New.Sequence)
	d.print(w, func(title string, t *table) {
		fmt.Fprintln(w, title)
		t.write(w)
	})
}

// Markdown prints them for a pull request.
func (d *Diff) Markdown(w io.Writer) {
	fmt.Fprintf(w, "### Routing policy %d -> %d\n\n", d.Old.Sequence, d.New.Sequence)
	d.print(w, func(title string, t *table) {
		fmt.Fprintf(w, "**%s**\n\n", title)
		t.markdown(w)
	})
}

func (d *Diff) print(w io.Writer, show func(title string, t *table)) {
	show("In short", d.totals())
	if len(d.Sources) == 0 && len(d.Engines) == 0 {
		fmt.Fprintln(w, "\nno weight and no engine differs")
	}
	if len(d.Sources) > 0 {
		fmt.Fprintln(w)
		show("What moves", d.sourceTable())
		writeRest(w, len(d.Sources)-rowsShown, "sources that move less")
	}
	if len(d.Engines) > 0 {
		fmt.Fprintln(w)
		show("Engines", d.engineTable())
		writeRest(w, len(d.Engines)-rowsShown, "engines that change less")
	}
	if a := d.Attribution; a != nil {
		fmt.Fprintln(w)
		if len(a.Groups) == 0 {
			fmt.Fprintln(w, "the inputs are the same")
			return
		}
		show("Why: the part of each group of inputs", a.groupTable())
		if len(a.Flows) > 0 {
			fmt.Fprintln(w)
			show("Why, by flow (req/s)", a.flowTable())
			writeRest(w, len(a.Flows)-rowsShown, "flows that change less")
		}
	}
}

func (d *Diff) totals() *table {
	t := newTable("", "<", "old", "new", "change")
	row := func(name string, old, now float64, text func(float64) string) {
		t.add(name, text(old), text(now), signed(now-old, text))
	}
	row("objective, ms x req/s", d.Old.ObjectiveMsRPS, d.New.ObjectiveMsRPS, func(v float64) string { return figure.Number(v, 10) })
	row("mean latency, ms", d.Old.MeanLatencyMs, d.New.MeanLatencyMs, figure.Ms)
	row("served, req/s", d.Old.ServedRPS, d.New.ServedRPS, figure.Rate)
	row("shed, req/s", d.Old.ShedRPS, d.New.ShedRPS, figure.Rate)
	t.add("traffic that moves", "", figure.Percent(d.MovedShare), "")
	t.add("its caches lost at first, ms x req/s", "", figure.Ms(d.CacheLossMsRPS), "")
	return t
}

func (d *Diff) sourceTable() *table {
	t := newTable("", "source<", "req/s old", "new", "latency old", "new", "keys moved", "what<")
	for _, s := range d.Sources[:min(len(d.Sources), rowsShown)] {
		const most = 4
		var list []string
		for _, m := range s.Moves[:min(most, len(s.Moves))] {
			list = append(list, m.Engine+" "+signed(m.ThenRPS-m.NowRPS, figure.Rate))
		}
		if n := len(s.Moves) - most; n > 0 {
			list = append(list, fmt.Sprintf("%d more", n))
		}
		t.add(s.Source, figure.Rate(s.OldRPS), figure.Rate(s.NewRPS), figure.Ms(s.OldLatencyMs), figure.Ms(s.NewLatencyMs),
			figure.Percent(s.MovedShare), strings.Join(list, ", "))
	}
	return t
}

func (d *Diff) engineTable() *table {
	t := newTable("", "engine<", "reference req/s old", "new", "limit old", "new")
	for _, e := range d.Engines[:min(len(d.Engines), rowsShown)] {
		t.add(e.Engine, figure.Rate(e.OldRPS), figure.Rate(e.NewRPS), figure.Rate(e.OldLimit), figure.Rate(e.NewLimit))
	}
	return t
}

func (a *Attribution) groupTable() *table {
	t := newTable("", "inputs<", "objective, ms x req/s", "of it", "mean latency, ms")
	for _, g := range a.Groups {
		part := ""
		if a.ObjectiveMsRPS != 0 {
			part = figure.Percent(g.ObjectiveMsRPS / a.ObjectiveMsRPS)
		}
		t.add(g.Group, signed(g.ObjectiveMsRPS, func(v float64) string { return figure.Number(v, 6) }), part, figure.SignedMs(g.MeanLatencyMs))
	}
	t.add("together", signed(a.ObjectiveMsRPS, func(v float64) string { return figure.Number(v, 6) }), "", figure.SignedMs(a.MeanLatencyMs))
	return t
}

func (a *Attribution) flowTable() *table {
	t := newTable("", "source<", "engine<", "old", "new", "by<")
	for _, f := range a.Flows[:min(len(a.Flows), rowsShown)] {
		groups := sortedKeys(f.By)
		slices.SortStableFunc(groups, func(x, y string) int { return cmp.Compare(math.Abs(f.By[y]), math.Abs(f.By[x])) })
		var list []string
		for _, g := range groups {
			if math.Abs(f.By[g]) > 1e-6*max(f.NowRPS, f.ThenRPS) {
				list = append(list, g+" "+signed(f.By[g], figure.Rate))
			}
		}
		t.add(f.Source, f.Engine, figure.Rate(f.NowRPS), figure.Rate(f.ThenRPS), strings.Join(list, ", "))
	}
	return t
}
