package pick

import (
	"testing"

	"github.com/irb-project/irb/agent/snapshot"
)

func TestMatch(t *testing.T) {
	classes := []snapshot.Class{
		{Name: "delete", Match: snapshot.Match{Path: "/v1/files", Methods: []string{"DELETE", "PUT"}}},
		{Name: "eu", Match: snapshot.Match{Models: []string{"org/llama", "org/qwen-*"}, Identity: []string{"eu-gateway", "eu-proxy"}}},
		{Name: "gold", Match: snapshot.Match{Models: []string{"org/llama"}, Headers: map[string]string{"x-tier": "gold", "X-Region": "eu"}}},
		{Name: "untrusted", Match: snapshot.Match{Headers: map[string]string{"x-any": "1"}}},
		{Name: "exact", Match: snapshot.Match{Path: "/v1/", Models: []string{"org/llama"}}},
		{Name: "prefix", Match: snapshot.Match{Path: "/v1/", Models: []string{"org/llama:*"}}},
		{Name: "one model", Model: "only"},
		{Name: "models only", Match: snapshot.Match{Path: "/v1/models", Models: []string{"*"}}},
	}
	s := testSnapshot(evenQuotas(1), 0)
	s.Classes = append(classes, s.Classes...)
	untrusting, err := NewTable(s, "c")
	if err != nil {
		t.Fatal(err)
	}
	table := untrusting.Trusting("X-Tier", "x-region")
	if got := len(table.Classes()); got != len(classes)+1 {
		t.Fatalf("%d classes", got)
	}
	gold := map[string][]string{"X-Tier": {"gold"}, "X-Region": {"eu"}}
	tests := []struct {
		name  string
		facts Facts
		want  string
	}{
		{"method", Facts{Method: "DELETE", Path: "/v1/files/1"}, "delete"},
		{"other method", Facts{Method: "GET", Path: "/v1/files/1"}, "k"},
		{"method is case-sensitive", Facts{Method: "delete", Path: "/v1/files/1"}, "k"},
		{"identity", Facts{Path: "/v1/x", Model: "org/llama", Identities: []string{"listener", "eu-proxy"}}, "eu"},
		{"identity and prefix", Facts{Path: "/v1/x", Model: "org/qwen-7b", Identities: []string{"eu-gateway"}}, "eu"},
		{"foreign identity", Facts{Path: "/v1/x", Model: "org/llama", Identities: []string{"us-gateway"}}, "exact"},
		{"headers", Facts{Path: "/v1/x", Model: "org/llama", Header: gold}, "gold"},
		{"one header missing", Facts{Path: "/v1/x", Model: "org/llama", Header: map[string][]string{"X-Tier": {"gold"}}}, "exact"},
		{"header twice", Facts{Path: "/v1/x", Model: "org/llama", Header: map[string][]string{"X-Tier": {"gold", "gold"}, "X-Region": {"eu"}}}, "exact"},
		{"header nobody trusts", Facts{Path: "/", Header: map[string][]string{"X-Any": {"1"}}}, "k"},
		{"exact is no prefix", Facts{Path: "/v1/x", Model: "org/llama2"}, "k"},
		{"adapter", Facts{Path: "/v1/x", Model: "org/llama:lora-1"}, "prefix"},
		{"class for one model", Facts{Path: "/v1/x", Model: "only"}, "one model"},
		{"path", Facts{Path: "/v2/x", Model: "org/llama"}, "k"},
		{"star", Facts{Path: "/v1/models"}, "models only"},
		{"nothing known", Facts{}, "k"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := table.Match(tt.facts)
			if c == nil || c.Spec.Name != tt.want {
				t.Errorf("matched %v, want %s", c, tt.want)
			}
		})
	}
	s.Classes = s.Classes[:1]
	s.Sources[0].Class = "delete"
	if c := mustTable(t, s).Match(Facts{Method: "GET"}); c != nil {
		t.Errorf("matched %s, want none", c.Spec.Name)
	}
}

// FuzzMatch compares the matcher with the rule written out.
func FuzzMatch(f *testing.F) {
	f.Add("/v1/", "POST", "org/a", "org/b*", "id", "gold", "/v1/chat", "POST", "org/b1", "id", "gold")
	f.Add("", "", "", "", "", "", "", "", "", "", "")
	f.Add("/", "", "*", "", "", "", "/x", "GET", "", "", "")
	f.Fuzz(func(t *testing.T, path, method, model1, model2, id, tier, gotPath, gotMethod, gotModel, gotID, gotTier string) {
		class := snapshot.Class{Name: "x"}
		class.Match.Path = path
		for _, set := range []struct {
			to    *[]string
			value []string
		}{{&class.Match.Methods, []string{method}}, {&class.Match.Models, []string{model1, model2}}, {&class.Match.Identity, []string{id}}} {
			for _, v := range set.value {
				if v != "" {
					*set.to = append(*set.to, v)
				}
			}
		}
		if tier != "" {
			class.Match.Headers = map[string]string{"x-tier": tier}
		}
		m := newMatcher(&class, []string{"x-tier"})
		got := m.match(&Facts{
			Method: gotMethod, Path: gotPath, Model: gotModel,
			Identities: []string{gotID}, Header: map[string][]string{"X-Tier": {gotTier}},
		})
		modelHolds := func(rule string) bool {
			if n := len(rule); n > 0 && rule[n-1] == '*' {
				return len(gotModel) >= n-1 && gotModel[:n-1] == rule[:n-1]
			}
			return rule != "" && rule == gotModel
		}
		want := len(gotPath) >= len(path) && gotPath[:len(path)] == path &&
			(method == "" || method == gotMethod) &&
			(model1 == "" && model2 == "" || modelHolds(model1) || modelHolds(model2)) &&
			(id == "" || id == gotID) &&
			(tier == "" || tier == gotTier)
		if got != want {
			t.Errorf("match is %v, want %v", got, want)
		}
	})
}
