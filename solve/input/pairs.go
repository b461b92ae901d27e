package input

import (
	"slices"

	"github.com/irb-project/irb/solve/model"
)

// notSaid marks a pair that no line of a long form has spoken of.
const notSaid = -1

// readPairs reads the long form, a line per pair, in any order of lines and
// columns. Pairs that no line speaks of are not reachable.
func readPairs(r *report, headerLine int, columns []string, in *records) *latency {
	from, to, rtt := slices.Index(columns, "from"), slices.Index(columns, "to"), slices.Index(columns, "rtt_ms")
	p := pairs{from: newNameIndex(), to: newNameIndex()}
	for {
		line, cells := in.next()
		if cells == nil {
			break
		}
		if len(cells) != len(columns) {
			badWidth(r, line, len(cells), len(columns))
			r.partial = true
			continue
		}
		if !p.set(r, line, trim(cells[from]), trim(cells[to]), cells[rtt]) {
			return nil
		}
	}
	if len(p.from.names) == 0 {
		if r.ok() {
			r.problemf(0, "has no rows, want one per pair")
		}
		return nil
	}
	p.from.check(r, "from")
	p.to.check(r, "to")
	return p.matrix(headerLine)
}

// pairs is a matrix that grows in both directions.
type pairs struct {
	from, to *nameIndex
	rows     [][]float32 // by from, then to; as long as was needed so far
}

// set records one pair; it returns false if the matrix becomes too large.
func (p *pairs) set(r *report, line int, from, to, cell []byte) bool {
	i, j := p.from.index(from, line), p.to.index(to, line)
	if len(p.from.names) > maxCells/len(p.to.names) {
		r.problemf(line, "is the line where %d names in from times %d in to exceed %d cells", len(p.from.names), len(p.to.names), maxCells)
		return false
	}
	if i == len(p.rows) {
		p.rows = append(p.rows, make([]float32, 0, len(p.to.names)))
	}
	row := p.rows[i]
	for len(row) <= j {
		row = append(row, notSaid)
	}
	p.rows[i] = row
	ms, want := parseRTT(cell)
	switch {
	case want != "":
		badRTT(r, line, string(from), string(to), cell, want, false)
	case row[j] != notSaid:
		r.problemf(line, "round trip from %s to %s is there twice", quote(string(from)), quote(string(to)))
	}
	row[j] = ms
	return true
}

// matrix returns the pairs as a matrix and gives up the rows as it goes.
func (p *pairs) matrix(headerLine int) *latency {
	m := &latency{headerLine: headerLine, rowLines: p.from.lines}
	m.Latency = model.Latency{From: p.from.names, To: p.to.names}
	m.RTTMs = make([]float32, 0, len(m.From)*len(m.To))
	for i, row := range p.rows {
		for _, ms := range row {
			if ms == notSaid {
				ms = notReachable
			}
			m.RTTMs = append(m.RTTMs, ms)
		}
		for range len(m.To) - len(row) {
			m.RTTMs = append(m.RTTMs, notReachable)
		}
		p.rows[i] = nil
	}
	return m
}

// nameIndex numbers names in order of their first appearance.
type nameIndex struct {
	numbers map[string]int
	names   []string
	lines   []int // where each was first named
	guess   int
}

func newNameIndex() *nameIndex { return &nameIndex{numbers: make(map[string]int)} }

// index returns the number of a name. Files are nearly always ordered, so the
// name of the last call or the one after it is tried before the map.
func (x *nameIndex) index(name []byte, line int) int {
	for range 2 {
		if x.guess < len(x.names) && x.names[x.guess] == string(name) {
			return x.guess
		}
		if x.guess++; x.guess >= len(x.names) {
			x.guess = 0
		}
	}
	n, ok := x.numbers[string(name)]
	if !ok {
		n = len(x.names)
		x.numbers[string(name)] = n
		x.names = append(x.names, string(name))
		x.lines = append(x.lines, line)
	}
	x.guess = n
	return n
}

// check reports bad names, at the line where each is first named.
func (x *nameIndex) check(r *report, column string) {
	for i, name := range x.names {
		if !validName(name) {
			r.problemf(x.lines[i], "%s is %s, want a name: %s", column, quote(name), wantName)
		}
	}
}
