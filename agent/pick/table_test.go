package pick

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/irb-project/irb/agent/snapshot"
)

// testSnapshot is one cluster "c" with class "k" over engines e0, e1, ... with
// these quotas in contiguous ranges, then the fallbacks f0, f1, ...
func testSnapshot(quotas []uint64, fallbacks int) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Sequence: 7, Classes: []snapshot.Class{{Name: "k"}}}
	src := snapshot.Source{Cluster: "c", Class: "k"}
	from := uint64(0)
	for i, q := range quotas {
		name := fmt.Sprintf("e%d", i)
		s.Engines = append(s.Engines, snapshot.Engine{Name: name})
		src.Weights = append(src.Weights, snapshot.Weight{Engine: name, Quota: int64(q)})
		if q > 0 {
			src.LayoutFrom = append(src.LayoutFrom, uint32(from))
			src.LayoutTo = append(src.LayoutTo, name)
		}
		from += q
	}
	for i := range fallbacks {
		name := fmt.Sprintf("f%d", i)
		s.Engines = append(s.Engines, snapshot.Engine{Name: name})
		src.Fallbacks = append(src.Fallbacks, snapshot.Fallback{Engine: name})
	}
	s.Sources = []snapshot.Source{src}
	return s
}

// evenQuotas divides 2^32 over n engines, the rest to the last.
func evenQuotas(n int) []uint64 {
	q := make([]uint64, n)
	for i := range q {
		q[i] = snapshot.QuotaSum / uint64(n)
	}
	q[n-1] += snapshot.QuotaSum % uint64(n)
	return q
}

// randomQuotas divides 2^32 over n engines at random, each at least 1.
func randomQuotas(r *rand.Rand, n int) []uint64 {
	cuts := map[uint64]bool{}
	for len(cuts) < n-1 {
		cuts[1+r.Uint64N(snapshot.QuotaSum-1)] = true
	}
	edges := []uint64{0, snapshot.QuotaSum}
	for c := range cuts {
		edges = append(edges, c)
	}
	slices.Sort(edges)
	q := make([]uint64, n)
	for i := range q {
		q[i] = edges[i+1] - edges[i]
	}
	return q
}

func mustTable(t testing.TB, s *snapshot.Snapshot) *Table {
	t.Helper()
	table, err := NewTable(s, "c")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestNewTableRefuses(t *testing.T) {
	tests := []struct {
		name   string
		break_ func(*snapshot.Snapshot)
		want   []string
	}{
		{"no cluster", func(s *snapshot.Snapshot) { s.Sources[0].Cluster = "d" }, []string{`cluster "c" has no source in snapshot 7`}},
		{"unknown class", func(s *snapshot.Snapshot) { s.Sources[0].Class = "x" }, []string{`class "x" is not in the snapshot`}},
		{"source twice", func(s *snapshot.Snapshot) { s.Sources = append(s.Sources, s.Sources[0]) }, []string{`source "c/k" is there twice`}},
		{"class twice", func(s *snapshot.Snapshot) { s.Classes = append(s.Classes, s.Classes[0]) }, []string{`class "k" is there twice`}},
		{"engine twice", func(s *snapshot.Snapshot) { s.Engines = append(s.Engines, s.Engines[0]) }, []string{`engine "e0" is there twice`}},
		{"no layout", func(s *snapshot.Snapshot) { s.Sources[0].LayoutFrom, s.Sources[0].LayoutTo = nil, nil }, []string{"layout has 0 starts and 0 engines"}},
		{"ragged layout", func(s *snapshot.Snapshot) { s.Sources[0].LayoutTo = s.Sources[0].LayoutTo[:1] }, []string{"layout has 2 starts and 1 engines"}},
		{"first start", func(s *snapshot.Snapshot) { s.Sources[0].LayoutFrom[0] = 1 }, []string{"layout starts at 1, want 0"}},
		{"not ascending", func(s *snapshot.Snapshot) { s.Sources[0].LayoutFrom[1] = 0 }, []string{"layout range 0 starts at 0 and ends at 0"}},
		{
			"all problems at once",
			func(s *snapshot.Snapshot) {
				s.Sources[0].LayoutTo[1] = "nobody"
				s.Sources[0].Fallbacks[0].Engine = "nothing"
			},
			[]string{`layout: engine "nobody" is not in the snapshot`, `fallback: engine "nothing" is not in the snapshot`},
		},
		{
			"too many capabilities",
			func(s *snapshot.Snapshot) {
				for i := range 65 {
					s.Engines[0].Capabilities = append(s.Engines[0].Capabilities, fmt.Sprint("cap", i))
				}
			},
			[]string{`engine "e0": capability "cap64" is the 65th of the snapshot`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := testSnapshot(evenQuotas(2), 1)
			tt.break_(s)
			_, err := NewTable(s, "c")
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

// A class that the snapshot knows but that this cluster has no source of is
// recognised, and says that it cannot be routed.
func TestClassWithoutSource(t *testing.T) {
	s := testSnapshot(evenQuotas(2), 0)
	s.Classes = append([]snapshot.Class{{Name: "other", Match: snapshot.Match{Path: "/other"}}}, s.Classes...)
	table := mustTable(t, s)
	c := table.Match(Facts{Path: "/other"})
	if c == nil || c.Spec.Name != "other" {
		t.Fatalf("matched %v, want other", c)
	}
	want := `class "other" has no weights in cluster "c" (snapshot 7)`
	if err := c.Routable(); err == nil || err.Error() != want {
		t.Errorf("Routable() = %v, want %s", err, want)
	}
	if _, err := c.Explain(Request{}); err == nil {
		t.Error("Explain explains a class without weights")
	}
	w := c.Walk(Request{})
	if step, ok := w.Next(); ok {
		t.Errorf("walk offers %v", step)
	}
	if err := table.Class("k").Routable(); err != nil {
		t.Error(err)
	}
}

func TestEngineNumbers(t *testing.T) {
	table := mustTable(t, testSnapshot(evenQuotas(3), 1))
	for i, e := range table.Engines() {
		if n, ok := table.EngineNumber(e.Name); !ok || n != i {
			t.Errorf("EngineNumber(%q) = %d, %v, want %d", e.Name, n, ok, i)
		}
	}
	if _, ok := table.EngineNumber("nobody"); ok {
		t.Error("found an engine that is not there")
	}
}
