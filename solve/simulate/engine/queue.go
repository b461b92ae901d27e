package engine

// entry is a job and the clock reading at which its phase ends.
type entry struct {
	target float64
	job    int32
}

// heap is a binary heap, the smallest target first; of equal ones the smaller
// job, so that the order does not depend on the past.
type heap struct{ list []entry }

func less(a, b entry) bool {
	return a.target < b.target || a.target == b.target && a.job < b.job
}

func (h *heap) push(x entry) {
	h.list = append(h.list, x)
	i := len(h.list) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !less(x, h.list[parent]) {
			break
		}
		h.list[i] = h.list[parent]
		i = parent
	}
	h.list[i] = x
}

func (h *heap) pop() entry {
	top := h.list[0]
	last := len(h.list) - 1
	x := h.list[last]
	h.list = h.list[:last]
	if last == 0 {
		return top
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && less(h.list[child+1], h.list[child]) {
			child++
		}
		if !less(h.list[child], x) {
			break
		}
		h.list[i] = h.list[child]
		i = child
	}
	h.list[i] = x
	return top
}

// ring is a queue.
type ring struct {
	list []int32
	head int
}

func (r *ring) len() int     { return len(r.list) - r.head }
func (r *ring) peek() int32  { return r.list[r.head] }
func (r *ring) push(x int32) { r.list = append(r.list, x) }

func (r *ring) pop() int32 {
	x := r.list[r.head]
	r.head++
	if r.head*2 >= len(r.list) { // at most as much garbage as content
		r.list = r.list[:copy(r.list, r.list[r.head:])]
		r.head = 0
	}
	return x
}
