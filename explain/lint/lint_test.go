package lint

import (
	"slices"
	"testing"
	"time"

	"github.com/irb-project/irb/solve/input"
	"github.com/irb-project/irb/solve/model"
)

func compile(t *testing.T, change func(f *model.Fleet)) *model.Compiled {
	t.Helper()
	fleet, err := input.Read(input.Paths{Folder: "../../examples/two-regions"})
	if err != nil {
		t.Fatal(err)
	}
	change(fleet)
	c, err := model.Compile(fleet, model.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func share(v float64) *float64 { return &v }

func TestFindings(t *testing.T) {
	gold := model.Class{Name: "gold", Priority: 1, Match: model.Match{Headers: map[string]string{"x-tier": "gold"}}}
	demand := func(class string) model.Demand {
		return model.Demand{Cluster: "us-east", Class: class, RPS: 1, PromptTokens: 1024, OutputTokens: 256, RequestsPerKey: 1}
	}
	for name, test := range map[string]struct {
		change   func(f *model.Fleet)
		schedule Schedule
		want     []string // "code subject", problems first
	}{
		"nothing":          {func(*model.Fleet) {}, Schedule{}, nil},
		"schedule is fine": {func(*model.Fleet) {}, Schedule{time.Hour, 24 * time.Hour}, nil},
		"expires at once":  {func(*model.Fleet) {}, Schedule{24 * time.Hour, 24 * time.Hour}, []string{"expiry schedule"}},
		"expires soon":     {func(*model.Fleet) {}, Schedule{10 * time.Hour, 24 * time.Hour}, []string{"expiry schedule"}},
		"shadowed and without demand": {func(f *model.Fleet) { f.Policy.Classes = append(f.Policy.Classes, gold) }, Schedule{},
			[]string{"class-shadowed class gold", "class-no-demand class gold", "client-header class gold"}},
		"claimed by a header": {func(f *model.Fleet) {
			f.Policy.Classes = append([]model.Class{gold}, f.Policy.Classes...)
			f.Demand = append(f.Demand, demand("gold"))
		}, Schedule{}, []string{"client-header class gold"}},
		"no catch-all": {func(f *model.Fleet) { f.Policy.Classes[0].Match.Path = "/v1/" }, Schedule{}, []string{"no-catch-all policy"}},
		"nothing may serve": {func(f *model.Fleet) { f.Policy.Classes[0].Requires = []string{"tools"} }, Schedule{},
			[]string{"no-engine source us-east/default", "no-engine source us-west/default", "engine-unused engine a-1", "engine-unused engine c-1"}},
		"single point": {func(f *model.Fleet) {
			f.Policy.Rules = []model.Rule{{Name: "rule 1", Cluster: "us-west", Engine: "a-1", Forbid: true}}
		}, Schedule{}, []string{"single-point source us-west/default"}},
		"one domain": {func(f *model.Fleet) {
			f.Engines[1].Region, f.Latency.To = "region-a", []string{"region-a", "region-b"}
		}, Schedule{}, []string{"single-point source us-east/default", "single-point source us-west/default"}},
		"residency": {func(f *model.Fleet) { f.Policy.Classes[0].Residency = map[string][]string{"region": {"region-a"}} }, Schedule{},
			[]string{"residency-no-spare source us-east/default", "residency-no-spare source us-west/default", "engine-unused engine c-1"}},
		"engine down": {func(f *model.Fleet) { f.Engines[1].Health = 0 }, Schedule{},
			[]string{"single-point source us-east/default", "single-point source us-west/default", "engine-unused engine c-1"}},
		"rules without effect": {func(f *model.Fleet) {
			f.Policy.Rules = []model.Rule{
				{Name: "rule 1", Cluster: "us-north", Engine: "a-1", Forbid: true},
				{Name: "rule 2", Region: "region-x", MaxShare: share(0.5)},
				{Name: "rule 3", Engine: "a-1", MaxShare: share(0.8)},
				{Name: "rule 4", Cluster: "us-east", Engine: "a-1", MaxShare: share(0.9)},
				{Name: "rule 5", Cluster: "us-east", Engine: "a-1", MaxShare: share(0.7)},
				{Name: "rule 6", Engine: "a-1", MaxShare: share(0.8)},
			}
		}, Schedule{}, []string{"rule-idle rule 1", "rule-idle rule 2", "rule-redundant rule 4", "rule-redundant rule 6"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range Check(compile(t, test.change), test.schedule) {
				got = append(got, f.Code+" "+f.Subject)
				if f.Text == "" {
					t.Errorf("%s has no text", f.Code)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

func TestCovers(t *testing.T) {
	class := func(m model.Match) *model.Class { return &model.Class{Match: m} }
	for _, test := range []struct {
		name string
		a, b *model.Class
		want bool
	}{
		{"everything", class(model.Match{}), class(model.Match{Path: "/v1/"}), true},
		{"nothing less", class(model.Match{Path: "/v1/"}), class(model.Match{}), false},
		{"path", class(model.Match{Path: "/v1/"}), class(model.Match{Path: "/v1/chat"}), true},
		{"method", class(model.Match{Methods: []string{"GET", "POST"}}), class(model.Match{Methods: []string{"POST"}}), true},
		{"any method", class(model.Match{Methods: []string{"POST"}}), class(model.Match{}), false},
		{"model prefix", class(model.Match{Models: []string{"llama-*"}}), class(model.Match{Models: []string{"llama-70b", "llama-8*"}}), true},
		{"longer prefix", class(model.Match{Models: []string{"llama-8*"}}), class(model.Match{Models: []string{"llama-*"}}), false},
		{"own model", &model.Class{Model: "m"}, class(model.Match{Models: []string{"m"}}), true},
		{"other model", &model.Class{Model: "m"}, class(model.Match{}), false},
		{"header", class(model.Match{Headers: map[string]string{"X-A": "1"}}), class(model.Match{Headers: map[string]string{"x-a": "1", "b": "2"}}), true},
		{"other value", class(model.Match{Headers: map[string]string{"x-a": "1"}}), class(model.Match{Headers: map[string]string{"x-a": "2"}}), false},
		{"identity", class(model.Match{Identity: []string{"eu"}}), class(model.Match{}), false},
	} {
		if got := covers(test.a, test.b); got != test.want {
			t.Errorf("%s: covers is %v, want %v", test.name, got, test.want)
		}
	}
}
