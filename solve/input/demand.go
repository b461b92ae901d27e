package input

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/irb-project/irb/solve/model"
)

// demandRow is a row of demand before its defaults are known.
type demandRow struct {
	model.Demand
	at                   *lines
	hasPrompt, hasOutput bool
}

// source names a source in maps.
type source struct{ cluster, class string }

// readDemand reads demand.toml, or demand.csv if the name ends in .csv. It
// returns nil if no row could be read.
func readDemand(f *file) []demandRow {
	var rows []demandRow
	if strings.HasSuffix(f.path, ".csv") {
		rows = readDemandCSV(f)
	} else {
		rows = readDemandTOML(f)
	}
	if len(rows) == 0 && f.ok() {
		f.problemf(0, "has no demand")
	}
	return rows
}

func readDemandTOML(f *file) []demandRow {
	root := parseTOML(f)
	if root == nil {
		return nil
	}
	tables := root.subs("demand")
	root.done()
	rows := make([]demandRow, 0, len(tables))
	for _, t := range tables {
		row := demandRow{at: t.at, hasPrompt: t.has("prompt_tokens"), hasOutput: t.has("output_tokens")}
		row.Cluster = t.name("cluster")
		row.Class = t.name("class")
		row.RPS = t.number("rps", notNegative, 0)
		row.PromptTokens = t.number("prompt_tokens", positive, 0)
		row.OutputTokens = t.number("output_tokens", notNegative, 0)
		row.CachedFraction = t.number("cached_fraction", belowOne, 0)
		row.RequestsPerKey = t.number("requests_per_key", positive, 1)
		row.Origin = fmt.Sprintf("%s:%d", f.file, t.at.line)
		t.need("cluster", "rps")
		t.done()
		rows = append(rows, row)
	}
	return rows
}

// demandColumns are the columns of demand.csv; the first two are needed.
var demandColumns = []string{"cluster", "rps", "class", "prompt_tokens", "output_tokens", "cached_fraction", "requests_per_key"}

func readDemandCSV(f *file) []demandRow {
	in := newCSV(f.text)
	var rows []demandRow
	var columns []string
	for {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows
		}
		if err != nil {
			csvProblem(&f.report, err, 0)
			continue
		}
		line, _ := in.FieldPos(0)
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " \t")
		}
		switch {
		case columns == nil:
			if columns = header(&f.report, line, cells, demandColumns, 2); columns == nil {
				return nil
			}
		case len(cells) != len(columns):
			badWidth(&f.report, line, len(cells), len(columns))
			f.partial = true
		default:
			r := csvRow{&f.report, line, columns, cells}
			rows = append(rows, r.demand())
		}
	}
}

// header checks the first row of a CSV file against the columns it may have,
// of which the first need must be there. It returns a copy, nil if it is bad.
func header(r *report, line int, cells, known []string, need int) []string {
	columns := make([]string, len(cells))
	seen := make(map[string]bool, len(cells))
	good := true
	for i, cell := range cells {
		columns[i] = strings.Clone(cell)
		if seen[cell] {
			r.problemf(line, "column %s is there twice", quote(cell))
			good = false
		}
		seen[cell] = true
		if !slices.Contains(known, cell) {
			r.add(line, didYouMean(cell, known), "unknown column %s", quote(cell))
			good = false
		}
	}
	for _, name := range known[:need] {
		if !seen[name] {
			r.problemf(line, "there is no column %q", name)
			good = false
		}
	}
	if !good {
		return nil
	}
	return columns
}

// csvRow reads one row of a CSV file cell by cell.
type csvRow struct {
	report  *report
	line    int
	columns []string
	cells   []string
}

func (r csvRow) demand() demandRow {
	row := demandRow{at: &lines{line: r.line}}
	row.Cluster = r.name("cluster")
	row.Class = r.name("class")
	row.RPS, _ = r.number("rps", notNegative, 0)
	row.PromptTokens, row.hasPrompt = r.number("prompt_tokens", positive, 0)
	row.OutputTokens, row.hasOutput = r.number("output_tokens", notNegative, 0)
	row.CachedFraction, _ = r.number("cached_fraction", belowOne, 0)
	row.RequestsPerKey, _ = r.number("requests_per_key", positive, 1)
	row.Origin = fmt.Sprintf("%s:%d", r.report.file, r.line)
	if r.cell("cluster") == "" {
		r.report.problemf(r.line, "cluster is blank")
	}
	if r.cell("rps") == "" {
		r.report.problemf(r.line, "rps is blank")
	}
	return row
}

// cell returns the cell of a column, "" if it is blank or not there.
func (r csvRow) cell(column string) string {
	for i, name := range r.columns {
		if name == column {
			return r.cells[i]
		}
	}
	return ""
}

// number returns the number in a cell and whether the cell is not blank, def
// if it is.
func (r csvRow) number(column string, b bounds, def float64) (v float64, given bool) {
	cell := r.cell(column)
	if cell == "" {
		return def, false
	}
	v, ok := parseNumber(cell)
	want := b.want
	if ok {
		want = b.check(v)
	}
	if want != "" {
		shown := cell
		if !ok {
			shown = quote(cell)
		}
		r.report.problemf(r.line, "%s is %s, want %s", column, shown, want)
		return def, true
	}
	return v + 0, true // + 0 turns -0 into 0
}

func (r csvRow) name(column string) string {
	cell := strings.Clone(r.cell(column)) // the row's memory is the whole line
	if cell != "" && !validName(cell) {
		r.report.problemf(r.line, "%s is %s, want a name: %s", column, quote(cell), wantName)
	}
	return cell
}
