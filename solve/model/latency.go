package model

// LatencyIndex finds the rows and columns of a Latency by name.
type LatencyIndex struct {
	rows, columns map[string]int
}

// Index returns the index of the matrix. It takes a pass over the names, not
// over the cells.
func (l Latency) Index() LatencyIndex {
	x := LatencyIndex{rows: make(map[string]int, len(l.From)), columns: make(map[string]int, len(l.To))}
	for i, name := range l.From {
		x.rows[name] = i
	}
	for j, name := range l.To {
		x.columns[name] = j
	}
	return x
}

// Row returns the row of a cluster.
func (x LatencyIndex) Row(cluster string) (row int, ok bool) {
	row, ok = x.rows[cluster]
	return row, ok
}

// Column returns the column of an engine: the one of its name, else the one of
// its region. A column of its name counts even where its cells are blank.
func (x LatencyIndex) Column(e Engine) (column int, ok bool) {
	if column, ok = x.columns[e.Name]; ok {
		return column, true
	}
	column, ok = x.columns[e.Region]
	return column, ok
}

// At returns the round trip in ms of a row and column, NaN where not reachable.
func (l Latency) At(row, column int) float64 {
	return float64(l.RTTMs[row*len(l.To)+column])
}
