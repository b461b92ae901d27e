package input

import (
	"slices"
	"strings"

	"github.com/irb-project/irb/solve/model"
)

// maxCells bounds the matrix of a latency file at 1 GiB. The long form can
// name more rows and columns than it has lines for.
const maxCells = 1 << 28

// latency is a latency matrix and where its rows were said.
type latency struct {
	model.Latency
	headerLine int
	rowLines   []int // where a row is first named; 0 if it could not be read
}

var longColumns = []string{"from", "to", "rtt_ms"}

// readLatency reads a latency file of either form, nil if it has no usable
// header. Most files have no quotes and are read by row, straight from their
// bytes; RFC 4180 in full is left to encoding/csv, for the rows with quotes,
// and for the whole file if a quoted cell spans lines.
func readLatency(f *file) *latency {
	return readLatencyText(&f.report, f.text, spansLines(f.text))
}

// readLatencyText reads a latency file, all through encoding/csv if strict.
func readLatencyText(r *report, text []byte, strict bool) *latency {
	in := newRecords(r, text, strict)
	line, cells := in.next()
	if cells == nil {
		if r.ok() {
			r.problemf(0, "has no header")
		}
		return nil
	}
	names := make([]string, len(cells))
	for i, cell := range cells {
		names[i] = string(trim(cell))
	}
	switch {
	case isLongForm(names):
		columns := header(r, line, names, longColumns, len(longColumns))
		if columns == nil {
			return nil
		}
		return readPairs(r, line, columns, in)
	case len(names) == 1:
		r.add(line, separatorHint(names[0]), "header has one cell, %s, want a column per engine or region", quote(names[0]))
		return nil
	case strict:
		return readMatrixStrict(r, line, names, in)
	}
	return readMatrix(r, line, names, in.rest)
}

// separatorHint says what to do about a header that other separators divide.
func separatorHint(header string) func() string {
	return func() string {
		if strings.ContainsAny(header, ";\t") {
			return "separate cells by commas"
		}
		return ""
	}
}

// isLongForm says whether a header is meant for the long form: of its three
// columns one may be misspelt.
func isLongForm(names []string) bool {
	found := 0
	for _, name := range longColumns {
		if slices.Contains(names, name) {
			found++
		}
	}
	return found >= 2
}

// trim returns a cell without blanks around it.
func trim(cell []byte) []byte {
	for len(cell) > 0 && (cell[0] == ' ' || cell[0] == '\t') {
		cell = cell[1:]
	}
	for n := len(cell) - 1; n >= 0 && (cell[n] == ' ' || cell[n] == '\t'); n-- {
		cell = cell[:n]
	}
	return cell
}

// checkNames reports names that are bad or there twice. Name i is on the line
// that line returns, 0 if its row could not be read.
func checkNames(r *report, kind string, names []string, line func(int) int) {
	first := make(map[string]int, len(names))
	for i, name := range names {
		if line(i) == 0 {
			continue
		}
		if !validName(name) {
			r.problemf(line(i), "%s is %s, want a name: %s", kind, quote(name), wantName)
		}
		if j, twice := first[name]; twice {
			if line(i) == line(j) {
				r.problemf(line(i), "%s %s is there twice", kind, quote(name))
			} else {
				r.problemf(line(i), "%s %s is there twice, first on line %d", kind, quote(name), line(j))
			}
			continue
		}
		first[name] = i
	}
}
