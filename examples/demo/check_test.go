package main

import (
	"io"
	"strings"
	"testing"

	"github.com/irb-project/irb/agent/snapshot"
)

// planOf returns a plan of us-east alone.
func planOf(source *snapshot.Source) *snapshot.Snapshot {
	for i := range source.Weights {
		source.Weights[i].Fraction = fraction(source.Weights[i].Quota)
	}
	return &snapshot.Snapshot{Sources: []snapshot.Source{*source}}
}

// talked returns conversations of us-east that were served by one engine first
// and by another one last.
func talked(n int, first, last string) (all []*conversation) {
	for range n {
		all = append(all, &conversation{cluster: "us-east", engines: []string{first, first, last}})
	}
	return all
}

func TestCompareMoves(t *testing.T) {
	half, quarterA := layout("a", "a", "b", "b"), layout("a", "b", "b", "b")
	for name, test := range map[string]struct {
		before, after *snapshot.Source
		conversations [][]*conversation
		want          string // part of the broken promise, "" for none
	}{
		"as planned": {half, quarterA, [][]*conversation{talked(100, "a", "b"), talked(100, "a", "a"), talked(200, "b", "b")}, ""},
		"too many": {half, quarterA, [][]*conversation{talked(200, "a", "b"), talked(200, "b", "b")},
			"conversations that moved is 50.0 %, planned are 25.0 %"},
		"none": {half, quarterA, [][]*conversation{talked(200, "a", "a"), talked(200, "b", "b")},
			"conversations that moved is 0.0 %"},
		"wrong way": {half, quarterA, [][]*conversation{talked(100, "a", "b"), talked(300, "b", "b"), talked(1, "b", "a")},
			"moved from b to a"},
		"keys moved without need": {half, layout("b", "b", "a", "a"), [][]*conversation{talked(400, "a", "a")},
			"100.0000 % of us-east's keys moved, 0.0000 % had to"},
		"no change": {half, half, [][]*conversation{talked(200, "a", "a"), talked(200, "b", "b")}, ""},
	} {
		d := &demo{out: io.Discard, traffic: &traffic{}}
		for _, group := range test.conversations {
			d.traffic.conversations = append(d.traffic.conversations, group...)
		}
		err := d.compareMoves("us-east", planOf(test.before), planOf(test.after))
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v, want no broken promise", name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), "broken promise") || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: error is %v, want a broken promise with %q", name, err, test.want)
		}
	}
}

func TestCheckShare(t *testing.T) {
	// 0.5 of 400: a standard deviation is 2.5 %.
	for observed, fine := range map[float64]bool{0.5: true, 0.6: true, 0.4: true, 0.62: false, 0.38: false} {
		if err := checkShare("it", observed, 0.5, 400); (err == nil) != fine {
			t.Errorf("share %v of 0.5 planned: %v, want fine: %v", observed, err, fine)
		}
	}
	// An engine that is not planned gets nothing at all.
	if checkShare("it", 0, 0, 400) != nil || checkShare("it", 0.0025, 0, 400) == nil {
		t.Error("share of an engine that is not planned: want 0 to be fine and one request not")
	}
}
