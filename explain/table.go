package explain

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table prints rows in aligned columns: text to the left, numbers to the
// right. The first row is the head.
type table struct {
	indent string
	left   []bool // per column: aligned to the left
	rows   [][]string
}

// newTable starts a table. A head that ends in "<" marks a column of text.
func newTable(indent string, head ...string) *table {
	t := &table{indent: indent}
	for i, h := range head {
		t.left = append(t.left, strings.HasSuffix(h, "<"))
		head[i] = strings.TrimSuffix(h, "<")
	}
	t.rows = append(t.rows, head)
	return t
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) {
	width := make([]int, len(t.left))
	for _, row := range t.rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range t.rows {
		var b strings.Builder
		b.WriteString(t.indent)
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				b.WriteString("  ")
			}
			if t.left[i] {
				b.WriteString(cell + pad)
			} else {
				b.WriteString(pad + cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// markdown prints the table for a page that renders it.
func (t *table) markdown(w io.Writer) {
	for i, row := range t.rows {
		cells := make([]string, len(row))
		for j, cell := range row {
			cells[j] = strings.ReplaceAll(cell, "|", `\|`)
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
		if i > 0 {
			continue
		}
		for j := range cells {
			if cells[j] = "---:"; t.left[j] {
				cells[j] = "---"
			}
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
	}
}
