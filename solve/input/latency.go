package input

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
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
	next := plainRecords(r, text)
	if strict {
		next = strictRecords(r, text)
	}
	line, cells, rest := next()
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
		return readPairs(r, line, columns, next)
	case len(names) == 1:
		r.add(line, separatorHint(names[0]), "header has one cell, %s, want a column per engine or region", quote(names[0]))
		return nil
	case strict:
		return readMatrixStrict(r, line, names, next)
	}
	return readMatrix(r, line, names, rest)
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

// nextRecord returns the cells of the next record that is CSV, its line, and
// the text after it; nil cells at the end. The cells are overwritten by the
// next call.
type nextRecord func() (line int, cells [][]byte, rest remainder)

// remainder is the text of a file from some line on.
type remainder struct {
	text []byte
	line int // of its first byte
}

// spansLines says whether a quoted cell may span lines: some line has an odd
// number of quotes. Without, every line is a record of its own.
func spansLines(text []byte) bool {
	for {
		quote := bytes.IndexByte(text, '"')
		if quote < 0 {
			return false
		}
		text = text[quote:]
		end := bytes.IndexByte(text, '\n') + 1
		if end == 0 {
			end = len(text)
		}
		if bytes.Count(text[:end], []byte{'"'})%2 != 0 {
			return true
		}
		text = text[end:]
	}
}

// plainRecords takes each line for a record.
func plainRecords(r *report, text []byte) nextRecord {
	rest := remainder{text, 1}
	var cells [][]byte
	return func() (int, [][]byte, remainder) {
		for len(rest.text) > 0 {
			line := rest.line
			whole := rest.next()
			record := withoutEnd(whole)
			if len(record) == 0 {
				continue
			}
			if bytes.IndexByte(record, '"') < 0 {
				cells = splitCells(record, cells[:0])
				return line, cells, rest
			}
			if quoted := quotedCells(r, line, whole); quoted != nil {
				return line, quoted, rest
			}
		}
		return rest.line, nil, rest
	}
}

// next cuts off the next line and returns it with its end.
func (t *remainder) next() []byte {
	end := bytes.IndexByte(t.text, '\n') + 1
	if end == 0 {
		end = len(t.text)
	}
	line := t.text[:end]
	t.text = t.text[end:]
	t.line++
	return line
}

// withoutEnd returns a line without LF, CRLF, or the CR of the last line.
func withoutEnd(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte{'\n'})
	return bytes.TrimSuffix(line, []byte{'\r'})
}

func splitCells(record []byte, cells [][]byte) [][]byte {
	for {
		comma := bytes.IndexByte(record, ',')
		if comma < 0 {
			return append(cells, record)
		}
		cells = append(cells, record[:comma])
		record = record[comma+1:]
	}
}

// quotedCells splits one whole line by RFC 4180; nil if that fails, and
// reported.
func quotedCells(r *report, line int, whole []byte) [][]byte {
	fields, err := newCSV(whole).Read()
	if err != nil {
		csvProblem(r, err, line-1)
		return nil
	}
	return toCells(fields, nil)
}

func newCSV(text []byte) *csv.Reader {
	in := csv.NewReader(bytes.NewReader(text))
	in.FieldsPerRecord = -1
	in.ReuseRecord = true
	return in
}

func toCells(fields []string, cells [][]byte) [][]byte {
	for _, field := range fields {
		cells = append(cells, []byte(field))
	}
	return cells
}

// strictRecords splits a file by RFC 4180.
func strictRecords(r *report, text []byte) nextRecord {
	in := newCSV(text)
	var cells [][]byte
	return func() (int, [][]byte, remainder) {
		for {
			fields, err := in.Read()
			if errors.Is(err, io.EOF) {
				return 0, nil, remainder{}
			}
			if err != nil {
				csvProblem(r, err, 0)
				continue
			}
			line, _ := in.FieldPos(0)
			cells = toCells(fields, cells[:0])
			return line, cells, remainder{}
		}
	}
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
