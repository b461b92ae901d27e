package layout

// maxShifts is how many borders may move to make up for one range that is
// dissolved. Three engines away nearly every engine is reached.
const maxShifts = 3

// compact dissolves the smallest ranges while there are more than three
// quarters of MaxRanges and the keys that this moves are within
// CompactionKeys. Where no quota changed nothing moves at all.
func (m *moving) compact() {
	if m.distance == 0 {
		return
	}
	most := MaxRanges(m.used) * 3 / 4
	budget := uint64(CompactionKeys)
	hopeless := make(map[uint64]bool) // by first key
	for len(m.spans) > most {
		i := m.smallest(hopeless)
		if i < 0 || 2*m.spans[i].size() > budget {
			return
		}
		spent := m.dissolve(i, budget)
		if spent == 0 {
			hopeless[m.spans[i].from] = true
			continue
		}
		budget -= spent
		m.join()
	}
}

// smallest returns the smallest span that is not hopeless, or -1.
func (m *moving) smallest(hopeless map[uint64]bool) int {
	best := -1
	for i, s := range m.spans {
		if (best < 0 || s.size() < m.spans[best].size()) && !hopeless[s.from] {
			best = i
		}
	}
	return best
}

// dissolve gives span i, of z keys, to a neighbour, and moves z keys back to
// its engine A over a chain of borders: the neighbour's engine gives z keys to
// another one at a border of theirs, that one to the next, the last to A. All
// quotas stay, one range less is left. It returns the keys moved, 0 if there is
// no such chain within maxShifts and the budget.
func (m *moving) dissolve(i int, budget uint64) uint64 {
	s := m.spans[i]
	z := s.size()
	// via[e] is the border over which e gets keys, +1 if from the left of it
	// and -1 if from the right; breadth first from the neighbours.
	type shift struct{ border, direction int }
	via := make([]shift, len(m.engines))
	depth := make([]int, len(m.engines)) // +1; 0: not reached
	for _, n := range []int{i - 1, i + 1} {
		if o := m.ownerOf(n); o != free {
			depth[o] = 1
		}
	}
	length := 0
	for length < maxShifts && depth[s.owner] == 0 {
		length++
		for b := 0; b+1 < len(m.spans); b++ { // border b: between spans b and b+1
			if b == i || b+1 == i {
				continue
			}
			left, right := m.spans[b], m.spans[b+1]
			if depth[left.owner] == length && depth[right.owner] == 0 && left.size() > z {
				depth[right.owner], via[right.owner] = length+1, shift{b, 1}
			}
			if depth[right.owner] == length && depth[left.owner] == 0 && right.size() > z {
				depth[left.owner], via[left.owner] = length+1, shift{b, -1}
			}
		}
	}
	spent := z * uint64(length+1)
	if depth[s.owner] == 0 || spent > budget {
		return 0
	}
	e := s.owner
	for depth[e] > 1 {
		v := via[e]
		left, right := &m.spans[v.border], &m.spans[v.border+1]
		if v.direction > 0 {
			left.to -= z
			right.from -= z
			e = left.owner
		} else {
			left.to += z
			right.from += z
			e = right.owner
		}
	}
	m.spans[i].owner = e
	return spent
}
