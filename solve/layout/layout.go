// Package layout says which keys belong to which engine: it shares the hash
// space out in whole keys, and lays them in ranges so that from one snapshot to
// the next no more keys move than the change of weights asks for.
//
// The keys of a source are the 2^32 hash values. Its layout cuts them into
// ranges, each of one engine, neighbours of different engines; the measure of
// an engine's ranges is exactly its quota. From a layout to the next,
//
//	moved = sum over engines (quota before - quota now)+
//
// the total variation distance of the two: no fewer can move. The price is
// fragments, at most one more range per engine and snapshot. Beyond three
// quarters of MaxRanges small ranges are joined to their neighbours, which
// moves some further keys, at most CompactionKeys per snapshot. That bound is
// strict; a layout is longer than MaxRanges for a while if it takes more.
// (400 engines that all change by 5 % at every snapshot stay below.)
package layout

import (
	"fmt"

	"github.com/irb-project/irb/agent/snapshot"
)

// CompactionKeys is what joining small ranges may move per snapshot, 0.1 % of
// all keys.
const CompactionKeys = Space / 1000

// MaxRanges is the number of ranges to which a layout over so many engines is
// kept.
func MaxRanges(engines int) int { return 4*engines + 64 }

// Range is one range of keys: from From up to the From of the next one, the
// last up to Space.
type Range struct {
	From   uint32
	Engine string
}

// Change is what a new layout does to the keys.
type Change struct {
	Moved     uint64 // keys whose engine is another than before
	Compacted uint64 // of these, how many moved only to join ranges
}

// Of returns the layout of a source of a snapshot.
func Of(s *snapshot.Source) []Range {
	ranges := make([]Range, min(len(s.LayoutFrom), len(s.LayoutTo)))
	for i := range ranges {
		ranges[i] = Range{From: s.LayoutFrom[i], Engine: s.LayoutTo[i]}
	}
	return ranges
}

// Next returns a layout in which each engine has exactly its quota, made from
// the previous one, nil if there was none. Engines are in order of name;
// quotas sum to Space. What is not named of the previous engines gives up all.
//
// An engine that loses keys gives up its smallest ranges first; what it has to
// give beyond whole ranges is cut from their ends, onto a neighbour that gains
// where there is one. The same arguments give the same layout.
func Next(prev []Range, engines []string, quotas []int64) ([]Range, Change, error) {
	if err := checkQuotas(engines, quotas); err != nil {
		return nil, Change{}, err
	}
	if len(prev) == 0 {
		return contiguous(engines, quotas), Change{}, nil
	}
	if err := checkRanges(prev); err != nil {
		return nil, Change{}, err
	}
	m := newMoving(prev, engines, quotas)
	m.freeWhole()
	m.freeParts()
	m.fill()
	m.compact()
	next := m.result()
	moved := Moved(prev, next)
	return next, Change{Moved: moved, Compacted: moved - m.distance}, nil
}

// contiguous lays one range per engine, in order.
func contiguous(engines []string, quotas []int64) []Range {
	var ranges []Range
	at := int64(0)
	for i, q := range quotas {
		if q > 0 {
			ranges = append(ranges, Range{From: uint32(at), Engine: engines[i]})
			at += q
		}
	}
	return ranges
}

// Moved returns the number of keys whose engine differs between two layouts.
func Moved(a, b []Range) uint64 {
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	var moved, at uint64
	for i, j := 0, 0; at < Space; {
		endA, endB := rangeEnd(a, i), rangeEnd(b, j)
		end := min(endA, endB)
		if a[i].Engine != b[j].Engine {
			moved += end - at
		}
		if endA == end {
			i++
		}
		if endB == end {
			j++
		}
		at = end
	}
	return moved
}

func rangeEnd(r []Range, i int) uint64 {
	if i+1 < len(r) {
		return uint64(r[i+1].From)
	}
	return Space
}

func checkQuotas(engines []string, quotas []int64) error {
	if len(engines) != len(quotas) {
		return fmt.Errorf("layout: %d engines have %d quotas", len(engines), len(quotas))
	}
	left := int64(Space)
	for i, q := range quotas {
		if i > 0 && engines[i] <= engines[i-1] {
			return fmt.Errorf("layout: engine %q after %q, want each name once, ascending", engines[i], engines[i-1])
		}
		if q < 0 || q > left {
			return fmt.Errorf("layout: the quota of %q is %d with %d keys left of 2^32", engines[i], q, left)
		}
		left -= q
	}
	if left != 0 {
		return fmt.Errorf("layout: quotas sum to %d, want %d", Space-left, int64(Space))
	}
	return nil
}

func checkRanges(ranges []Range) error {
	for i, r := range ranges {
		switch {
		case i == 0 && r.From != 0:
			return fmt.Errorf("layout: the first range of the previous layout starts at %d, want 0", r.From)
		case i > 0 && r.From <= ranges[i-1].From:
			return fmt.Errorf("layout: range %d of the previous layout starts at %d after %d, want ascending", i, r.From, ranges[i-1].From)
		case r.Engine == "":
			return fmt.Errorf("layout: range %d of the previous layout has no engine", i)
		}
	}
	return nil
}
