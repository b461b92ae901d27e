package network

import (
	"math"
	"sync"

	"github.com/irb-project/irb/solve/chunk"
)

// settler lowers prices that only the bypass holds up. Where demand fills all
// that it can reach exactly (always where something was shed), one more request
// cannot be served, so any price from what one less would save upwards is a
// valid dual. Pivots end with the price of the bypass; the least is the one
// that means something.
//
// Nodes that hang on one bypass arc fall together. An arc that could take more
// from node i to node j limits the fall of j against i by its reduced cost; so
// the falls are the shortest paths from the nodes that do not fall.
type settler struct {
	*builder
	mu    sync.Mutex
	tree  []int32 // of each node: the bypass it hangs on, or -1
	fall  []float64
	links map[[2]int32]float64 // falls of [0] less that of [1] at most this
}

// settle is done last: it leaves prices that are no longer those of the tree.
func (b *builder) settle() {
	s := &settler{builder: b, tree: make([]int32, len(b.nodes)), links: make(map[[2]int32]float64)}
	root := b.graph.root()
	s.tree[root] = -1
	for v := b.thread[root]; v != root; v = b.thread[v] {
		x := &b.nodes[v]
		switch {
		case x.parent != root:
			s.tree[v] = s.tree[x.parent]
		case x.pred == b.bypass[v]:
			s.tree[v] = int32(len(s.fall))
			s.fall = append(s.fall, math.Inf(1))
		default:
			s.tree[v] = -1
		}
	}
	if len(s.fall) == 0 {
		return
	}
	s.limitByArcs()
	s.limitByPairs()
	for again := true; again; {
		again = false
		for link, most := range s.links {
			if f := s.fall[link[1]] + most; f < s.fall[link[0]] {
				s.fall[link[0]], again = f, true
			}
		}
	}
	s.follow()
	for v, t := range s.tree {
		if t >= 0 {
			b.graph.prices[v] -= s.fall[t]
		}
	}
}

// follow lets nodes that nothing limits (sources that are not served at all)
// fall only as far as those that lean on them.
func (s *settler) follow() {
	free := make([]bool, len(s.fall))
	for t := range s.fall {
		if free[t] = math.IsInf(s.fall[t], 1); free[t] {
			s.fall[t] = 0
		}
	}
	for again := true; again; {
		again = false
		for link, most := range s.links {
			if f := s.fall[link[0]] - most; free[link[1]] && f > s.fall[link[1]] {
				s.fall[link[1]], again = f, true
			}
		}
	}
}

// limit notes that node j may not fall against node i by more than slack.
func (s *settler) limit(i, j int32, slack float64) {
	from, to := s.tree[i], s.tree[j]
	if to < 0 || from == to {
		return
	}
	slack = max(0, slack)
	if from < 0 {
		s.fall[to] = min(s.fall[to], slack)
		return
	}
	link := [2]int32{to, from}
	if old, ok := s.links[link]; !ok || slack < old {
		s.links[link] = slack
	}
}

func (s *settler) limitByArcs() {
	for a := range s.arcs {
		x := &s.arcs[a]
		if s.bypass[x.tail] == int32(a) {
			continue // it carries nothing but rounding
		}
		drop := s.graph.prices[x.tail] - s.graph.prices[x.head]
		left, right := s.trueSides(int32(a))
		if s.canRise(int32(a)) {
			s.limit(x.tail, x.head, right-drop)
		}
		if s.canFall(int32(a)) {
			s.limit(x.head, x.tail, drop-left)
		}
	}
}

// limitByPairs does the same for pairs that are no arcs.
func (s *settler) limitByPairs() {
	prices := s.enginePrices()
	chunk.Each(s.Row, func(_, from, to int) {
		for src := int32(from); src < int32(to); src++ {
			for k := s.Row[src]; k < s.Row[src+1]; k++ {
				e := s.engine(s.Col[k])
				if s.tree[e] < 0 || s.isActive(k) {
					continue
				}
				tail := s.tail(src, k)
				if s.tree[tail] == s.tree[e] {
					continue
				}
				slack := s.CostMs[k]*s.perWork[src] + prices[s.Col[k]] - s.graph.prices[tail]
				s.mu.Lock()
				s.limit(tail, e, slack)
				s.mu.Unlock()
			}
		}
	})
}
