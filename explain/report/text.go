package report

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// WriteText prints a report: columns aligned, text to the left and numbers to
// the right, a blank line around what does not belong together.
func (r *Report) WriteText(w io.Writer) error { return r.write(w, style{}) }

// WriteColour is WriteText for a terminal that shows headings in bold, titles of
// columns underlined, and asides faint.
func (r *Report) WriteColour(w io.Writer) error {
	return r.write(w, style{heading: "\x1b[1m", title: "\x1b[4m", note: "\x1b[2m", end: "\x1b[0m"})
}

// style holds the control sequences before what is shown in a way of its own,
// and the one that ends each (ECMA-48, SGR).
type style struct{ heading, title, note, end string }

// show puts text between a control sequence and its end.
func (s style) show(begin, text string) string {
	if begin == "" || text == "" {
		return text
	}
	return begin + text + s.end
}

func (r *Report) write(w io.Writer, s style) error {
	var b bytes.Buffer
	inner := "" // indent of what belongs to a heading
	for i, part := range r.Parts {
		if i > 0 && apart(r.Parts[i-1], part) {
			b.WriteByte('\n')
		}
		switch p := part.(type) {
		case Heading:
			b.WriteString(s.show(s.heading, string(p)) + "\n")
			inner = "  "
		case Line:
			b.WriteString(string(p) + "\n")
			inner = ""
		case Note:
			b.WriteString(s.show(s.note, string(p)) + "\n")
		case Item:
			b.WriteString("  " + string(p) + "\n")
		case *Table:
			p.text(&b, inner, s)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// apart says whether a blank line parts two neighbours. A heading belongs to
// what follows, a note and an item to what stands above.
func apart(before, after Part) bool {
	switch after.(type) {
	case Heading:
		return true
	case Note, Item:
		return false
	}
	switch before.(type) {
	case Heading:
		return false
	case Line:
		_, table := after.(*Table)
		return table
	}
	return true
}

func (t *Table) text(b *bytes.Buffer, indent string, s style) {
	width := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		width[i] = utf8.RuneCountInString(c.Title)
	}
	for _, row := range t.Rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell.Text))
		}
	}
	line := func(begin string, text func(i int) string) {
		var row strings.Builder
		row.WriteString(indent)
		for i, c := range t.Columns {
			cell := text(i)
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			cell = s.show(begin, cell)
			if i > 0 {
				row.WriteString("  ")
			}
			if c.Kind == Number {
				row.WriteString(pad + cell)
			} else {
				row.WriteString(cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(row.String(), " ") + "\n")
	}
	if slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Title != "" }) {
		line(s.title, func(i int) string { return t.Columns[i].Title })
	}
	for _, row := range t.Rows {
		line("", func(i int) string { return row[i].Text })
	}
}
