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
		return nil, fmt.Errorf("no source of cluster %q and class %q in the snapshot", f.Cluster, f.Class)
	}
	return &view, nil
}

func (f Filter) touches(s snapshot.Source) bool {
	if f.Engine == "" {
		return true
	}
	for _, w := range s.Weights {
		if w.Engine == f.Engine {
			return true
		}
	}
	for _, a := range s.Alternatives {
		if a.Engine == f.Engine {
			return true
		}
	}
	for _, b := range s.Fallbacks {
		if b.Engine == f.Engine {
			return true
		}
	}
	return false
}

// Text explains a snapshot to people: a table and a sentence per weight.
func Text(w io.Writer, s *snapshot.Snapshot) {
	fmt.Fprintf(w, "snapshot %d of fleet %q, created %s, expires %s\n", s.Sequence, s.Fleet,
		s.Created.Format(time.RFC3339), s.Expires.Format(time.RFC3339))
	if s.Author != "" || s.Reason != "" {
		fmt.Fprintf(w, "by %s: %s\n", orUnknown(s.Author), s.Reason)
	}
	fmt.Fprintf(w, "mean latency %s ms over %s req/s; certified within %s of the optimum\n",
		figure.Ms(s.Solver.LatencyMs), figure.Rate(s.Solver.ServedRPS), fmt.Sprintf("%.1e", max(0, s.Solver.Gap)))
	if s.Solver.Coverage != "" {
		fmt.Fprintln(w, s.Solver.Coverage)
	}
	for _, note := range s.Solver.Notes {
		fmt.Fprintf(w, "note: %s\n", note)
	}
	fmt.Fprintln(w, legend)
	sources := largestSources(s)
	for _, source := range sources {
		fmt.Fprintln(w)
		textSource(w, source)
	}
	if n := len(s.Sources) - len(sources); n > 0 {
		fmt.Fprintf(w, "\n... and %d smaller sources; see one with --cluster and --class, all with --format json\n", n)
	}
	fmt.Fprintln(w)
	summaryEngines(w, s)
	textBottlenecks(w, s.Engines)
}

// legend says what the columns of a source's table are.
const legend = `one more ms is what one more request costs: network, compute (unloaded), delay (its own wait), to others
(the wait that it adds to theirs), limit (price of a full engine), other (price of shares, caps, caches)`

// largestSources returns the sources in their order, of many only the largest.
func largestSources(s *snapshot.Snapshot) []*snapshot.Source {
	sources := make([]*snapshot.Source, len(s.Sources))
	for i := range s.Sources {
		sources[i] = &s.Sources[i]
	}
	if len(sources) <= rowsShown {
		return sources
	}
	slices.SortStableFunc(sources, func(a, b *snapshot.Source) int { return cmp.Compare(b.OfferedRPS, a.OfferedRPS) })
	sources = sources[:rowsShown]
	slices.SortFunc(sources, func(a, b *snapshot.Source) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Class, b.Class))
	})
	return sources
}

// textBottlenecks says which engines are full and what room there is worth, or
// where queues cost most if none is.
func textBottlenecks(w io.Writer, engines []snapshot.Engine) {
	const most = 8
	var full []snapshot.Engine
	for _, e := range engines {
		if e.LimitPriceMs > 1e-6 {
			full = append(full, e)
		}
	}
	slices.SortStableFunc(full, func(a, b snapshot.Engine) int { return cmp.Compare(b.LimitPriceMs, a.LimitPriceMs) })
	for _, e := range full[:min(most, len(full))] {
		fmt.Fprintf(w, "bottleneck: %s is full (%s of %s reference req/s); room for one more request there would save %s ms\n",
			e.Name, figure.Rate(e.PlannedRefRPS), figure.Rate(e.LimitRPS), figure.Ms(e.LimitPriceMs))
	}
	writeRest(w, len(full)-most, "full engines where room is worth less")
	if len(full) > 0 || len(engines) == 0 {
		return
	}
	if e := slices.MaxFunc(engines, func(a, b snapshot.Engine) int { return cmp.Compare(a.PriceMs, b.PriceMs) }); e.PriceMs > 1e-6 {
		fmt.Fprintf(w, "no full engine stands in the way; queues cost most at %s, where one more reference request makes %s ms of waiting, its own and others'\n", e.Name, figure.Ms(e.PriceMs))
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func textSource(w io.Writer, s *snapshot.Source) {
	fmt.Fprintf(w, "%s/%s: %s req/s", s.Cluster, s.Class, figure.Rate(s.OfferedRPS))
	if s.ShedRPS > 0 {
		fmt.Fprintf(w, " (%s shed)", figure.Rate(s.ShedRPS))
	}
	fmt.Fprintf(w, ", mean latency %s ms, one more request costs %s ms\n", figure.Ms(s.LatencyMs), figure.Ms(s.PriceMs))
	t := newTable("  ", "engine<", "share", "req/s", "network", "compute", "delay", "to others", "limit", "other", "one more ms")
	for _, x := range s.Weights {
		t.add(costCells(x.Engine, figure.Percent(x.Fraction), figure.Rate(x.RPS), x.Cost)...)
	}
	for _, x := range s.Alternatives {
		t.add(costCells(x.Engine, "-", "-", x.Cost)...)
	}
	t.write(w)
	for _, x := range s.Weights {
		fmt.Fprintf(w, "  %s\n", x.Text)
	}
	for _, x := range s.Alternatives {
		fmt.Fprintf(w, "  not used: %s\n", x.Text)
	}
	for _, x := range s.Fallbacks {
		fmt.Fprintf(w, "  fallback: %s, up to %s req/s more: %s\n", x.Engine, figure.Rate(x.AbsorbRPS), x.Text)
	}
}

func costCells(engine, share, rate string, c snapshot.Cost) []string {
	return []string{
		engine, share, rate, figure.Ms(c.Net), figure.Ms(c.Base), figure.Ms(c.Delay), figure.Ms(c.Externality + c.Kink),
		figure.Ms(c.Limit), figure.Ms(c.Share + c.Cache), figure.Ms(c.Total),
	}
}
