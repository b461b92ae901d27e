package certify

import "math"

// knapsack fills need with the cheapest of a stream of segments, each a length
// in req/s at a cost per unit. It keeps a heap, dearest on top, of the segments
// that could still be used: as long as what is below the top covers need, the
// top is dropped. With n segments, k of them used, that is O(n log k).
type knapsack struct {
	need   float64
	length float64 // of the heap
	heap   []segment
	bar    float64 // cost from which on a segment is of no use
	next   float64 // least cost of a segment that is not used
}

type segment struct{ cost, length float64 }

func (k *knapsack) reset(need float64) {
	k.need, k.length = need, 0
	k.bar, k.next = math.Inf(1), math.Inf(1)
	k.heap = k.heap[:0]
}

func (k *knapsack) add(cost, length float64) {
	if length > 0 {
		if cost < k.bar {
			k.insert(segment{cost, length})
		} else if cost < k.next {
			k.next = cost
		}
	}
}

func (k *knapsack) insert(s segment) {
	k.push(s)
	for len(k.heap) > 1 && k.length-k.heap[0].length >= k.need {
		k.next = min(k.next, k.heap[0].cost)
		k.pop()
	}
	if k.length >= k.need {
		k.bar = k.heap[0].cost
	}
}

func (k *knapsack) push(s segment) {
	k.length += s.length
	k.heap = append(k.heap, s)
	i := len(k.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if k.heap[up].cost >= k.heap[i].cost {
			break
		}
		k.heap[up], k.heap[i] = k.heap[i], k.heap[up]
		i = up
	}
}

func (k *knapsack) pop() {
	k.length -= k.heap[0].length
	last := len(k.heap) - 1
	k.heap[0] = k.heap[last]
	k.heap = k.heap[:last]
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			return
		}
		if child+1 < last && k.heap[child+1].cost > k.heap[child].cost {
			child++
		}
		if k.heap[i].cost >= k.heap[child].cost {
			return
		}
		k.heap[i], k.heap[child] = k.heap[child], k.heap[i]
		i = child
	}
}

// fill returns what need costs at least, and the interval of its marginal cost:
// what one less would save, what one more would cost. Segments full or empty
// but for rounding count as full or empty. If all segments together are
// shorter than need, what is missing costs as much as the dearest.
func (k *knapsack) fill() (cost sum, lo, hi float64) {
	if len(k.heap) == 0 {
		return cost, math.Inf(-1), k.next
	}
	var below sum
	second := math.Inf(-1)
	for _, s := range k.heap[1:] {
		cost.add(s.cost * s.length)
		below.add(s.length)
		second = max(second, s.cost)
	}
	top := k.heap[0]
	part := k.need - below.value()
	cost.add(top.cost * part)
	rounding := 1e-9 * k.need
	lo, hi = top.cost, top.cost
	if part <= rounding {
		lo = second
	}
	if part >= top.length-rounding {
		hi = k.next
	}
	return cost, lo, hi
}
