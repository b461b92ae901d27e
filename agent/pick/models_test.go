package pick

import (
	"reflect"
	"testing"

	"github.com/irb-project/irb/agent/snapshot"
)

func TestModels(t *testing.T) {
	s := testSnapshot(evenQuotas(1), 0)
	routed := s.Classes[0]
	s.Engines[0].Models = []string{"org/llama", "org/llama:lora", "other", "wild*"}
	routed.Match = snapshot.Match{Path: "/v1/chat", Models: []string{"b", "org/*"}}
	s.Classes = []snapshot.Class{
		routed,
		{Name: "nowhere", Match: snapshot.Match{Models: []string{"unrouted"}}},
	}
	of := func(m snapshot.Match, f Facts) []string {
		t.Helper()
		s.Classes[0].Match = m
		table, err := NewTable(s, "c")
		if err != nil {
			t.Fatal(err)
		}
		return table.Models(f)
	}
	tests := []struct {
		name  string
		match snapshot.Match
		facts Facts
		want  []string
	}{
		{"exact", snapshot.Match{Path: "/v1/chat", Models: []string{"b", "a", "b"}}, Facts{Path: "/v1/models"}, []string{"a", "b"}},
		{"prefix", snapshot.Match{Models: []string{"b", "org/*"}}, Facts{}, []string{"b", "org/llama", "org/llama:lora"}},
		{"any", snapshot.Match{Path: "/v1/chat"}, Facts{}, []string{"org/llama", "org/llama:lora", "other"}},
		{"of another caller", snapshot.Match{Models: []string{"a"}, Identity: []string{"x"}}, Facts{Identities: []string{"y"}}, nil},
		{"of the caller", snapshot.Match{Models: []string{"a"}, Identity: []string{"x"}}, Facts{Identities: []string{"x"}}, []string{"a"}},
		{"by a header nobody trusts", snapshot.Match{Models: []string{"a"}, Headers: map[string]string{"x": "1"}}, Facts{Header: map[string][]string{"X": {"1"}}}, nil},
	}
	for _, test := range tests {
		if got := of(test.match, test.facts); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
