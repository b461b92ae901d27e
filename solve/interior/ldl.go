package interior

import "slices"

// normal is the matrix M = A diag(theta) A' of one sparse A (columns are
// variables), and its factorization M = P' L D L' P.
//
// The factorization is up-looking over the elimination tree (Davis, Algorithm
// 849: A Concise Sparse Cholesky Factorization Package, ACM TOMS 31, 2005).
type normal struct {
	n         int
	perm      []int32 // perm[i] is the row of A at place i
	place     []int32 // inverse of perm
	colStart  []int   // upper triangle of the permuted M by column, diagonal last
	rowIndex  []int32
	value     []float64
	diagonal  []int   // position of each diagonal entry
	positions []int32 // of each product of two entries of a column of A, in order

	lStart []int
	lIndex []int32
	lValue []float64
	d      []float64
	// Row k of L has its nonzeros in columns rowColumn[rowStart[k]:rowStart[k+1]],
	// in topological order, at those positions of lValue.
	rowStart  []int
	rowColumn []int32
	rowAt     []int
	work      []float64
}

// newNormal analyses A with rows rows; column j has the rows
// index[start[j]:start[j+1]].
func newNormal(rows int, start []int, index []int32) *normal {
	m := &normal{n: rows}
	adjacency := make([][]int32, rows)
	for j := range len(start) - 1 {
		column := index[start[j]:start[j+1]]
		for _, a := range column {
			for _, b := range column {
				if a != b {
					adjacency[a] = append(adjacency[a], b)
				}
			}
		}
	}
	for i := range adjacency {
		slices.Sort(adjacency[i])
		adjacency[i] = slices.Compact(adjacency[i])
	}
	m.perm = minimumDegree(adjacency)
	m.place = make([]int32, rows)
	for i, row := range m.perm {
		m.place[row] = int32(i)
	}
	m.layOut(adjacency)
	m.locate(start, index)
	m.analyse()
	return m
}

// layOut gives every entry of the upper triangle of M its position.
func (m *normal) layOut(adjacency [][]int32) {
	m.colStart = make([]int, m.n+1)
	m.diagonal = make([]int, m.n)
	for c := range m.n {
		first := len(m.rowIndex)
		for _, b := range adjacency[m.perm[c]] {
			if p := m.place[b]; int(p) < c {
				m.rowIndex = append(m.rowIndex, p)
			}
		}
		slices.Sort(m.rowIndex[first:])
		m.diagonal[c] = len(m.rowIndex)
		m.rowIndex = append(m.rowIndex, int32(c))
		m.colStart[c+1] = len(m.rowIndex)
	}
	m.value = make([]float64, len(m.rowIndex))
}

// locate finds the position of each product of entries of a column of A.
func (m *normal) locate(start []int, index []int32) {
	for j := range len(start) - 1 {
		column := index[start[j]:start[j+1]]
		for i, a := range column {
			for _, b := range column[:i+1] {
				lo, hi := m.place[a], m.place[b]
				if lo > hi {
					lo, hi = hi, lo
				}
				first := m.colStart[hi]
				at, _ := slices.BinarySearch(m.rowIndex[first:m.colStart[hi+1]], lo)
				m.positions = append(m.positions, int32(first+at))
			}
		}
	}
}

// analyse finds the nonzeros of L by the elimination tree: those of row k are
// what the columns of row k of M reach in it.
func (m *normal) analyse() {
	parent, flag, path := make([]int32, m.n), make([]int32, m.n), make([]int32, m.n)
	counts := make([]int, m.n)
	m.rowStart = make([]int, m.n+1)
	for k := range m.n {
		parent[k], flag[k] = -1, int32(k)
		top := m.n
		for _, i := range m.rowIndex[m.colStart[k]:m.diagonal[k]] {
			length := 0
			for ; flag[i] != int32(k); i = parent[i] {
				if parent[i] < 0 {
					parent[i] = int32(k)
				}
				counts[i]++
				path[length], flag[i] = i, int32(k)
				length++
			}
			for length > 0 {
				top, length = top-1, length-1
				path[top] = path[length]
			}
		}
		m.rowColumn = append(m.rowColumn, path[top:]...)
		m.rowStart[k+1] = len(m.rowColumn)
	}
	m.lStart = make([]int, m.n+1)
	for k, c := range counts {
		m.lStart[k+1] = m.lStart[k] + c
	}
	m.lIndex = make([]int32, m.lStart[m.n])
	m.lValue = make([]float64, m.lStart[m.n])
	m.rowAt = make([]int, m.lStart[m.n])
	next := slices.Clone(m.lStart[:m.n])
	for k := range m.n {
		for q := m.rowStart[k]; q < m.rowStart[k+1]; q++ {
			i := m.rowColumn[q]
			m.rowAt[q], m.lIndex[next[i]] = next[i], int32(k)
			next[i]++
		}
	}
	m.d = make([]float64, m.n)
	m.work = make([]float64, m.n)
}

// assemble computes M from theta and the entries of A.
func (m *normal) assemble(start []int, entries, theta []float64) {
	clear(m.value)
	p := 0
	for j, th := range theta {
		column := entries[start[j]:start[j+1]]
		for i, a := range column {
			ta := th * a
			for _, b := range column[:i+1] {
				m.value[m.positions[p]] += ta * b
				p++
			}
		}
	}
}

// factor computes L and D. A pivot at or below tiny times the diagonal it came
// from is rounding of a dependent row; it is set to that, which the solver's
// refinement makes good.
func (m *normal) factor(tiny float64) {
	for k := range m.n {
		for p := m.colStart[k]; p < m.diagonal[k]; p++ {
			m.work[m.rowIndex[p]] += m.value[p]
		}
		d := m.value[m.diagonal[k]]
		floor := tiny * d
		for q := m.rowStart[k]; q < m.rowStart[k+1]; q++ {
			i, at := m.rowColumn[q], m.rowAt[q]
			yi := m.work[i]
			m.work[i] = 0
			values := m.lValue[m.lStart[i]:at]
			index := m.lIndex[m.lStart[i]:at][:len(values)]
			for p, r := range index {
				m.work[r] -= values[p] * yi
			}
			l := yi / m.d[i]
			d -= l * yi
			m.lValue[at] = l
		}
		if !(d > floor) {
			d = floor
			if !(d > 0) {
				d = 1e128
			}
		}
		m.d[k] = d
	}
}

// solve solves M x = b in place.
func (m *normal) solve(b []float64) {
	x := m.work
	for i, row := range m.perm {
		x[i] = b[row]
	}
	for j := range m.n {
		xj := x[j]
		for p := m.lStart[j]; p < m.lStart[j+1]; p++ {
			x[m.lIndex[p]] -= m.lValue[p] * xj
		}
	}
	for j := range m.n {
		x[j] /= m.d[j]
	}
	for j := m.n - 1; j >= 0; j-- {
		sum := x[j]
		for p := m.lStart[j]; p < m.lStart[j+1]; p++ {
			sum -= m.lValue[p] * x[m.lIndex[p]]
		}
		x[j] = sum
	}
	for i, row := range m.perm {
		b[row] = x[i]
		x[i] = 0
	}
}
