package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/explain/report"
	"github.com/irb-project/irb/solve/figure"
)

// rowsShown is how many sources and engines a summary lists; the rest are
// counted, and stand in the file.
const rowsShown = 24

// Summary says what a solve found: per source its demand, latency and
// engines, per engine its plan and price, and how well it is proved.
func Summary(s *snapshot.Snapshot, elapsed time.Duration) *report.Report {
	r := &report.Report{}
	r.Append(SourceTable(s))
	r.Append(EngineTable(s))
	f := s.Solver
	r.Line("objective %s ms x req/s, lower bound %s, gap %.1e (%s work, %s, %s)",
		figure.Number(f.Objective, 10), figure.Number(f.Bound, 10), f.Gap, f.Work, f.Method, elapsed.Round(10*time.Microsecond))
	text := fmt.Sprintf("mean latency %s ms over %s req/s served", figure.Ms(f.LatencyMs), figure.Rate(f.ServedRPS))
	if shed := shedRPS(s); shed > 0 {
		text += fmt.Sprintf(", %s of %s req/s shed", figure.Rate(shed), figure.Rate(f.OfferedRPS))
	}
	if hasPrevious(s) {
		text += fmt.Sprintf("; %s of the traffic moves, cache cost %s ms x req/s", figure.Percent(f.MovedShare), figure.Number(f.ChurnCost, 4))
	}
	r.Line("%s", text)
	if f.Coverage != "" {
		r.Line("%s", f.Coverage)
	}
	return r
}

func hasPrevious(s *snapshot.Snapshot) bool {
	return slices.ContainsFunc(s.Inputs, func(in snapshot.Input) bool { return in.Role == "previous" })
}

// shedRPS is what is offered and not served, 0 if that is rounding.
func shedRPS(s *snapshot.Snapshot) float64 {
	if shed := s.Solver.OfferedRPS - s.Solver.ServedRPS; shed > 1e-9*s.Solver.OfferedRPS {
		return shed
	}
	return 0
}

// SourceTable lists the sources with their engines, of many the largest.
func SourceTable(s *snapshot.Snapshot) *report.Report {
	order := make([]*snapshot.Source, len(s.Sources))
	for i := range s.Sources {
		order[i] = &s.Sources[i]
	}
	if len(order) > rowsShown {
		slices.SortStableFunc(order, func(a, b *snapshot.Source) int { return cmp.Compare(b.OfferedRPS, a.OfferedRPS) })
		order = order[:rowsShown]
	}
	t := newTable(sourceColumn("source"), report.Numbers("demand req/s", "shed", "latency ms", "by profile", "one more ms"), report.Texts("engines"))
	for _, source := range order {
		t.Add(report.Word(source.Cluster+"/"+source.Class), report.Rate(source.OfferedRPS), rateUnlessZero(source.ShedRPS),
			report.Ms(source.LatencyMs), report.Ms(source.ProfileMs), report.Ms(source.PriceMs), report.Word(weightList(source)))
	}
	r := &report.Report{}
	r.Add(t)
	r.Rest(len(s.Sources)-len(order), "smaller sources")
	return r
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

// EngineTable lists the engines with their plan and price, of many the dearest.
func EngineTable(s *snapshot.Snapshot) *report.Report {
	order := slices.Clone(s.Engines)
	if len(order) > rowsShown {
		slices.SortStableFunc(order, func(a, b snapshot.Engine) int { return cmp.Compare(b.PriceMs, a.PriceMs) })
		order = order[:rowsShown]
	}
	t := newTable(engineColumn("engine"), report.Texts("region"), report.Numbers("req/s", "of limit", "utilization", "latency ms", "price ms", "of it limit"))
	for _, e := range order {
		limit, of := report.Word(""), report.Word("down")
		if e.LimitPriceMs > 1e-6 {
			limit = report.Ms(e.LimitPriceMs)
		}
		if e.LimitRPS > 0 {
			of = report.Percent(e.PlannedRefRPS / e.LimitRPS)
		}
		t.Add(report.Word(e.Name), report.Word(e.Region), report.Rate(e.PlannedRPS), of, report.Percent(e.Utilization),
			report.Ms(e.LatencyMs), report.Ms(e.PriceMs), limit)
	}
	r := &report.Report{}
	r.Add(t)
	r.Rest(len(s.Engines)-len(order), "engines with a lower price")
	return r
}
