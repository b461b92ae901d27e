package pick

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/irb-project/irb/agent/snapshot"
)

// layout is the division of the hash space [0, 2^32) among the engines of one
// source, with an index over the top bits of a position:
//
//	bucket   0        1        2        3
//	ranges   |a       |a  |b   |b       |c      |
//	index    0        0        1        2        3 (end)
//
// A position in bucket b lies in one of the ranges index[b] ... index[b+1].
type layout struct {
	shift  uint     // position >> shift is the bucket
	index  []uint32 // per bucket the range that holds its first position, and one more
	ranges []span   // in order of position, the first from 0
	// slots are the engines that a walk may use: the owners of ranges in order
	// of first range, then the fallbacks in their order.
	slots  []slot
	owners int // how many of slots own ranges
}

// span is a range of positions; it ends where the next one begins.
type span struct {
	from uint32
	slot uint32
}

type slot struct {
	engine int
	quota  uint64 // measure of its ranges; 0 for a fallback
}

// bucketsPerRange keeps the scan inside a bucket short: on average less than
// one boundary lies in four buckets.
const bucketsPerRange = 4

// longScan is the number of ranges in one bucket from which halving is quicker
// than scanning.
const longScan = 8

func newLayout(src *snapshot.Source, byName map[string]int) (layout, error) {
	var l layout
	if n := len(src.LayoutFrom); n == 0 || n != len(src.LayoutTo) {
		return l, fmt.Errorf("layout has %d starts and %d engines, want as many of both, at least 1", n, len(src.LayoutTo))
	}
	var errs []error
	if src.LayoutFrom[0] != 0 {
		errs = append(errs, fmt.Errorf("layout starts at %d, want 0", src.LayoutFrom[0]))
	}
	slotOf := map[string]uint32{}
	addSlot := func(what, name string) {
		engine, ok := byName[name]
		if !ok {
			errs = append(errs, fmt.Errorf("%s: engine %q is not in the snapshot", what, name))
		}
		slotOf[name] = uint32(len(l.slots))
		l.slots = append(l.slots, slot{engine: engine})
	}
	l.ranges = make([]span, len(src.LayoutFrom))
	for i, from := range src.LayoutFrom {
		end := uint64(snapshot.QuotaSum)
		if i+1 < len(src.LayoutFrom) {
			end = uint64(src.LayoutFrom[i+1])
		}
		if end <= uint64(from) {
			errs = append(errs, fmt.Errorf("layout range %d starts at %d and ends at %d, want an end above", i, from, end))
			continue
		}
		name := src.LayoutTo[i]
		if _, ok := slotOf[name]; !ok {
			addSlot("layout", name)
		}
		l.ranges[i] = span{from: from, slot: slotOf[name]}
		l.slots[slotOf[name]].quota += end - uint64(from)
	}
	l.owners = len(l.slots)
	for _, f := range src.Fallbacks {
		// An owner is tried before any fallback anyhow.
		if _, ok := slotOf[f.Engine]; !ok {
			addSlot("fallback", f.Engine)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return layout{}, err
	}
	l.buildIndex()
	return l, nil
}

func (l *layout) buildIndex() {
	bucketBits := min(32, bits.Len(uint(bucketsPerRange*len(l.ranges)-1)))
	l.shift = uint(32 - bucketBits)
	l.index = make([]uint32, 1<<bucketBits+1)
	r := 0
	for b := range l.index {
		start := uint64(b) << l.shift
		for r+1 < len(l.ranges) && uint64(l.ranges[r+1].from) <= start {
			r++
		}
		l.index[b] = uint32(r)
	}
}

// find returns the number of the range that holds a position.
func (l *layout) find(position uint32) int {
	b := position >> l.shift
	lo, hi := l.index[b], l.index[b+1]
	for hi-lo > longScan {
		mid := lo + (hi-lo)/2
		if l.ranges[mid].from <= position {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	for lo < hi && l.ranges[lo+1].from <= position {
		lo++
	}
	return int(lo)
}

// at returns the slot that owns a position.
func (l *layout) at(position uint32) int { return int(l.ranges[l.find(position)].slot) }
