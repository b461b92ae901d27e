package page

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/explain"
	"github.com/irb-project/irb/explain/report"
	"github.com/irb-project/irb/solve/figure"
)

// Explanation is what a page about one snapshot shows.
type Explanation struct {
	Snapshot *snapshot.Snapshot
	Answers  []Answer // to what was asked of its inputs
	Notes    []string // what the page does not tell, and how to have it
}

// Answer is the answer to one question; as JSON it is that of --format json.
type Answer struct {
	Name  string // the key of the JSON
	Found interface{ Report() *report.Report }
}

// found is an answer with sentences for the top of the page.
type found interface{ Findings() []string }

// Of many sources and engines a page details only the largest; the JSON has
// all, and a filter on the command line makes a page about others.
const (
	sourcesShown = 100
	sourcesOpen  = 12 // of more a reader opens those of interest
	enginesShown = 60
)

// WriteExplanation writes the page of a snapshot.
func WriteExplanation(w io.Writer, x Explanation) error {
	tree, err := explain.Tree(x.Snapshot)
	if err != nil {
		return err
	}
	s := x.Snapshot
	engines := dearest(s.Engines)
	sources := explain.Largest(s.Sources, sourcesShown)
	d := &document{Title: fmt.Sprintf("Routing policy of %s", s.Fleet), Facts: facts(s), Findings: findings(x)}
	for _, source := range sources {
		d.Sources = append(d.Sources, source.Cluster+"/"+source.Class)
	}
	curves := make(map[string]curve)
	for _, e := range engines {
		d.Engines = append(d.Engines, e.Name)
		curves[e.Name] = curveOf(e)
	}
	d.Sections = []section{flowSection(s), engineSection(s, engines)}
	answers := make(map[string]any)
	for _, a := range x.Answers {
		answers[a.Name] = a.Found
		d.Sections = append(d.Sections, answerSection(a))
	}
	d.Sections = append(d.Sections, sourceSection(s, sources), aboutSection(x))
	return d.write(w, map[string]any{
		"snapshot": tree, "answers": answers, "curves": curves,
		"shown": map[string]any{"sources": d.Sources, "engines": d.Engines},
	})
}

// dearest returns the engines in their order, of many those with the highest
// prices.
func dearest(engines []snapshot.Engine) []*snapshot.Engine {
	list := make([]*snapshot.Engine, len(engines))
	for i := range engines {
		list[i] = &engines[i]
	}
	if len(list) > enginesShown {
		slices.SortStableFunc(list, func(a, b *snapshot.Engine) int {
			switch {
			case a.PriceMs > b.PriceMs:
				return -1
			case a.PriceMs < b.PriceMs:
				return 1
			}
			return 0
		})
		list = list[:enginesShown]
	}
	return list
}

func facts(s *snapshot.Snapshot) []string {
	list := []string{fmt.Sprintf("Snapshot %d, created %s, expires %s.", s.Sequence, s.Created.Format(time.RFC3339), s.Expires.Format(time.RFC3339))}
	if s.Author != "" || s.Reason != "" {
		list = append(list, fmt.Sprintf("By %s: %s", s.Author, s.Reason))
	}
	return append(list, fmt.Sprintf("Mean latency %s ms over %s req/s served of %s req/s offered; certified within %.1e of the optimum.",
		figure.Ms(s.Solver.LatencyMs), figure.Rate(s.Solver.ServedRPS), figure.Rate(s.Solver.OfferedRPS), max(0, s.Solver.Gap)))
}

// findings are what a reader should know first: where it is full, what would
// help, what goes far, what a loss does.
func findings(x Explanation) []finding {
	const most = 3
	var list []finding
	add := func(about string, texts []string) {
		for _, text := range texts[:min(len(texts), most)] {
			list = append(list, finding{about, strings.TrimPrefix(text, "bottleneck: ")})
			about = ""
		}
	}
	add("Bottlenecks", explain.Bottlenecks(x.Snapshot))
	for _, a := range x.Answers {
		if f, ok := a.Found.(found); ok {
			add(kindOf(a.Name).about, f.Findings())
		}
	}
	var far []string
	for _, d := range explain.Detours(x.Snapshot) {
		far = append(far, fmt.Sprintf("%s sends %s req/s to %s, %s ms away, though %s is %s ms away: %s", d.Source, figure.Rate(d.RPS), d.Engine,
			figure.Ms(d.NetMs), d.Nearest, figure.Ms(d.NearestMs), d.Why))
	}
	add("Far traffic", far)
	return list
}

func flowSection(s *snapshot.Snapshot) section {
	out := section{ID: "flows", Title: "Where traffic goes"}
	out.Blocks = append(out.Blocks,
		block{Figure: &fig{Kind: "heat", Title: "Sources and engines", Unit: "share of the source's requests, %; of engines not used what they lose by, ms"}},
		block{Figure: &fig{Kind: "flows", Title: "Flows", Unit: "req/s"}})
	out.Blocks = append(out.Blocks, blocks(explain.SourceTable(s))...)
	if detours := explain.Detours(s); len(detours) > 0 {
		out.Blocks = append(out.Blocks, block{Heading: "What goes far, and why"})
		out.Blocks = append(out.Blocks, blocks(explain.DetourReport(detours))...)
	}
	return out
}

func engineSection(s *snapshot.Snapshot, engines []*snapshot.Engine) section {
	out := section{ID: "engines", Title: "Engines"}
	out.Blocks = append(out.Blocks, blocks(explain.EngineTable(s))...)
	out.Blocks = append(out.Blocks, block{Items: explain.Bottlenecks(s)})
	for _, e := range engines {
		out.Blocks = append(out.Blocks, block{Figure: &fig{Kind: "curve", Title: e.Name, Engine: e.Name, Unit: "latency of the reference request, ms, against reference req/s"}})
	}
	return out
}

// answerKind is how a page shows an answer.
type answerKind struct {
	title  string
	about  string // of its findings
	figure *fig   // for what ranks or compares
}

func kindOf(name string) answerKind {
	switch name {
	case "what_if":
		return answerKind{"What if", "", &fig{Kind: "moves", Title: "What moves", Unit: "req/s, then less now"}}
	case "n_1":
		return answerKind{"When an engine is lost", "Losses", &fig{Kind: "losses", Title: "Each engine and failure domain lost", Unit: "req/s that cannot be served: at once, and by a new plan"}}
	case "value":
		return answerKind{"What more capacity saves", "More capacity", &fig{Kind: "values", Title: "More capacity, each engine in turn", Unit: "saved, ms x req/s; where demand is shed: served more, req/s"}}
	case "sensitivity":
		return answerKind{"What the policy costs", "", &fig{Kind: "knobs", Title: "Each knob of the policy", Unit: "costs, ms x req/s"}}
	}
	return answerKind{title: "Break-evens"}
}

func answerSection(a Answer) section {
	kind := kindOf(a.Name)
	out := section{ID: a.Name, Title: kind.title}
	if kind.figure != nil {
		out.Blocks = append(out.Blocks, block{Figure: kind.figure})
	}
	out.Blocks = append(out.Blocks, blocks(a.Found.Report())...)
	return out
}

func sourceSection(s *snapshot.Snapshot, sources []*snapshot.Source) section {
	out := section{ID: "sources", Title: "Why each weight is what it is"}
	out.Blocks = append(out.Blocks, block{Note: explain.Legend})
	for _, source := range sources {
		name := source.Cluster + "/" + source.Class
		list := blocks(explain.ExplainSource(source)) // begins with its heading
		body := append([]block{
			{Figure: &fig{Kind: "costs", Title: "One more request of " + name, Source: name, Unit: "cost by part, ms; * used"}},
			{Figure: &fig{Kind: "waterfall", Title: "How the cost adds up for " + name, Source: name, Unit: "ms"}},
		}, list[1:]...)
		engines, err := json.Marshal(explain.EnginesOf(source))
		if err != nil {
			panic(err) // a list of strings
		}
		out.Blocks = append(out.Blocks, block{Article: &article{Source: name, Engines: string(engines), Title: list[0].Heading, Open: len(sources) <= sourcesOpen, Blocks: body}})
	}
	if n := len(s.Sources) - len(sources); n > 0 {
		out.Blocks = append(out.Blocks, block{Note: fmt.Sprintf("... and %d smaller sources, in the data of the page; --cluster and --class make a page about them", n)})
	}
	return out
}

func aboutSection(x Explanation) section {
	s := x.Snapshot
	out := section{ID: "about", Title: "About this page"}
	for _, text := range slices.Concat(s.Solver.Notes, x.Notes) {
		out.Blocks = append(out.Blocks, block{Line: text})
	}
	if s.Solver.Coverage != "" {
		out.Blocks = append(out.Blocks, block{Line: s.Solver.Coverage})
	}
	t := report.NewTable(report.Texts("input", "file", "sha256")...)
	for _, in := range s.Inputs {
		t.Add(report.Word(in.Role), report.Word(in.File), report.Word(in.SHA256))
	}
	f := s.Solver
	out.Blocks = append(out.Blocks, block{Table: tableOf(t)},
		block{Line: fmt.Sprintf("Objective %s ms x req/s, lower bound %s, %s work, by %s.", figure.Number(f.Objective, 10), figure.Number(f.Bound, 10), f.Work, f.Method)},
		block{Line: "The signature of the weight file was not checked for this page; irbctl verify does that. The page carries its numbers as JSON (element \"data\"), the same as irbctl explain --format json. Charts are drawn by Apache ECharts 6.1.0 (Apache License 2.0)."})
	return out
}
