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

// rowsShown is how many sources and engines a summary lists; the rest are
// counted, and stand in the file.
const rowsShown = 24

// Summary prints what a solve found: per source its demand, latency and
// engines, per engine its plan and price, and how well it is proved.
func Summary(w io.Writer, s *snapshot.Snapshot, elapsed time.Duration) {
	summarySources(w, s)
	fmt.Fprintln(w)
	summaryEngines(w, s)
	fmt.Fprintln(w)
	f := s.Solver
	fmt.Fprintf(w, "objective %s ms x req/s, lower bound %s, gap %s (%s work, %s, %s)\n",
		figure.Number(f.Objective, 10), figure.Number(f.Bound, 10), fmt.Sprintf("%.1e", f.Gap), f.Work, f.Method, elapsed.Round(10*time.Microsecond))
	fmt.Fprintf(w, "mean latency %s ms over %s req/s served", figure.Ms(f.LatencyMs), figure.Rate(f.ServedRPS))
	if shed := f.OfferedRPS - f.ServedRPS; shed > 1e-9*f.OfferedRPS {
		fmt.Fprintf(w, ", %s of %s req/s shed", figure.Rate(shed), figure.Rate(f.OfferedRPS))
	}
	if hasPrevious(s) {
		fmt.Fprintf(w, "; %s of the traffic moves, cache cost %s ms x req/s", figure.Percent(f.MovedShare), figure.Number(f.ChurnCost, 4))
	}
	fmt.Fprintln(w)
	if f.Coverage != "" {
		fmt.Fprintln(w, f.Coverage)
	}
}

func hasPrevious(s *snapshot.Snapshot) bool {
	return slices.ContainsFunc(s.Inputs, func(in snapshot.Input) bool { return in.Role == "previous" })
}

func summarySources(w io.Writer, s *snapshot.Snapshot) {
	order := make([]*snapshot.Source, len(s.Sources))
	for i := range s.Sources {
		order[i] = &s.Sources[i]
	}
	rest := 0
	if len(order) > rowsShown {
		slices.SortStableFunc(order, func(a, b *snapshot.Source) int { return cmp.Compare(b.OfferedRPS, a.OfferedRPS) })
		rest = len(order) - rowsShown
		order = order[:rowsShown]
	}
	t := newTable("", "source<", "demand req/s", "shed", "latency ms", "by profile", "one more ms", "engines<")
	for _, source := range order {
		shed := ""
		if source.ShedRPS > 0 {
			shed = figure.Rate(source.ShedRPS)
		}
		t.add(source.Cluster+"/"+source.Class, figure.Rate(source.OfferedRPS), shed, figure.Ms(source.LatencyMs), figure.Ms(source.ProfileMs), figure.Ms(source.PriceMs), weightList(source))
	}
	t.write(w)
	if rest > 0 {
		fmt.Fprintf(w, "... and %d smaller sources\n", rest)
	}
}

// weightList is "a-1 74.2 %, c-1 25.8 %", the largest weights first.
func weightList(source *snapshot.Source) string {
	const most = 4
	weights := slices.Clone(source.Weights)
	slices.SortStableFunc(weights, func(a, b snapshot.Weight) int { return cmp.Compare(b.Quota, a.Quota) })
	var list []string
	for _, w := range weights[:min(most, len(weights))] {
		list = append(list, w.Engine+" "+figure.Percent(w.Fraction))
	}
	if len(weights) > most {
		list = append(list, fmt.Sprintf("%d more", len(weights)-most))
	}
	return strings.Join(list, ", ")
}

func summaryEngines(w io.Writer, s *snapshot.Snapshot) {
	order := make([]*snapshot.Engine, len(s.Engines))
	for i := range s.Engines {
		order[i] = &s.Engines[i]
	}
	rest := 0
	if len(order) > rowsShown {
		slices.SortStableFunc(order, func(a, b *snapshot.Engine) int { return cmp.Compare(b.PriceMs, a.PriceMs) })
		rest = len(order) - rowsShown
		order = order[:rowsShown]
	}
	t := newTable("", "engine<", "region<", "req/s", "of limit", "utilization", "latency ms", "price ms", "of it limit")
	for _, e := range order {
		limit := ""
		if e.LimitPriceMs > 1e-6 {
			limit = figure.Ms(e.LimitPriceMs)
		}
		of := "down"
		if e.LimitRPS > 0 {
			of = figure.Percent(e.PlannedRefRPS / e.LimitRPS)
		}
		t.add(e.Name, e.Region, figure.Rate(e.PlannedRPS), of, figure.Percent(e.Utilization), figure.Ms(e.LatencyMs), figure.Ms(e.PriceMs), limit)
	}
	t.write(w)
	if rest > 0 {
		fmt.Fprintf(w, "... and %d engines with a lower price\n", rest)
	}
}
