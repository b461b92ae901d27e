package explain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/explain/report"
	"github.com/irb-project/irb/solve/figure"
)

// sentencesShown is how many sentences of one kind are told.
const sentencesShown = 8

// Bottlenecks says which engines are full and what room there is worth, or
// where queues cost most if none is.
func Bottlenecks(s *snapshot.Snapshot) []string {
	var list []string
	full := fullEngines(s.Engines)
	shed := shedRPS(s)
	for _, e := range full[:min(sentencesShown, len(full))] {
		text := fmt.Sprintf("bottleneck: %s is full (%s of %s reference req/s); ", e.Name, figure.Rate(e.PlannedRefRPS), figure.Rate(e.LimitRPS))
		switch {
		case e.LimitPriceMs > 1e-6:
			text += fmt.Sprintf("room for one more request there would save %s ms", figure.Ms(e.LimitPriceMs))
		case shed > 0:
			text += "its limit price is 0, as prices are about the latency of what is served; what room there is worth is that less is shed"
		default:
			text += "room for more there would save nothing, as what is there is served as fast elsewhere"
		}
		list = append(list, text)
	}
	if n := len(full) - sentencesShown; n > 0 {
		list = append(list, fmt.Sprintf("... and %d full engines where room is worth less", n))
	}
	if len(full) > 0 || len(s.Engines) == 0 {
		return list
	}
	if e := slices.MaxFunc(s.Engines, func(a, b snapshot.Engine) int { return cmp.Compare(a.PriceMs, b.PriceMs) }); e.PriceMs > 1e-6 {
		list = append(list, fmt.Sprintf("no full engine stands in the way; queues cost most at %s, where one more reference request makes %s ms of waiting, its own and others'", e.Name, figure.Ms(e.PriceMs)))
	}
	return list
}

// fullEngines are those at their limit, the dearest first.
func fullEngines(engines []snapshot.Engine) []snapshot.Engine {
	var full []snapshot.Engine
	for _, e := range engines {
		if e.LimitPriceMs > 1e-6 || e.LimitRPS > 0 && e.PlannedRefRPS >= e.LimitRPS*(1-1e-9) {
			full = append(full, e)
		}
	}
	slices.SortStableFunc(full, func(a, b snapshot.Engine) int { return cmp.Compare(b.LimitPriceMs, a.LimitPriceMs) })
	return full
}

// Detour is a flow to an engine that is farther than another that the source
// uses or could use, by at least farMs of network.
type Detour struct {
	Source    string
	Engine    string
	RPS       float64
	NetMs     float64
	Nearest   string
	NearestMs float64
	Why       string // the reason of the weight
}

// farMs is the network time that a person asks about: more than within a
// continent (a round trip across Europe or North America takes 30 to 70 ms).
const farMs = 50

// Detours lists the flows that leave their neighbourhood, those with most
// network time in all first.
func Detours(s *snapshot.Snapshot) []Detour {
	var list []Detour
	for i := range s.Sources {
		source := &s.Sources[i]
		nearest, nearestMs := nearestEngine(source)
		for _, w := range source.Weights {
			if w.Cost.Net-nearestMs >= farMs && w.RPS > 0 {
				list = append(list, Detour{source.Cluster + "/" + source.Class, w.Engine, w.RPS, w.Cost.Net, nearest, nearestMs, w.Text})
			}
		}
	}
	extra := func(d Detour) float64 { return d.RPS * (d.NetMs - d.NearestMs) }
	slices.SortStableFunc(list, func(a, b Detour) int { return cmp.Compare(extra(b), extra(a)) })
	return list
}

// nearestEngine is that with the least network time among those which a source
// uses and its best alternatives.
func nearestEngine(s *snapshot.Source) (name string, ms float64) {
	nearer := func(engine string, netMs float64) {
		if name == "" || netMs < ms {
			name, ms = engine, netMs
		}
	}
	for _, w := range s.Weights {
		nearer(w.Engine, w.Cost.Net)
	}
	for _, a := range s.Alternatives {
		nearer(a.Engine, a.Cost.Net)
	}
	return name, ms
}

// DetourReport is a row and a reason for each detour.
func DetourReport(detours []Detour) *report.Report {
	r := &report.Report{}
	t := newTable(sourceColumn("source"), engineColumn("sends to"), report.Numbers("req/s", "network ms"), report.Texts("nearer"), report.Numbers("its network ms"))
	for _, d := range detours[:min(len(detours), rowsShown)] {
		t.Add(report.Word(d.Source), report.Word(d.Engine), report.Rate(d.RPS), report.Ms(d.NetMs), report.Word(d.Nearest), report.Ms(d.NearestMs))
	}
	r.Add(t)
	r.Rest(len(detours)-rowsShown, "flows that go less far")
	for _, d := range detours[:min(len(detours), sentencesShown)] {
		r.Item("%s: %s", d.Source, d.Why)
	}
	return r
}
