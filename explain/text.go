// Package explain tells people and machines why a snapshot's weights are what
// they are.
package explain

import (
	"fmt"
	"io"
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
	for i := range s.Sources {
		fmt.Fprintln(w)
		textSource(w, &s.Sources[i])
	}
	fmt.Fprintln(w)
	summaryEngines(w, s)
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
