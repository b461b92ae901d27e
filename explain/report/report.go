// Package report is what an explanation says, as headings, sentences and
// tables, apart from how it is shown: here as text for a terminal or as
// Markdown, in package page as HTML.
package report

import (
	"fmt"
	"strings"
)

// Report is a list of parts in the order in which they are read.
type Report struct{ Parts []Part }

// Part is a Heading, a Line, an Item or a *Table.
type Part interface{ part() }

// Heading opens a section.
type Heading string

// Line is a sentence that stands for itself.
type Line string

// Item is one of several sentences about what stands above them.
type Item string

// Note is an aside on how to read what stands above it.
type Note string

func (Heading) part() {}
func (Line) part()    {}
func (Item) part()    {}
func (Note) part()    {}
func (*Table) part()  {}

// Heading adds a heading.
func (r *Report) Heading(format string, args ...any) { r.add(Heading(fmt.Sprintf(format, args...))) }

// Line adds a sentence; of several lines each is one.
func (r *Report) Line(format string, args ...any) {
	for text := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		r.add(Line(text))
	}
}

// Item adds an item of a list.
func (r *Report) Item(format string, args ...any) { r.add(Item(fmt.Sprintf(format, args...))) }

// Note adds an aside.
func (r *Report) Note(format string, args ...any) { r.add(Note(fmt.Sprintf(format, args...))) }

// Rest says how many of what are not listed, if any.
func (r *Report) Rest(n int, what string) {
	if n > 0 {
		r.Note("... and %d %s", n, what)
	}
}

// Add adds a table.
func (r *Report) Add(t *Table) { r.add(t) }

func (r *Report) add(p Part) { r.Parts = append(r.Parts, p) }

// Append adds the parts of another report.
func (r *Report) Append(other *Report) { r.Parts = append(r.Parts, other.Parts...) }
