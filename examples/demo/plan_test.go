package main

import (
	"testing"

	"github.com/irb-project/irb/agent/snapshot"
)

const quarter = snapshot.QuotaSum / 4

// layout returns a source whose keys belong to the engines named, a quarter
// each.
func layout(engines ...string) *snapshot.Source {
	s := &snapshot.Source{Cluster: "us-east"}
	quota := map[string]int64{}
	for i, e := range engines {
		s.LayoutFrom = append(s.LayoutFrom, uint32(i*quarter))
		s.LayoutTo = append(s.LayoutTo, e)
		quota[e] += quarter
	}
	for e, q := range quota {
		s.Weights = append(s.Weights, snapshot.Weight{Engine: e, Quota: q})
	}
	return s
}

func TestMoved(t *testing.T) {
	for _, test := range []struct {
		before, after *snapshot.Source
		least, keys   int64 // quarters
	}{
		{layout("a", "a", "b", "b"), layout("a", "a", "b", "b"), 0, 0},
		{layout("a", "a", "b", "b"), layout("a", "b", "b", "b"), 1, 1},
		{layout("a", "a", "b", "b"), layout("b", "b", "a", "a"), 0, 4},
		{layout("a", "a", "a", "b"), layout("c", "b", "a", "a"), 1, 3},
		{layout("a", "a", "a", "a"), layout("b", "c", "b", "c"), 4, 4},
	} {
		if got := quotaMoved(test.before, test.after); got != test.least*quarter {
			t.Errorf("%v to %v: least possible is %d quarters, want %d", test.before.LayoutTo, test.after.LayoutTo, got/quarter, test.least)
		}
		if got := keysMoved(test.before, test.after); got != test.keys*quarter {
			t.Errorf("%v to %v: %d quarters moved, want %d", test.before.LayoutTo, test.after.LayoutTo, got/quarter, test.keys)
		}
	}
	// Ranges of different lengths that start and end elsewhere.
	before := &snapshot.Source{LayoutFrom: []uint32{0, 100}, LayoutTo: []string{"a", "b"}}
	after := &snapshot.Source{LayoutFrom: []uint32{0, 40, 130}, LayoutTo: []string{"a", "b", "c"}}
	if got, want := keysMoved(before, after), int64(60+snapshot.QuotaSum-130); got != want {
		t.Errorf("%d keys moved, want %d", got, want)
	}
}
