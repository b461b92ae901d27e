package input

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
)

// records reads a CSV file record by record: by line, which is a record of its
// own as long as no quoted cell spans lines, or through encoding/csv.
type records struct {
	report *report
	rest   remainder   // by line
	strict *csv.Reader // nil: by line
	cells  [][]byte
}

func newRecords(r *report, text []byte, strict bool) *records {
	in := &records{report: r, rest: remainder{text, 1}}
	if strict {
		in.strict = newCSV(text)
	}
	return in
}

func newCSV(text []byte) *csv.Reader {
	in := csv.NewReader(bytes.NewReader(text))
	in.FieldsPerRecord = -1
	in.ReuseRecord = true
	in.Comment = '#'
	return in
}

// next returns the line and the cells of the next record that is CSV, nil cells
// at the end; others it reports. The next call overwrites the cells.
func (in *records) next() (line int, cells [][]byte) {
	if in.strict != nil {
		return in.nextStrict()
	}
	for len(in.rest.text) > 0 {
		line := in.rest.line
		whole := in.rest.next()
		record := withoutEnd(whole)
		if !isRecord(record) {
			continue
		}
		if bytes.IndexByte(record, '"') < 0 {
			in.cells = splitCells(record, in.cells[:0])
			return line, in.cells
		}
		if cells := quotedCells(in.report, line, whole); cells != nil {
			return line, cells
		}
	}
	return 0, nil
}

func (in *records) nextStrict() (line int, cells [][]byte) {
	for {
		fields, err := in.strict.Read()
		if errors.Is(err, io.EOF) {
			return 0, nil
		}
		if err != nil {
			csvProblem(in.report, err, 0)
			continue
		}
		line, _ := in.strict.FieldPos(0)
		in.cells = toCells(fields, in.cells[:0])
		return line, in.cells
	}
}

// remainder is the text of a file from some line on.
type remainder struct {
	text []byte
	line int // of its first byte
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

// isRecord says whether a line without its end is neither empty nor a comment.
// No name begins with #.
func isRecord(line []byte) bool { return len(line) > 0 && line[0] != '#' }

// spansLines says whether a quoted cell may span lines: some line has an odd
// number of quotes.
func spansLines(text []byte) bool {
	for {
		quote := bytes.IndexByte(text, '"')
		if quote < 0 {
			return false
		}
		rest := remainder{text: text[quote:]}
		if bytes.Count(rest.next(), []byte{'"'})%2 != 0 {
			return true
		}
		text = rest.text
	}
}

// splitCells splits a line without quotes.
func splitCells(record []byte, cells [][]byte) [][]byte {
	for {
		cell, rest, more := bytes.Cut(record, comma)
		cells = append(cells, cell)
		if !more {
			return cells
		}
		record = rest
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

func toCells(fields []string, cells [][]byte) [][]byte {
	for _, field := range fields {
		cells = append(cells, []byte(field))
	}
	return cells
}

var comma = []byte{','}

// csvProblem reports an error of the CSV library at the first line of the
// record, plus offset.
func csvProblem(r *report, err error, offset int) {
	r.partial = true
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		r.problemf(parse.StartLine+offset, "is not CSV: %s", parse.Err)
		return
	}
	r.problemf(0, "is not CSV: %s", err)
}

// badWidth reports a row that is not as long as the header.
func badWidth(r *report, line, got, want int) {
	r.problemf(line, "row has %s, want %d as in the header", plural(got, "cell"), want)
}
