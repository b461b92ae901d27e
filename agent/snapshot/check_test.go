package snapshot

import (
	"math"
	"strings"
	"testing"
)

func TestCheckAccepts(t *testing.T) {
	for name, change := range map[string]func(*Snapshot){
		"nothing changed": func(*Snapshot) {},
		"a source without demand": func(s *Snapshot) {
			source := &s.Sources[1]
			source.OfferedRPS, source.ServedRPS, source.Weights[0].RPS = 0, 0, 0
		},
		"all shed": func(s *Snapshot) {
			source := &s.Sources[1]
			source.ShedRPS, source.ServedRPS, source.Weights[0].RPS = 40, 0, 0
		},
		"a weight too small for a quota": func(s *Snapshot) {
			source := &s.Sources[0]
			source.Weights[0].Quota, source.Weights[1].Quota = QuotaSum, 0
			source.Weights[0].Fraction, source.Weights[1].Fraction = 1, 1e-11
			source.LayoutFrom, source.LayoutTo = []uint32{0}, []string{"a-1"}
		},
		"ranges that come again": func(s *Snapshot) {
			source := &s.Sources[0]
			source.LayoutFrom = []uint32{0, 100, 100 + 715827883}
			source.LayoutTo = []string{"a-1", "c-1", "a-1"}
		},
		"a formula": func(s *Snapshot) {
			p := &s.Engines[0].Profile
			p.Queueing, p.TTFTV, p.TTFTMs = "ps", []float64{0}, []float64{80}
		},
		"no endpoint where nothing goes": func(s *Snapshot) {
			s.Sources[0].Fallbacks, s.Engines[1].Endpoints = nil, nil
		},
		"no residency label but the region": func(s *Snapshot) {
			s.Classes[0].Residency = map[string][]string{"region": {"region-a", "region-b", "region-c"}}
		},
		"a label that hides the region": func(s *Snapshot) {
			s.Classes[0].Residency = map[string][]string{"region": {"r"}}
			for i := range s.Engines {
				s.Engines[i].Labels = map[string]string{"region": "r"}
			}
		},
		"engines of any model": func(s *Snapshot) {
			for i := range s.Engines {
				s.Engines[i].Models, s.Engines[i].MaxContextTokens = nil, 0
			}
		},
	} {
		s := twoRegions()
		change(s)
		if err := Check(s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	source := func(s *Snapshot) *Source { return &s.Sources[0] }
	for _, test := range []struct {
		change func(*Snapshot)
		want   string
	}{
		{func(s *Snapshot) { s.Format = 2 }, "format is 2, want 1"},
		{func(s *Snapshot) { s.Fleet = "" }, `fleet is "", want letters`},
		{func(s *Snapshot) { s.Fleet = "a " }, `fleet is "a ", want letters`},
		{func(s *Snapshot) { s.Fleet = "-a" }, `fleet is "-a", want letters`},
		{func(s *Snapshot) { s.Fleet = "a/b" }, `fleet is "a/b", want letters`},
		{func(s *Snapshot) { s.Fleet = strings.Repeat("a", 64) }, "at most 63"},
		{func(s *Snapshot) { s.Sequence = 0 }, "sequence is 0, want > 0"},
		{func(s *Snapshot) { s.Expires = s.Created }, "expires is 2026-08-01T12:00:00Z, want after created"},
		{func(s *Snapshot) { s.Inputs[0].Role = "" }, `input "demand.toml": no role`},
		{func(s *Snapshot) { s.Inputs[0].SHA256 = "00" }, `sha256 is "00", want 64 hex digits`},
		{func(s *Snapshot) { s.Solver.Method = "" }, "solver: no method"},
		{func(s *Snapshot) { s.Solver.Work = "auto" }, `solver: work is "auto", want single or split`},
		{func(s *Snapshot) { s.Solver.Gap = nan }, "solver: gap is NaN, want a finite number"},
		{func(s *Snapshot) { s.Solver.Bound = -inf }, "solver: bound_ms_rps is -Inf, want a finite number"},
		{func(s *Snapshot) { s.Solver.ServedRPS = inf }, "solver: served_rps is +Inf, want a finite number >= 0"},
		{func(s *Snapshot) { s.Solver.MovedShare = 1.5 }, "solver: moved_share is 1.5, want a number in [0, 1]"},
		{func(s *Snapshot) { s.Policy.MaxUtilization = 0 }, "policy: max_utilization is 0, want > 0"},
		{func(s *Snapshot) { s.Policy.MaxUtilization = 1.1 }, "policy: max_utilization is 1.1, want a number in [0, 1]"},
		{func(s *Snapshot) { s.Policy.Shed = "" }, `policy: shed is "", want forbid or allow`},
		{func(s *Snapshot) { s.Groups[0].PriceMs = nan }, "group max_share of chat: price_ms is NaN"},
		{func(s *Snapshot) { s.Caps[0].Price = -1 }, "cap cap 1: price is -1, want a finite number >= 0"},

		{func(s *Snapshot) { s.Classes[1].Name = "chat" }, "class chat: duplicate"},
		{func(s *Snapshot) { s.Classes[0].Residency["zone"] = nil }, "class chat: residency zone allows no value"},
		{func(s *Snapshot) { s.Classes[0].MaxContextTokens = nan }, "class chat: max_context_tokens is NaN"},
		{func(s *Snapshot) { s.Classes[0].Guard.RetryAttempts = 11 }, "class chat: guard: retry_attempts is 11, want a number in [1, 10]"},
		{func(s *Snapshot) { s.Classes[0].Guard.RetryAttempts = -1 }, "class chat: guard: retry_attempts is -1"},
		{func(s *Snapshot) { *s.Classes[0].Guard.RetryBudgetRatio = nan }, "class chat: guard: retry_budget_ratio is NaN, want a number in [0, 1]"},
		{func(s *Snapshot) { s.Classes[0].Guard.RetryBudgetFloor = &inf }, "class chat: guard: retry_budget_floor is +Inf, want a number in [0, 1000]"},
		{func(s *Snapshot) { s.Classes[0].Guard.TTFTTimeoutMs = 1 }, "class chat: guard: ttft_timeout_ms is 1, want a number in [10, 3.6e+06]"},
		{func(s *Snapshot) { s.Classes[0].Guard.IdleTimeoutMs = inf }, "class chat: guard: idle_timeout_ms is +Inf"},
		{func(s *Snapshot) { s.Classes[0].Guard.TotalTimeoutMs = 1e9 }, "class chat: guard: total_timeout_ms is 1e+09, want a number in [10, 8.64e+07]"},
		{func(s *Snapshot) { s.Classes[0].Match.Path = "v1" }, `class chat: path is "v1"`},
		{func(s *Snapshot) { s.Classes[0].Match.Methods[0] = "get" }, `class chat: method is "get"`},
		{func(s *Snapshot) { s.Classes[0].Match.Models[0] = "a*b" }, `class chat: model is "a*b"`},
		{func(s *Snapshot) { s.Classes[0].Match.Identity[0] = "" }, "class chat: an empty identity"},
		{func(s *Snapshot) { s.Classes[0].Match.Headers[""] = "a" }, "class chat: a header without a name"},

		{func(s *Snapshot) { s.Engines[1].Name = "a-1" }, `engine "a-1" after "a-1": duplicate or out of order`},
		{func(s *Snapshot) { s.Engines[0], s.Engines[1] = s.Engines[1], s.Engines[0] }, `engine "a-1" after "b-1": duplicate or out of order`},
		{func(s *Snapshot) { s.Engines[0].Region = "" }, `engine a-1: region is ""`},
		{func(s *Snapshot) { s.Engines[0].Endpoints[0] = "10.0.0.1:8000" }, `engine a-1: endpoint "10.0.0.1:8000": `},
		{func(s *Snapshot) { s.Engines[0].Endpoints[0] = "ftp://a" }, "want http:// or https://"},
		{func(s *Snapshot) { s.Engines[0].Endpoints[0] = "http://:80" }, "no host"},
		{func(s *Snapshot) { s.Engines[0].Endpoints[0] = "http://u@a" }, "want no user, query or fragment"},
		{func(s *Snapshot) { s.Engines[0].Endpoints[0] = "http://a?" }, "want no user, query or fragment"},
		{func(s *Snapshot) { s.Engines[0].Endpoints[0] = "http://a#b" }, "want no user, query or fragment"},
		{func(s *Snapshot) { s.Engines[0].Endpoints[0] = "http://a:70000" }, "port is 70000, want 1 to 65535"},
		{func(s *Snapshot) { s.Engines[0].Endpoints[1] = s.Engines[0].Endpoints[0] }, "is given twice"},
		{func(s *Snapshot) { s.Engines[0].CapacityRPS = -1 }, "engine a-1: capacity_rps is -1"},
		{func(s *Snapshot) { s.Engines[0].OutputPrice = nan }, "engine a-1: output_price is NaN"},
		{func(s *Snapshot) { s.Engines[0].Profile.PromptTokens = 0 }, "engine a-1: profile: prompt_tokens is 0, want > 0"},
		{func(s *Snapshot) { s.Engines[0].Profile.PromptTokens = inf }, "engine a-1: profile: prompt_tokens is +Inf"},
		{func(s *Snapshot) { s.Engines[0].Profile.TTFTV = nil }, "ttft has 0 utilizations and 2 times"},
		{func(s *Snapshot) { s.Engines[0].Profile.TTFTV = []float64{0.1, 1} }, "ttft_utilization starts at 0.1, want 0"},
		{func(s *Snapshot) { s.Engines[0].Profile.TTFTV = []float64{0, 0} }, "ttft_utilization 0 after 0, want ascending"},
		{func(s *Snapshot) { s.Engines[0].Profile.TBOTMs = []float64{nan} }, "tbot_ms is NaN"},
		{func(s *Snapshot) { s.Engines[0].Profile.Queueing = "mm1" }, `queueing is "mm1", want ps or none`},
		{func(s *Snapshot) { s.Engines[0].Profile.Queueing = "ps" }, "a formula has 2 and 1 values"},

		{func(s *Snapshot) { s.Sources = nil }, "no source"},
		{func(s *Snapshot) { s.Sources[1].Cluster = "us-east" }, `source "us-east/chat" after "us-east/chat": duplicate or out of order`},
		{func(s *Snapshot) { s.Sources[1].Cluster = "a" }, `source "a/chat" after "us-east/chat": duplicate or out of order`},
		{func(s *Snapshot) { source(s).Cluster = "" }, `cluster is ""`},
		{func(s *Snapshot) { source(s).Class = "c" }, "source us-east/c: unknown class"},
		{func(s *Snapshot) { source(s).OfferedRPS = nan }, "offered_rps is NaN"},
		{func(s *Snapshot) { source(s).PriceMs = inf }, "price_ms is +Inf"},
		{func(s *Snapshot) { source(s).CachedFraction = 2 }, "cached_fraction is 2, want a number in [0, 1]"},
		{func(s *Snapshot) { source(s).OfferedRPS = 100 }, "served_rps is 120, want at most the offered 100"},
		{func(s *Snapshot) { source(s).ShedRPS = 1 }, "served_rps and shed_rps sum to 121, want 120"},

		{func(s *Snapshot) { source(s).Weights = nil }, "quotas sum to 0, want exactly 2^32"},
		{func(s *Snapshot) { source(s).Weights[0].Quota-- }, "quotas sum to 4294967295, want exactly 2^32"},
		{func(s *Snapshot) { source(s).Weights[0].Quota-- }, "weight a-1: the layout gives it 3579139413 of 2^32, its quota is 3579139412"},
		{func(s *Snapshot) { source(s).Weights[0].Quota = -1 }, "quota is -1, want [0, 2^32]"},
		{func(s *Snapshot) { source(s).Weights[0].Quota = math.MaxInt64 }, "want [0, 2^32]"},
		{func(s *Snapshot) { source(s).Weights[1].Engine = "a-1" }, `weight "a-1" after "a-1": duplicate or out of order`},
		{func(s *Snapshot) { source(s).Weights[0].Engine = "a-0" }, `weight "a-0": unknown engine`},
		{func(s *Snapshot) { source(s).Weights[0].Fraction = 0.8 }, "fraction is 0.8, its quota is 0.83333"},
		{func(s *Snapshot) { source(s).Weights[0].Fraction = 0.83 }, "fractions sum to 0.99666"},
		{func(s *Snapshot) { source(s).Weights[0].Fraction = nan }, "fraction is NaN"},
		{func(s *Snapshot) { source(s).Weights[0].RPS = 99 }, "rps of weights sum to 119, want 120"},
		{func(s *Snapshot) { source(s).Weights[0].RTTMs = -1 }, "rtt_ms is -1"},
		{func(s *Snapshot) { source(s).Weights[0].Cost.Limit = 62 }, "weight a-1: cost_ms: the parts sum to 3216, total is 3217"},
		{func(s *Snapshot) { c := &source(s).Weights[0].Cost; c.OneLess, c.OneMore = 3, 2 }, "weight a-1: cost_ms: one less saves 3, one more costs 2, want at least as much"},
		{func(s *Snapshot) { source(s).Weights[0].Cost.OneMore = inf }, "weight a-1: cost_ms.one_more is +Inf"},
		{func(s *Snapshot) { source(s).Weights[0].Cost.Limit = inf }, "cost_ms: the parts sum to +Inf"},

		{func(s *Snapshot) { source(s).LayoutTo = nil }, "layout has 2 starts and 0 engines"},
		{func(s *Snapshot) { source(s).LayoutFrom, source(s).LayoutTo = nil, nil }, "layout has 0 starts and 0 engines"},
		{func(s *Snapshot) { source(s).LayoutFrom[0] = 1 }, "layout_from starts at 1, want 0"},
		{func(s *Snapshot) { source(s).LayoutFrom[1] = 0 }, "layout_from: 0 after 0, want ascending"},
		{func(s *Snapshot) { source(s).LayoutFrom[1]++ }, "weight c-1: the layout gives it 715827882 of 2^32, its quota is 715827883"},
		{func(s *Snapshot) { source(s).LayoutTo[1] = "b-1" }, `the layout names engine "b-1", which has no weight`},

		{func(s *Snapshot) { source(s).Fallbacks[0].Engine = "a-1" }, `engine "a-1" is a weight and a fallback`},
		{func(s *Snapshot) { source(s).Fallbacks[0].Engine = "d-1" }, `fallback "d-1": unknown engine`},
		{func(s *Snapshot) { source(s).Fallbacks[0].AbsorbRPS = nan }, "fallback b-1: absorb_rps is NaN"},
		{func(s *Snapshot) { s.Engines[0].Endpoints = nil }, `weight "a-1": the engine has no endpoint`},

		{func(s *Snapshot) { source(s).Alternatives[0].Engine = "d-1" }, "alternative d-1: unknown engine"},
		{func(s *Snapshot) { source(s).Alternatives[0].Engine = "a-1" }, "alternative a-1: the engine is a weight, or given twice"},
		{func(s *Snapshot) { source(s).Alternatives[0].LosesByMs = nan }, "alternative b-1: loses_by_ms is NaN"},
		{func(s *Snapshot) { source(s).Alternatives[0].Cost.Net = 0 }, "alternative b-1: cost_ms: the parts sum to"},
	} {
		s := twoRegions()
		test.change(s)
		err := Check(s)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error is\n%v\nwant %q", err, test.want)
		}
	}
}

// grpc/grpc-go PR 9357: weights that sum to 0 in 32 bits, or to nothing finite, are
// refused before anything is built of them.
func TestCase23SumsDoNotWrap(t *testing.T) {
	for _, change := range []func(w []Weight){
		func(w []Weight) { w[0].Quota += QuotaSum },
		func(w []Weight) { w[0].Quota = math.MaxInt64 },
		func(w []Weight) { w[0].Quota, w[1].Quota = math.MaxInt64, math.MaxInt64 },
		func(w []Weight) { w[0].Quota, w[1].Quota = 0, 0 },
		func(w []Weight) { w[0].Fraction = math.Inf(1) },
		func(w []Weight) { w[0].RPS = math.NaN() },
	} {
		s := twoRegions()
		change(s.Sources[0].Weights)
		if Check(s) == nil {
			t.Errorf("accepted: %+v", s.Sources[0].Weights)
		}
	}
}

// TestNeverWhereARequestMayNotGo: an engine that a class excludes is refused
// as weight and as fallback.
func TestNeverWhereARequestMayNotGo(t *testing.T) {
	for want, change := range map[string]func(*Class, *Engine){
		`residency zone = ["us" "eu"] excludes it: its zone is "asia"`: func(_ *Class, e *Engine) { e.Labels["zone"] = "asia" },
		`residency zone = ["us" "eu"] excludes it: its zone is ""`:     func(_ *Class, e *Engine) { delete(e.Labels, "zone") },
		`it lacks the capability "tools"`:                              func(_ *Class, e *Engine) { e.Capabilities = nil },
		`it does not serve model "chat-large"`:                         func(_ *Class, e *Engine) { e.Models = []string{"chat-small"} },
		"its context of 4096 tokens is below the 8192 needed":          func(_ *Class, e *Engine) { e.MaxContextTokens = 4096 },
	} {
		for role, i := range map[string]int{`weight "a-1"`: 0, `fallback "b-1"`: 1} {
			s := twoRegions()
			change(&s.Classes[0], &s.Engines[i])
			err := Check(s)
			if err == nil || !strings.Contains(err.Error(), role+" may not serve it: "+want) {
				t.Errorf("error is\n%v\nwant %s, %s", err, role, want)
			}
		}
	}
}

func TestCheckTellsAtMost20(t *testing.T) {
	s := large(100)
	for i := range s.Sources {
		s.Sources[i].Weights[0].Quota++
	}
	if lines := strings.Count(Check(s).Error(), "\n") + 1; lines != maxProblems {
		t.Errorf("%d problems are told, want %d", lines, maxProblems)
	}
}
