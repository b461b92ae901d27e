package layout

import (
	"cmp"
	"slices"
)

// free is the owner of keys that have been given up and not yet given.
const free = -1

// span is a range of keys [from, to) and its owner, an index of engines.
type span struct {
	from, to uint64
	owner    int
}

func (s span) size() uint64 { return s.to - s.from }

// moving is a layout on its way from the previous to the next.
type moving struct {
	engines  []string
	spans    []span   // cover all keys, in order
	loss     []uint64 // per engine, still to give up
	gain     []uint64 // per engine, still to get
	used     int      // engines with a quota above 0
	distance uint64   // total variation distance between before and now
}

func newMoving(prev []Range, engines []string, quotas []int64) *moving {
	m := &moving{engines: engines, loss: make([]uint64, len(engines)), gain: make([]uint64, len(engines))}
	index := make(map[string]int, len(engines))
	for i, name := range engines {
		index[name] = i
	}
	had := make([]uint64, len(engines))
	for i, r := range prev {
		s := span{from: uint64(r.From), to: rangeEnd(prev, i), owner: free}
		if e, ok := index[r.Engine]; ok {
			s.owner = e
			had[e] += s.size()
		}
		m.spans = append(m.spans, s)
	}
	m.join()
	for e, q := range quotas {
		if q > 0 {
			m.used++
		}
		if now := uint64(q); now < had[e] {
			m.loss[e] = had[e] - now
		} else {
			m.gain[e] = now - had[e]
			m.distance += m.gain[e]
		}
	}
	return m
}

// join makes one span of neighbours with the same owner.
func (m *moving) join() {
	joined := m.spans[:0]
	for _, s := range m.spans {
		if n := len(joined); n > 0 && joined[n-1].owner == s.owner {
			joined[n-1].to = s.to
		} else {
			joined = append(joined, s)
		}
	}
	m.spans = joined
}

// bySize returns the indices of the spans for which keep holds, smallest
// first, of equal ones the first.
func (m *moving) bySize(keep func(span) bool) []int {
	var order []int
	for i, s := range m.spans {
		if keep(s) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(m.spans[a].size(), m.spans[b].size()) })
	return order
}

// freeWhole frees the smallest spans of each engine that loses, as long as
// they fit whole into its loss.
func (m *moving) freeWhole() {
	losing := func(s span) bool { return s.owner != free && m.loss[s.owner] > 0 }
	for _, i := range m.bySize(losing) {
		s := &m.spans[i]
		if e := s.owner; s.size() <= m.loss[e] {
			m.loss[e] -= s.size()
			s.owner = free
		}
	}
}

// freeParts takes what is still to give up, less than the smallest span that
// its engine has left, from the ends of spans: first onto neighbours that gain,
// so that only a border moves; then beside keys already free; what is left
// after that makes a span of its own at the end of the smallest.
func (m *moving) freeParts() {
	losing := m.bySize(func(s span) bool { return s.owner != free && m.loss[s.owner] > 0 })
	for _, i := range losing {
		e := m.spans[i].owner
		for _, j := range []int{i + 1, i - 1} {
			if o := m.ownerOf(j); o != free {
				part := min(m.loss[e], m.gain[o])
				m.giveEnd(i, j, part)
				m.gain[o] -= part
			}
		}
	}
	for _, i := range losing {
		for _, j := range []int{i + 1, i - 1} {
			if j >= 0 && j < len(m.spans) && m.spans[j].owner == free {
				m.giveEnd(i, j, m.loss[m.spans[i].owner])
			}
		}
	}
	var spans []span
	for _, i := range losing {
		s := &m.spans[i]
		if part := m.loss[s.owner]; part > 0 {
			m.loss[s.owner] = 0
			s.to -= part
			spans = append(spans, span{s.to, s.to + part, free})
		}
	}
	m.spans = append(m.spans, spans...)
	slices.SortFunc(m.spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	m.join()
}

// giveEnd moves the border between span i, which loses, and its neighbour j by
// part keys.
func (m *moving) giveEnd(i, j int, part uint64) {
	m.loss[m.spans[i].owner] -= part
	if j > i {
		m.spans[i].to -= part
		m.spans[j].from -= part
	} else {
		m.spans[i].from += part
		m.spans[j].to += part
	}
}

// fill gives the free spans to the engines that gain: first whole to a
// neighbour, smallest first; then a part to a neighbour that wants no more than
// that; the rest, the largest to the largest.
func (m *moving) fill() {
	isFree := func(s span) bool { return s.owner == free }
	for _, i := range m.bySize(isFree) {
		size := m.spans[i].size()
		best := free
		for _, j := range []int{i - 1, i + 1} {
			if o := m.ownerOf(j); o != free && m.gain[o] >= size && (best == free || m.gain[o] > m.gain[best]) {
				best = o
			}
		}
		if best != free {
			m.gain[best] -= size
			m.spans[i].owner = best
		}
	}
	m.join()
	m.fillEnds()
	m.fillRest()
	m.join()
}

// ownerOf returns the owner of span i, free beyond the ends.
func (m *moving) ownerOf(i int) int {
	if i < 0 || i >= len(m.spans) {
		return free
	}
	return m.spans[i].owner
}

// fillEnds moves the borders of free spans inward, for neighbours whose gain
// is smaller than the span.
func (m *moving) fillEnds() {
	for i := range m.spans {
		s := &m.spans[i]
		if s.owner != free {
			continue
		}
		if o := m.ownerOf(i - 1); o != free {
			part := min(m.gain[o], s.size())
			s.from += part
			m.spans[i-1].to += part
			m.gain[o] -= part
		}
		if o := m.ownerOf(i + 1); o != free {
			part := min(m.gain[o], s.size())
			s.to -= part
			m.spans[i+1].from -= part
			m.gain[o] -= part
		}
	}
	m.spans = slices.DeleteFunc(m.spans, func(s span) bool { return s.size() == 0 })
}

// fillRest cuts the free spans, largest first, into the gains, largest first:
// fewer pieces than there are spans and gains together.
func (m *moving) fillRest() {
	var gaining []int
	for e, g := range m.gain {
		if g > 0 {
			gaining = append(gaining, e)
		}
	}
	slices.SortStableFunc(gaining, func(a, b int) int { return cmp.Compare(m.gain[b], m.gain[a]) })
	pieces := make(map[int][]span)
	order := m.bySize(func(s span) bool { return s.owner == free })
	slices.Reverse(order)
	for _, i := range order {
		s := m.spans[i]
		for s.size() > 0 {
			e := gaining[0]
			part := min(m.gain[e], s.size())
			pieces[i] = append(pieces[i], span{s.from, s.from + part, e})
			s.from += part
			if m.gain[e] -= part; m.gain[e] == 0 {
				gaining = gaining[1:]
			}
		}
	}
	var spans []span
	for i, s := range m.spans {
		if p, ok := pieces[i]; ok {
			spans = append(spans, p...)
		} else {
			spans = append(spans, s)
		}
	}
	m.spans = spans
}

func (m *moving) result() []Range {
	ranges := make([]Range, len(m.spans))
	for i, s := range m.spans {
		ranges[i] = Range{From: uint32(s.from), Engine: m.engines[s.owner]}
	}
	return ranges
}
