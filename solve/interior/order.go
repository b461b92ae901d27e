package interior

import "math/bits"

// minimumDegree orders the nodes of an undirected graph so that symmetric
// elimination in that order fills in little: always the node of least degree
// next, the lowest number among equals (George and Liu, The Evolution of the
// Minimum Degree Ordering Algorithm, SIAM Review 31, 1989). adjacency lists
// may repeat nodes.
//
// The elimination graph is kept as bit sets; with a few thousand rows that is
// both simpler and faster than quotient graphs.
func minimumDegree(adjacency [][]int32) []int32 {
	n := len(adjacency)
	words := (n + 63) / 64
	bitset := make([]uint64, n*words)
	degree := make([]int, n)
	for i, list := range adjacency {
		row := bitset[i*words : (i+1)*words]
		for _, j := range list {
			if int(j) != i {
				row[j/64] |= 1 << (j % 64)
			}
		}
		degree[i] = count(row)
	}
	order := make([]int32, 0, n)
	done := make([]bool, n)
	for len(order) < n {
		best := -1
		for i := range n {
			if !done[i] && (best < 0 || degree[i] < degree[best]) {
				best = i
			}
		}
		if degree[best] == n-len(order)-1 { // what is left is a clique
			for i := range n {
				if !done[i] {
					order = append(order, int32(i))
				}
			}
			return order
		}
		done[best] = true
		order = append(order, int32(best))
		eliminate(bitset, words, degree, best)
	}
	return order
}

// eliminate joins the neighbours of a node to a clique without it.
func eliminate(bitset []uint64, words int, degree []int, node int) {
	row := bitset[node*words : (node+1)*words]
	for w, word := range row {
		for ; word != 0; word &= word - 1 {
			i := w*64 + bits.TrailingZeros64(word)
			other := bitset[i*words : (i+1)*words]
			for x := range other {
				other[x] |= row[x]
			}
			other[i/64] &^= 1 << (i % 64)
			other[node/64] &^= 1 << (node % 64)
			degree[i] = count(other)
		}
	}
}

func count(row []uint64) (n int) {
	for _, word := range row {
		n += bits.OnesCount64(word)
	}
	return n
}
