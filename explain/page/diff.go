package page

import (
	"fmt"
	"io"

	"github.com/irb-project/irb/explain"
)

// WriteDiff writes the page of a comparison; the verdict is its first finding.
func WriteDiff(w io.Writer, d *explain.Diff, verdict string) error {
	page := &document{
		Title:    fmt.Sprintf("Routing policy %d compared with %d", d.New.Sequence, d.Old.Sequence),
		Findings: []finding{{"Verdict", verdict}},
	}
	engines := make(map[string]bool)
	for _, s := range d.Sources {
		page.Sources = append(page.Sources, s.Source)
		for _, m := range s.Moves {
			if !engines[m.Engine] {
				engines[m.Engine] = true
				page.Engines = append(page.Engines, m.Engine)
			}
		}
	}
	page.Sections = append(page.Sections, section{ID: "moves", Title: "What moves", Blocks: append([]block{
		{Figure: &fig{Kind: "change", Title: "What each source sends to each engine", Unit: "req/s, new less old"}},
		{Figure: &fig{Kind: "load", Title: "What each engine carries", Unit: "reference req/s, old and new"}},
	}, blocks(d.MoveReport())...)})
	if d.Attribution != nil {
		page.Sections = append(page.Sections, section{ID: "why", Title: "Why", Blocks: append([]block{
			{Figure: &fig{Kind: "groups", Title: "Part of each group of inputs in the change", Unit: "of the objective, ms x req/s"}},
		}, blocks(d.Attribution.Report())...)})
	} else {
		page.Sections = append(page.Sections, section{ID: "why", Title: "Why", Blocks: []block{
			{Line: "This page compares what the two files say. Which input moved it takes the inputs of both: --old-inputs and --new-inputs."},
		}})
	}
	page.Sections = append(page.Sections, section{ID: "about", Title: "About this page", Blocks: []block{
		{Line: "Signatures were not checked for this page; irbctl verify does that. The page carries its numbers as JSON (element \"data\"), the same as irbctl diff --format json. Charts are drawn by Apache ECharts 6.1.0 (Apache License 2.0)."},
	}})
	return page.write(w, map[string]any{"diff": struct {
		Verdict string `json:"verdict"`
		*explain.Diff
	}{verdict, d}})
}
