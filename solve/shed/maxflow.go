package shed

import "math"

// flowNet is a directed graph with capacities, for maximum flows by Dinic's
// method (Dinic 1970): layers by breadth-first search, blocking flows by
// depth-first search along them. Arcs come in pairs; arc i^1 is the reverse of
// arc i.
type flowNet struct {
	first []int32 // per node: its first arc, -1: none
	next  []int32 // per arc: the next arc of the same node
	to    []int32
	room  []float64 // residual capacity
	level []int32
	at    []int32
	queue []int32
	eps   float64 // residual capacities at or below this count as none
}

func newFlowNet(nodes int) *flowNet {
	n := &flowNet{first: make([]int32, nodes), level: make([]int32, nodes), at: make([]int32, nodes)}
	for i := range n.first {
		n.first[i] = -1
	}
	return n
}

// addArc adds an arc and returns its number.
func (n *flowNet) addArc(from, to int32, capacity float64) int32 {
	arc := int32(len(n.to))
	n.to = append(n.to, to, from)
	n.room = append(n.room, capacity, 0)
	n.next = append(n.next, n.first[from], n.first[to])
	n.first[from], n.first[to] = arc, arc+1
	return arc
}

// maximise adds flow from node s to node t until no more fits, and returns how
// much it added.
func (n *flowNet) maximise(s, t int32) (total float64) {
	for n.layer(s, t) {
		copy(n.at, n.first)
		for {
			pushed := n.push(s, t, math.Inf(1))
			if pushed <= n.eps {
				break
			}
			total += pushed
		}
	}
	return total
}

// layer numbers the nodes by their distance from s and says whether t is
// among them. Afterwards level >= 0 is the s side of a minimum cut if not.
func (n *flowNet) layer(s, t int32) bool {
	for i := range n.level {
		n.level[i] = -1
	}
	n.level[s] = 0
	n.queue = append(n.queue[:0], s)
	for i := 0; i < len(n.queue); i++ {
		v := n.queue[i]
		for a := n.first[v]; a >= 0; a = n.next[a] {
			if w := n.to[a]; n.room[a] > n.eps && n.level[w] < 0 {
				n.level[w] = n.level[v] + 1
				n.queue = append(n.queue, w)
			}
		}
	}
	return n.level[t] >= 0
}

func (n *flowNet) push(v, t int32, most float64) float64 {
	if v == t {
		return most
	}
	for ; n.at[v] >= 0; n.at[v] = n.next[n.at[v]] {
		a := n.at[v]
		w := n.to[a]
		if n.room[a] <= n.eps || n.level[w] != n.level[v]+1 {
			continue
		}
		if pushed := n.push(w, t, min(most, n.room[a])); pushed > n.eps {
			n.room[a] -= pushed
			n.room[a^1] += pushed
			return pushed
		}
	}
	return 0
}
