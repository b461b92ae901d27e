package explain

import (
	"slices"

	"github.com/irb-project/irb/explain/report"
)

// sourceColumn and engineColumn begin the tables of sources and engines.
func sourceColumn(title string) []report.Column {
	return []report.Column{{Title: title, Kind: report.Source}}
}
func engineColumn(title string) []report.Column {
	return []report.Column{{Title: title, Kind: report.Engine}}
}

func newTable(columns ...[]report.Column) *report.Table {
	return report.NewTable(slices.Concat(columns...)...)
}

// rateUnlessZero leaves a rate out where there is none.
func rateUnlessZero(v float64) report.Cell {
	if v > 0 {
		return report.Rate(v)
	}
	return report.Word("")
}

// change is a difference of two numbers with its sign.
func change(v float64, text func(float64) string) report.Cell {
	return report.As(v, signed(v, text))
}

// signed prints a difference with its sign.
func signed(v float64, text func(float64) string) string {
	if s := text(v); v > 0 && s != "0" {
		return "+" + s
	}
	return text(v)
}
