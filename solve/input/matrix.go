package input

import (
	"bytes"
	"runtime"
	"slices"
	"sync"

	"github.com/irb-project/irb/solve/model"
)

// readMatrix reads the rows of a matrix, in blocks of whole lines side by
// side. The matrix is allocated once: lines are counted before they are read.
// A report per block, joined in order, keeps the result independent of the
// number of processors.
func readMatrix(r *report, headerLine int, names []string, rest remainder) *latency {
	blocks := splitBlocks(rest, runtime.GOMAXPROCS(0))
	each(blocks, func(b *matrixBlock) { b.count() })
	rows, line := 0, rest.line
	for i := range blocks {
		blocks[i].row, blocks[i].line = rows, line
		rows += blocks[i].rows
		line += blocks[i].lines
	}
	m := newMatrix(r, headerLine, names[1:], rows)
	if m == nil {
		return nil
	}
	each(blocks, func(b *matrixBlock) {
		b.report.file = r.file
		b.read(m)
	})
	for i := range blocks {
		r.merge(&blocks[i].report)
	}
	m.checkRows(r)
	return m
}

// newMatrix returns a matrix with its columns; nil if it has no rows or is too
// large, and reported.
func newMatrix(r *report, headerLine int, to []string, rows int) *latency {
	switch {
	case rows == 0:
		r.problemf(0, "has no rows, want one per cluster")
		return nil
	case rows > maxCells/len(to):
		r.problemf(0, "has %d rows and %d columns, want at most %d cells", rows, len(to), maxCells)
		return nil
	}
	checkNames(r, "column", to, func(int) int { return headerLine })
	return &latency{
		Latency:    model.Latency{From: make([]string, rows), To: to, RTTMs: make([]float32, rows*len(to))},
		headerLine: headerLine,
		rowLines:   make([]int, rows),
	}
}

func (m *latency) checkRows(r *report) {
	checkNames(r, "row", m.From, func(i int) int { return m.rowLines[i] })
}

// matrixBlock is a run of lines of a matrix.
type matrixBlock struct {
	remainder
	row         int // of its first line that is a row
	rows, lines int
	report      report
}

// splitBlocks cuts a text into at most n blocks of whole lines.
func splitBlocks(rest remainder, n int) []matrixBlock {
	const smallBlock = 64 << 10 // below, starting a goroutine is not worth it
	size := max(len(rest.text)/n+1, smallBlock)
	var blocks []matrixBlock
	for text := rest.text; len(text) > 0; {
		end := len(text)
		if size < end {
			if n := bytes.IndexByte(text[size:], '\n'); n >= 0 {
				end = size + n + 1
			}
		}
		blocks = append(blocks, matrixBlock{remainder: remainder{text: text[:end]}})
		text = text[end:]
	}
	return blocks
}

// each calls fn for every block, side by side.
func each(blocks []matrixBlock, fn func(*matrixBlock)) {
	var wg sync.WaitGroup
	for i := range blocks {
		wg.Go(func() { fn(&blocks[i]) })
	}
	wg.Wait()
}

// count counts the lines of the block and those of them that are rows.
func (b *matrixBlock) count() {
	for rest := b.remainder; len(rest.text) > 0; b.lines++ {
		if isRecord(withoutEnd(rest.next())) {
			b.rows++
		}
	}
}

// read reads the rows of the block into their places in the matrix.
func (b *matrixBlock) read(m *latency) {
	row := b.row
	for rest := b.remainder; len(rest.text) > 0; {
		line := rest.line
		whole := rest.next()
		record := withoutEnd(whole)
		if !isRecord(record) {
			continue
		}
		if bytes.IndexByte(record, '"') < 0 {
			m.plainRow(&b.report, row, line, record)
		} else if cells := quotedCells(&b.report, line, whole); cells != nil {
			m.cellRow(&b.report, row, line, cells)
		}
		row++
	}
}

// plainRow reads row i from a line without quotes.
func (m *latency) plainRow(r *report, i, line int, record []byte) {
	name, _, _ := bytes.Cut(record, comma)
	m.From[i], m.rowLines[i] = string(trim(name)), line
	row := m.RTTMs[i*len(m.To) : (i+1)*len(m.To)]
	n := 0
	for rest := record[len(name):]; len(rest) > 0; n++ {
		rest = rest[1:] // the comma
		ms, length := simpleRTT(rest)
		if length < 0 {
			cell, _, _ := bytes.Cut(rest, comma)
			length = len(cell)
			ms = m.cell(r, i, n, line, cell)
		}
		if n < len(row) {
			row[n] = ms
		}
		rest = rest[length:]
	}
	m.checkWidth(r, line, n)
}

// cell reads cell n of row i in full generality.
func (m *latency) cell(r *report, i, n, line int, cell []byte) float32 {
	ms, want := parseRTT(cell)
	if want != "" && n < len(m.To) {
		badRTT(r, line, m.From[i], m.To[n], cell, want, len(m.To) <= 5)
	}
	return ms
}

// cellRow reads row i from cells.
func (m *latency) cellRow(r *report, i, line int, cells [][]byte) {
	m.From[i], m.rowLines[i] = string(trim(cells[0])), line
	for n, cell := range cells[1:] {
		ms := m.cell(r, i, n, line, cell)
		if n < len(m.To) {
			m.RTTMs[i*len(m.To)+n] = ms
		}
	}
	m.checkWidth(r, line, len(cells)-1)
}

// checkWidth reports a row that has not n = len(m.To) cells after its name.
func (m *latency) checkWidth(r *report, line, n int) {
	if n != len(m.To) {
		badWidth(r, line, n+1, len(m.To)+1)
	}
}

// readMatrixStrict reads the rows of a matrix from records.
func readMatrixStrict(r *report, headerLine int, names []string, in *records) *latency {
	var lines []int
	var rows [][][]byte
	failed := -r.count()
	for {
		line, cells := in.next()
		if cells == nil {
			break
		}
		lines = append(lines, line)
		rows = append(rows, slices.Clone(cells))
	}
	failed += r.count()
	m := newMatrix(r, headerLine, names[1:], len(rows)+failed)
	if m == nil {
		return nil
	}
	for i, cells := range rows {
		m.cellRow(r, i, lines[i], cells)
	}
	m.checkRows(r)
	return m
}
