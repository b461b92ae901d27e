package input

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const (
	// maxKept bounds the problems that are kept per file: a latency file may
	// have one in each of millions of cells.
	maxKept = 1000
	// maxShown bounds the problems that Problems.Error prints.
	maxShown = 50
)

// Problem is one thing that is wrong with an input file, or worth a warning.
type Problem struct {
	File    string // base name, as in "demand.toml"
	Line    int    // from 1; 0: the file as a whole
	Message string // what, got, wanted
	Hint    string // advice, "" for none: `did you mean "region"?`
}

// String returns "demand.toml:14: rps is -3, want a finite number >= 0".
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
}

// Problems is the error of Read: everything that is wrong with the input, in
// order of file, then line.
type Problems struct {
	List    []Problem
	Omitted int // further problems that were counted only
}

// Error lists the first problems, one to a line, each followed by its hint
// unless that is the last hint again.
func (p *Problems) Error() string {
	var b strings.Builder
	shown := min(len(p.List), maxShown)
	lastHint := ""
	for i, problem := range p.List[:shown] {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(problem.String())
		if problem.Hint != "" && problem.Hint != lastHint {
			b.WriteString("\nhint: " + problem.Hint)
			lastHint = problem.Hint
		}
	}
	if more := len(p.List) - shown + p.Omitted; more > 0 {
		fmt.Fprintf(&b, "\nand %d more", more)
	}
	return b.String()
}

// report collects the problems and warnings of one file.
type report struct {
	file     string
	problems []Problem
	omitted  int
	warnings []Problem
	partial  bool // some row could not be read, so its names are not known
}

// problemf adds a problem; see hintf for one with advice.
func (r *report) problemf(line int, format string, args ...any) {
	r.add(line, nil, format, args...)
}

// add adds a problem with the hint that hint returns, nil for none. Beyond
// maxKept it only counts, and does not look for a hint.
func (r *report) add(line int, hint func() string, format string, args ...any) {
	if len(r.problems) >= maxKept {
		r.omitted++
		return
	}
	p := Problem{File: r.file, Line: line, Message: fmt.Sprintf(format, args...)}
	if hint != nil {
		p.Hint = hint()
	}
	r.problems = append(r.problems, p)
}

func (r *report) warnf(line int, format string, args ...any) {
	r.warnings = append(r.warnings, Problem{File: r.file, Line: line, Message: fmt.Sprintf(format, args...)})
}

// ok says whether nothing was wrong so far.
func (r *report) ok() bool { return len(r.problems) == 0 }

// count returns the number of problems.
func (r *report) count() int { return len(r.problems) + r.omitted }

// merge adds the problems of a later part of the same file.
func (r *report) merge(part *report) {
	room := min(maxKept-len(r.problems), len(part.problems))
	r.problems = append(r.problems, part.problems[:room]...)
	r.omitted += part.count() - room
	r.partial = r.partial || part.partial
}

// join merges reports into one error, nil if there is no problem, and the
// warnings as text.
func join(reports []*report) ([]string, error) {
	var all Problems
	var warnings []Problem
	for _, r := range reports {
		all.List = append(all.List, r.problems...)
		all.Omitted += r.omitted
		warnings = append(warnings, r.warnings...)
	}
	sortProblems(warnings)
	text := make([]string, len(warnings))
	for i, w := range warnings {
		text[i] = w.String()
	}
	if len(all.List) == 0 {
		return text, nil
	}
	sortProblems(all.List)
	return text, &all
}

// sortProblems sorts by file and line and keeps the order of finding otherwise.
func sortProblems(list []Problem) {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
}

// tally gathers names for one warning, which stands at the first line.
type tally struct {
	names []string
	line  int
}

func (t *tally) add(name string, line int) {
	if len(t.names) == 0 || line < t.line {
		t.line = line
	}
	t.names = append(t.names, name)
}

// warn writes "2 rows have no demand (a, b)" and what follows from it.
func (t *tally) warn(r *report, one, many, rest string) {
	switch n := len(t.names); n {
	case 0:
	case 1:
		r.warnf(t.line, "1 %s (%s)%s", one, list(t.names), rest)
	default:
		r.warnf(t.line, "%d %s (%s)%s", n, many, list(t.names), rest)
	}
}
