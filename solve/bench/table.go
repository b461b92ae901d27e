package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// table is a titled table of text, columns aligned.
type table struct {
	title string
	rows  [][]string
}

func newTable(title string, columns ...string) *table {
	return &table{title: title, rows: [][]string{columns}}
}

func (t *table) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = fmt.Sprint(c)
	}
	t.rows = append(t.rows, texts)
}

func (t *table) write(w io.Writer) error {
	fmt.Fprintf(w, "%s\n\n", t.title)
	aligned := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range t.rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(aligned, "\t")
			}
			fmt.Fprint(aligned, cell)
		}
		fmt.Fprintln(aligned)
	}
	if err := aligned.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// duration writes seconds with three digits in a fitting unit.
func duration(seconds float64) string {
	if seconds < 1 {
		return fmt.Sprintf("%.3g ms", 1000*seconds)
	}
	return fmt.Sprintf("%.3g s", seconds)
}

func memory(bytes float64) string {
	if bytes < 0 {
		return "?"
	}
	return fmt.Sprintf("%.0f MB", bytes/1e6)
}

func ratio(x float64) string { return fmt.Sprintf("%.3gx", x) }
