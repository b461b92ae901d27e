package bench

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/irb-project/irb/solve/input"
)

// maxRuns bounds the runs of a file: the largest collections have thousands.
const maxRuns = 50_000

// File is a result file in memory.
type File struct {
	Name string
	Data []byte
}

// Options say how to read files that leave something open.
type Options struct {
	// By names the CSV columns that tell configurations apart; nil: every
	// column that is no measurement and no mark of a single run.
	By []string
	// The lengths of requests where a file does not state them.
	PromptTokens float64
	OutputTokens float64
}

// Source is where runs came from.
type Source struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
	Format string `json:"format"`
	// By and Ignored are the columns of a CSV that make a configuration, and
	// those that are not used.
	By      []string `json:"by,omitempty"`
	Ignored []string `json:"ignored,omitempty"`
}

// Results are the runs of all files.
type Results struct {
	Sources []Source
	Runs    []Run  // also those with a Fault
	Notes   []Note // on files, not on single runs
}

// Read reads result files of any kind. The error is an *input.Problems of
// everything that makes a file useless; a useless row is a Run with a Fault.
func Read(files []File, o Options) (*Results, error) {
	results := &Results{}
	var problems input.Problems
	for _, f := range files {
		in := &reader{file: f.Name, options: o, source: Source{File: f.Name, SHA256: digest(f.Data)}}
		in.read(bytes.TrimPrefix(f.Data, []byte("\xef\xbb\xbf")))
		if len(in.problems) == 0 && len(in.runs) == 0 {
			in.problemf(0, "has no results")
		}
		results.Sources = append(results.Sources, in.source)
		results.Runs = append(results.Runs, in.runs...)
		results.Notes = append(results.Notes, in.notes...)
		problems.List = append(problems.List, in.problems...)
	}
	if len(problems.List) > 0 {
		return nil, &problems
	}
	return results, nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// reader reads one file.
type reader struct {
	file     string
	options  Options
	source   Source
	runs     []Run
	notes    []Note
	problems []input.Problem
}

func (in *reader) read(data []byte) {
	text := bytes.TrimLeft(data, " \t\r\n")
	switch {
	case len(text) == 0:
		in.problemf(0, "is empty")
	case text[0] == '{' || text[0] == '[':
		in.readJSON(data)
	default:
		in.source.Format = "CSV"
		in.readCSV(data)
	}
}

func (in *reader) problemf(line int, format string, args ...any) {
	r := Run{File: in.file, Line: line}
	in.problems = append(in.problems, input.Problem(r.remark(format, args...)))
}

// add takes a run. Faults are what was found wrong while reading it.
func (in *reader) add(r Run, faults ...string) {
	r.File = in.file
	if r.PromptTokens == 0 {
		r.PromptTokens = in.options.PromptTokens
	}
	if r.OutputTokens == 0 {
		r.OutputTokens = in.options.OutputTokens
	}
	r.Fault = strings.Join(append(faults, r.faults()...), "; ")
	if n := r.Throughput() * r.LatencyS(); r.Fault == "" && r.Concurrency > 0 && n < rampInFlight*r.Concurrency {
		r.Doubt = fmt.Sprintf("on average %.3g of %v requests were in flight: much of the run was ramp, more requests would measure better", n, r.Concurrency)
	}
	in.keep(r)
}

// unreadable keeps a run of which only its place is known.
func (in *reader) unreadable(line int, fault string) {
	in.keep(Run{File: in.file, Line: line, Fault: fault})
}

func (in *reader) keep(r Run) {
	switch {
	case len(in.runs) < maxRuns:
		in.runs = append(in.runs, r)
	case len(in.problems) == 0:
		in.problemf(r.Line, "has more than %d rows, want one for each level of load; is it a log of single requests?", maxRuns)
	}
}

// Select returns the runs that have all the labels. The error says which label
// none has, and what there is instead.
func Select(runs []Run, labels []Label) ([]Run, error) {
	for _, l := range labels {
		var kept []Run
		var values, keys []string
		for _, r := range runs {
			for _, has := range r.Labels {
				if !slices.Contains(keys, has.Key) {
					keys = append(keys, has.Key)
				}
				switch {
				case has.Key != l.Key:
				case has.Value == l.Value:
					kept = append(kept, r)
				case !slices.Contains(values, has.Value):
					values = append(values, has.Value)
				}
			}
		}
		if len(kept) == 0 && len(values) == 0 {
			return nil, fmt.Errorf("no run has a %q, want one of %s", l.Key, shortList(keys))
		}
		if len(kept) == 0 {
			return nil, fmt.Errorf("no run has %s = %q, want one of %s", l.Key, l.Value, shortList(values))
		}
		runs = kept
	}
	return runs, nil
}

// shortList joins the first names of a list.
func shortList(list []string) string {
	const most = 20
	slices.Sort(list)
	quoted := make([]string, 0, most)
	for _, s := range list[:min(most, len(list))] {
		quoted = append(quoted, strconv.Quote(s))
	}
	text := strings.Join(quoted, ", ")
	if more := len(list) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
