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

	parent  []int32 // elimination tree
	lStart  []int
	lIndex  []int32
	lValue  []float64
	d       []float64
	filled  []int // entries of each column of L so far
	flag    []int32
	pattern []int32
	work    []float64
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

// analyse builds the elimination tree and the room of L.
func (m *normal) analyse() {
	m.parent = make([]int32, m.n)
	m.flag = make([]int32, m.n)
	counts := make([]int, m.n)
	for k := range m.n {
		m.parent[k] = -1
		m.flag[k] = int32(k)
		for _, i := range m.rowIndex[m.colStart[k]:m.diagonal[k]] {
			for ; m.flag[i] != int32(k); i = m.parent[i] {
				if m.parent[i] < 0 {
					m.parent[i] = int32(k)
				}
				counts[i]++
				m.flag[i] = int32(k)
			}
		}
	}
	m.lStart = make([]int, m.n+1)
	for k, c := range counts {
		m.lStart[k+1] = m.lStart[k] + c
	}
	m.lIndex = make([]int32, m.lStart[m.n])
	m.lValue = make([]float64, m.lStart[m.n])
	m.d = make([]float64, m.n)
	m.filled = make([]int, m.n)
	m.pattern = make([]int32, m.n)
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
		top := m.reach(k)
		d := m.value[m.diagonal[k]]
		floor := tiny * d
		for _, i := range m.pattern[top:m.n] {
			yi := m.work[i]
			m.work[i] = 0
			end := m.lStart[i] + m.filled[i]
			index, values := m.lIndex[m.lStart[i]:end], m.lValue[m.lStart[i]:end]
			for p, r := range index {
				m.work[r] -= values[p] * yi
			}
			l := yi / m.d[i]
			d -= l * yi
			m.lIndex[end] = int32(k)
			m.lValue[end] = l
			m.filled[i]++
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

// reach scatters column k of M and lists row k of L's nonzeros in topological
// order as pattern[top:].
func (m *normal) reach(k int) (top int) {
	top = m.n
	m.flag[k] = int32(k)
	m.filled[k] = 0
	for p := m.colStart[k]; p < m.diagonal[k]; p++ {
		i := m.rowIndex[p]
		m.work[i] += m.value[p]
		length := 0
		for ; m.flag[i] != int32(k); i = m.parent[i] {
			m.pattern[length] = i
			length++
			m.flag[i] = int32(k)
		}
		for length > 0 {
			top--
			length--
			m.pattern[top] = m.pattern[length]
		}
	}
	return top
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
