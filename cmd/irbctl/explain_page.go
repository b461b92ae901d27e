package main

import (
	"bytes"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/explain/page"
)

// writePage writes the page about a snapshot and the answers about its fleet.
func (a *app) writePage(s *snapshot.Snapshot, answers []namedAnswer, f explainFlags, notes ...string) error {
	view, err := f.filter.Apply(s)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	x := page.Explanation{Snapshot: view, Notes: notes}
	for _, answer := range answers {
		x.Answers = append(x.Answers, page.Answer{Name: answer.name, Found: answer.answer})
	}
	var b bytes.Buffer
	if err := page.WriteExplanation(&b, x); err != nil {
		return err
	}
	return a.writeOutput(f.html, b.Bytes())
}

// pageFormat refuses --format beside --html, which would do nothing.
func pageFormat(flags *pflag.FlagSet) error {
	if flags.Changed("html") && flags.Changed("format") {
		return usageError("--html writes a page; --format is for text, markdown or json in its place")
	}
	return nil
}

// writeOutput writes a result, atomically where it is a file.
func (a *app) writeOutput(path string, data []byte) error {
	if path == "-" {
		_, err := a.stdout.Write(data)
		return err
	}
	if err := snapshot.WriteFile(path, data); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "wrote %s\n", path)
	return err
}
