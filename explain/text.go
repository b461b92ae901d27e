// Package explain tells people and machines why a snapshot's weights are what
// they are.
package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/explain/report"
	"github.com/irb-project/irb/solve/figure"
)

// Filter narrows an explanation; an empty field takes all.
type Filter struct {
	Cluster, Class, Engine string
}

// Apply returns the snapshot's view through the filter: the sources of the
// cluster and class that use, could use or fall back to the engine.
func (f Filter) Apply(s *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	view := *s
	view.Sources = nil
	for _, source := range s.Sources {
		if (f.Cluster == "" || source.Cluster == f.Cluster) && (f.Class == "" || source.Class == f.Class) && f.touches(source) {
			view.Sources = append(view.Sources, source)
		}
	}
	if f.Engine != "" {
		view.Engines = nil
		for _, e := range s.Engines {
			if e.Name == f.Engine {
				view.Engines = append(view.Engines, e)
			}
		}
		if len(view.Engines) == 0 {
			return nil, fmt.Errorf("no engine %q in the snapshot", f.Engine)
		}
	}
	if len(view.Sources) == 0 && f.Engine == "" {
		return nil, f.noSource(s)
	}
	return &view, nil
}

// noSource says what of the filter no source of the snapshot has.
func (f Filter) noSource(s *snapshot.Snapshot) error {
	var clusters, classes []string
	for _, source := range s.Sources {
		clusters, classes = append(clusters, source.Cluster), append(classes, source.Class)
	}
	switch {
	case f.Cluster != "" && !slices.Contains(clusters, f.Cluster):
		return unknown("cluster", f.Cluster, len(clusters), func(i int) string { return clusters[i] })
	case f.Class != "" && !slices.Contains(classes, f.Class):
		return unknown("class", f.Class, len(classes), func(i int) string { return classes[i] })
	}
	return fmt.Errorf("cluster %q has no class %q in the snapshot", f.Cluster, f.Class)
}

func (f Filter) touches(s snapshot.Source) bool {
	return f.Engine == "" || slices.Contains(EnginesOf(&s), f.Engine)
}

// EnginesOf lists the engines that a source uses, could use or falls back to.
func EnginesOf(s *snapshot.Source) []string {
	var list []string
	for _, w := range s.Weights {
		list = append(list, w.Engine)
	}
	for _, a := range s.Alternatives {
		list = append(list, a.Engine)
	}
	for _, b := range s.Fallbacks {
		if !slices.Contains(list, b.Engine) {
			list = append(list, b.Engine)
		}
	}
	return list
}

// Text prints what Explain says for a terminal.
func Text(w io.Writer, s *snapshot.Snapshot) error { return Explain(s).WriteText(w) }

// Explain explains a snapshot to people: a table and a sentence per weight.
func Explain(s *snapshot.Snapshot) *report.Report {
	r := &report.Report{}
	overview(r, s)
	r.Note("%s", Legend)
	sources := Largest(s.Sources, rowsShown)
	for _, source := range sources {
		r.Append(ExplainSource(source))
	}
	if n := len(s.Sources) - len(sources); n > 0 {
		r.Line("... and %d smaller sources; see one with --cluster and --class, all with --format json", n)
	}
	r.Heading("engines")
	r.Append(EngineTable(s))
	for _, text := range Bottlenecks(s) {
		r.Item("%s", text)
	}
	return r
}

func overview(r *report.Report, s *snapshot.Snapshot) {
	r.Line("snapshot %d of fleet %q, created %s, expires %s", s.Sequence, s.Fleet,
		s.Created.Format(time.RFC3339), s.Expires.Format(time.RFC3339))
	if s.Author != "" || s.Reason != "" {
		r.Line("by %s: %s", orUnknown(s.Author), s.Reason)
	}
	shed := ""
	if rps := shedRPS(s); rps > 0 {
		shed = fmt.Sprintf(", %s of %s req/s shed", figure.Rate(rps), figure.Rate(s.Solver.OfferedRPS))
	}
	r.Line("mean latency %s ms over %s req/s%s; certified within %.1e of the optimum",
		figure.Ms(s.Solver.LatencyMs), figure.Rate(s.Solver.ServedRPS), shed, max(0, s.Solver.Gap))
	if s.Solver.Coverage != "" {
		r.Line("%s", s.Solver.Coverage)
	}
	for _, note := range s.Solver.Notes {
		r.Line("note: %s", note)
	}
}

// Legend says what the columns of a source's table are.
const Legend = `one more ms is what one more request costs: network, compute (unloaded), delay (its own wait), to others
(the wait that it adds to theirs), limit (price of a full engine), other (price of shares, caps, caches)`

// Largest returns at most n sources in their order, of many the largest.
func Largest(sources []snapshot.Source, n int) []*snapshot.Source {
	list := make([]*snapshot.Source, len(sources))
	for i := range sources {
		list[i] = &sources[i]
	}
	if len(list) <= n {
		return list
	}
	slices.SortStableFunc(list, func(a, b *snapshot.Source) int { return cmp.Compare(b.OfferedRPS, a.OfferedRPS) })
	list = list[:n]
	slices.SortFunc(list, func(a, b *snapshot.Source) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Class, b.Class))
	})
	return list
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// ExplainSource explains the weights of one source.
func ExplainSource(s *snapshot.Source) *report.Report {
	r := &report.Report{}
	shed := ""
	if s.ShedRPS > 0 {
		shed = fmt.Sprintf(" (%s shed)", figure.Rate(s.ShedRPS))
	}
	r.Heading("%s/%s: %s req/s%s, mean latency %s ms, one more request costs %s ms", s.Cluster, s.Class,
		figure.Rate(s.OfferedRPS), shed, figure.Ms(s.LatencyMs), figure.Ms(s.PriceMs))
	t := newTable(engineColumn("engine"), report.Numbers("share", "req/s", "network", "compute", "delay", "to others", "limit", "other", "one more ms"))
	for _, x := range s.Weights {
		t.Add(costCells(x.Engine, report.Percent(x.Fraction), report.Rate(x.RPS), x.Cost)...)
	}
	for _, x := range s.Alternatives {
		t.Add(costCells(x.Engine, report.Word("-"), report.Word("-"), x.Cost)...)
	}
	r.Add(t)
	for _, x := range s.Weights {
		r.Item("%s", x.Text)
	}
	for _, x := range s.Alternatives {
		r.Item("not used: %s", x.Text)
	}
	for _, x := range s.Fallbacks {
		r.Item("fallback: %s, up to %s req/s more: %s", x.Engine, figure.Rate(x.AbsorbRPS), x.Text)
	}
	return r
}

func costCells(engine string, share, rate report.Cell, c snapshot.Cost) []report.Cell {
	return []report.Cell{
		report.Word(engine), share, rate, report.Ms(c.Net), report.Ms(c.Base), report.Ms(c.Delay), report.Ms(c.Externality + c.Kink),
		report.Ms(c.Limit), report.Ms(c.Share + c.Cache), report.Ms(c.Total),
	}
}
