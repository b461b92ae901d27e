package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/irb-project/irb/solve/profile"
)

// twoRegions is the fleet of examples/two-regions-queueing: a near engine and
// a far one, with the round trips 2 and 65 ms.
func twoRegions() *Fleet {
	nan := float32(math.NaN())
	return &Fleet{
		Policy: Policy{
			Fleet: "test", MaxUtilization: 0.9, OutputTokenWork: 4, RoundTrips: 1, Work: WorkAuto,
			FailureDomain: "region", Classes: []Class{{Name: "default"}},
		},
		Profiles: []profile.Spec{{
			Name: "h100-70b", PromptTokens: 1024, OutputTokens: 256,
			Utilization: []float64{0, 0.25, 0.5, 0.75, 0.9, 1},
			TTFTMs:      []float64{80, 85, 100, 140, 220, 400},
			TBOTMs:      []float64{12, 13, 15, 18, 22, 30},
		}},
		Engines: []Engine{
			{Name: "c-1", Region: "region-c", Profile: "h100-70b", CapacityRPS: 80, Health: 1},
			{Name: "a-1", Region: "region-a", Profile: "h100-70b", CapacityRPS: 100, Health: 1, Labels: map[string]string{"zone": "eu"}},
		},
		Demand: []Demand{
			{Cluster: "us-west", Class: "default", RPS: 40, PromptTokens: 1024, OutputTokens: 256, RequestsPerKey: 1},
			{Cluster: "us-east", Class: "default", RPS: 120, PromptTokens: 1024, OutputTokens: 256, RequestsPerKey: 1},
		},
		Latency: Latency{
			From: []string{"us-east", "us-west"}, To: []string{"region-a", "region-c"},
			RTTMs: []float32{2, 65, nan, 2},
		},
	}
}

func compile(t *testing.T, f *Fleet, opts CompileOptions) *Compiled {
	t.Helper()
	c, err := Compile(f, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCompileSortsAndPrices(t *testing.T) {
	c := compile(t, twoRegions(), CompileOptions{})
	if c.Engines[0].Name != "a-1" || c.Engines[1].Name != "c-1" || c.Sources[0].Cluster != "us-east" {
		t.Fatalf("engines %v, sources %v, want them in order of name", c.Engines, c.Sources)
	}
	if want := []int{0, 2, 3}; !slices.Equal(c.Row, want) {
		t.Fatalf("rows are %v, want %v: us-west does not reach region-a", c.Row, want)
	}
	base := 80 + 256*12.0
	if want := []float64{2 + base, 65 + base, 2 + base}; !slices.Equal(c.CostMs, want) {
		t.Errorf("costs are %v ms, want %v", c.CostMs, want)
	}
	if got, want := c.Engines[0].Limit, 0.9*100*(1024+4*256.0); got != want {
		t.Errorf("limit of a-1 is %v work/s, want %v", got, want)
	}
	if c.Work != WorkSingle {
		t.Errorf("work is %q, want single: all mixes agree", c.Work)
	}
}

func TestCompileRowOrderDoesNotMatter(t *testing.T) {
	a, b := twoRegions(), twoRegions()
	slices.Reverse(b.Engines)
	slices.Reverse(b.Demand)
	x, y := compile(t, a, CompileOptions{}), compile(t, b, CompileOptions{})
	if !slices.Equal(x.CostMs, y.CostMs) || !slices.Equal(x.Col, y.Col) || !slices.Equal(x.Sources, y.Sources) {
		t.Errorf("the order of rows changed the program:\n%v\n%v", x.Problem, y.Problem)
	}
}

func TestExcluded(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Fleet)
		engine string
		want   string // "" eligible, else part of the reason
	}{
		{"plain", func(f *Fleet) {}, "a-1", ""},
		{"model", func(f *Fleet) {
			f.Policy.Classes[0].Model = "big"
			f.Engines[1].Models = []string{"small"}
		}, "a-1", `does not serve model "big"`},
		{"engine of any model", func(f *Fleet) { f.Policy.Classes[0].Model = "big" }, "a-1", ""},
		{"capability", func(f *Fleet) { f.Policy.Classes[0].Requires = []string{"tools"} }, "a-1", `lacks the capability "tools"`},
		{"context", func(f *Fleet) { f.Engines[1].MaxContextTokens = 1000 }, "a-1", "below the 1280 needed"},
		{"context of the class", func(f *Fleet) {
			f.Engines[1].MaxContextTokens = 100000
			f.Policy.Classes[0].ContextTokens = 131072
		}, "a-1", "below the 131072 needed"},
		{"residency kept", func(f *Fleet) { f.Policy.Classes[0].Residency = map[string][]string{"zone": {"eu"}} }, "a-1", ""},
		{"residency broken", func(f *Fleet) { f.Policy.Classes[0].Residency = map[string][]string{"zone": {"eu"}} }, "c-1", "residency zone"},
		{"region is a label", func(f *Fleet) { f.Policy.Classes[0].Residency = map[string][]string{"region": {"region-c"}} }, "a-1", "residency region"},
		{"forbid", func(f *Fleet) {
			f.Policy.Rules = []Rule{{Name: "rule 1", Cluster: "us-east", Engine: "a-1", Forbid: true}}
		}, "a-1", "rule 1 forbids it"},
		{"forbid of another cluster", func(f *Fleet) {
			f.Policy.Rules = []Rule{{Name: "rule 1", Cluster: "us-west", Engine: "a-1", Forbid: true}}
		}, "a-1", ""},
		{"down", func(f *Fleet) { f.Engines[1].Health = 0 }, "a-1", "no capacity"},
		{"unreachable", func(f *Fleet) { f.Latency.RTTMs[0] = float32(math.NaN()) }, "a-1", "not reachable from us-east"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := twoRegions()
			test.change(f)
			c := compile(t, f, CompileOptions{})
			node := slices.IndexFunc(c.Engines, func(e EngineNode) bool { return e.Name == test.engine })
			demand := c.SourceDemand[0] // us-east
			why := string(c.Excluded(demand, node))
			if (test.want == "") != (why == "") || !strings.Contains(why, test.want) {
				t.Errorf("excluded: %q, want %q", why, test.want)
			}
			if got := slices.Contains(c.EligibleEngines(demand), int32(node)); got != (why == "") {
				t.Errorf("EligibleEngines says %v, Excluded says %q", got, why)
			}
		})
	}
}

func TestLatencyLimitsLowerTheUtilization(t *testing.T) {
	f := twoRegions()
	f.Policy.TTFTLimitMs = 140 // holds up to utilization 0.75
	f.Engines[0].TBOTLimitMs = 15
	c := compile(t, f, CompileOptions{})
	if got := c.Engines[0].Limit / c.Engines[0].Capacity; math.Abs(got-0.75) > 1e-12 {
		t.Errorf("a-1 may be planned up to %v, want 0.75", got)
	}
	if got := c.Engines[1].Limit / c.Engines[1].Capacity; math.Abs(got-0.5) > 1e-12 {
		t.Errorf("c-1 may be planned up to %v, want 0.5", got)
	}
	f.Policy.TTFTLimitMs = 70
	want := `engine "a-1": no utilization above 0 keeps ttft_limit_ms 70: its profile "h100-70b" starts at 80 ms`
	if _, err := Compile(f, CompileOptions{}); err == nil || err.Error() != want {
		t.Errorf("a limit below the unloaded latency gives %v, want %s", err, want)
	}
}

func TestBounds(t *testing.T) {
	third, half := 1.0/3, 0.5
	f := twoRegions()
	f.Policy.Classes[0].MaxShare = 0.8
	f.Policy.Classes[0].MaxDomainShare = 0.75
	f.Policy.Rules = []Rule{
		{Name: "rule 1", Cluster: "us-east", Engine: "c-1", MaxShare: &half},
		{Name: "rule 2", Cluster: "us-east", Region: "region-a", MinShare: &third},
	}
	f.Policy.Caps = []Cap{{Name: "cap 1", Region: "region-c", MaxRPS: 50}}
	c := compile(t, f, CompileOptions{})
	if want := []float64{96, 60, 32}; !slices.Equal(c.Upper, want) {
		t.Errorf("upper bounds are %v req/s, want %v", c.Upper, want)
	}
	if len(c.Groups) != 4 { // two domains of us-east, one of us-west, one rule
		t.Fatalf("%d groups, want 4: %v", len(c.Groups), c.Groups)
	}
	rule := c.Groups[slices.IndexFunc(c.Groups, func(g Group) bool { return g.Name == "rule 2" })]
	if rule.MinRPS != 40 || !math.IsInf(rule.MaxRPS, 1) {
		t.Errorf("rule 2 is %v, want a minimum of 40 req/s", rule)
	}
	if len(c.Caps) != 1 || c.Caps[0].MaxWork != 50*2048 {
		t.Errorf("caps are %v, want one of %v work/s", c.Caps, 50*2048)
	}
}

func TestStay(t *testing.T) {
	f := twoRegions()
	f.Demand[1].CachedFraction = 0.5
	f.Demand[1].RequestsPerKey = 4
	c := compile(t, f, CompileOptions{Previous: Previous{{"us-east", "default"}: {"a-1": 0.75, "c-1": 0.25}}})
	if want := []float64{90, 30, 0}; !slices.Equal(c.Stay, want) {
		t.Errorf("stay is %v req/s, want %v", c.Stay, want)
	}
	if want := 0.5 * 1024 * 80 / 1024 / 4; c.StayPenaltyMs[0] != want {
		t.Errorf("leaving a-1 costs %v ms per request, want %v", c.StayPenaltyMs[0], want)
	}
	own := 30.0
	f.Policy.Classes[0].CachePenaltyMs = &own
	c = compile(t, f, CompileOptions{Previous: Previous{{"us-east", "default"}: {"a-1": 1}}})
	if c.StayPenaltyMs[0] != 7.5 {
		t.Errorf("leaving a-1 costs %v ms per request, want 7.5 of the class", c.StayPenaltyMs[0])
	}
}

func TestWorkAuto(t *testing.T) {
	f := twoRegions()
	f.Demand[0].OutputTokens = 1024
	if c := compile(t, f, CompileOptions{}); c.Work != WorkSplit {
		t.Errorf("work is %q, want split: one mix is four times another", c.Work)
	}
	if c := compile(t, f, CompileOptions{SplitPairsMax: 1}); c.Work != WorkSingle || len(c.Warnings) == 0 {
		t.Errorf("work is %q with warnings %q, want single and a warning above the size limit", c.Work, c.Warnings)
	}
	if c := compile(t, f, CompileOptions{Work: WorkSingle}); c.Work != WorkSingle {
		t.Errorf("work is %q, want single as asked", c.Work)
	}
}

func TestWithout(t *testing.T) {
	f := twoRegions()
	f.Policy.Classes[0].MaxShare = 0.8
	c := compile(t, f, CompileOptions{})
	reduced := c.Without(0)
	if want := []int{0, 1, 2}; !slices.Equal(reduced.Row, want) {
		t.Errorf("rows are %v, want %v", reduced.Row, want)
	}
	if want := []int{1, 2}; !slices.Equal(reduced.PairOf, want) {
		t.Errorf("pairs are %v of the whole, want %v", reduced.PairOf, want)
	}
	if !reduced.Shed || reduced.Upper[0] != 96 || c.Pairs() != 3 {
		t.Errorf("reduced problem is %+v", reduced)
	}
	// us-west has c-1 only.
	if alone := c.Without(1); !slices.Equal(alone.SourceOf, []int{0}) || !slices.Equal(alone.Row, []int{0, 1}) {
		t.Errorf("without c-1: sources %v, rows %v, want us-east with one pair", alone.SourceOf, alone.Row)
	}
}

func TestServingAndWiden(t *testing.T) {
	f := twoRegions()
	f.Policy.Classes[0].MaxDomainShare = 0.75
	c := compile(t, f, CompileOptions{})
	part := c.Serving([]float64{0, 30})
	if part.Shed || len(part.Sources) != 1 || part.Sources[0].DemandRPS != 30 || len(part.Groups) != 1 || part.Groups[0].Source != 0 {
		t.Fatalf("serving us-west alone gives %+v", part.Problem)
	}
	whole := part.Widen(c.Problem, &Solution{
		Flows: []Flow{{Pair: 0, RPS: 30}}, ServedRPS: []float64{30}, SourcePriceMs: []float64{7},
		EnginePrice: []float64{0.5, 1}, GroupPriceMs: []float64{3},
	})
	if whole.Flows[0].Pair != 2 || whole.ServedRPS[1] != 30 || whole.GroupPriceMs[2] != 3 {
		t.Errorf("widened to %+v", whole)
	}
	if want := c.CostMs[0] + 0.5*2048; whole.SourcePriceMs[0] != want {
		t.Errorf("the first request of us-east would cost %v ms, want %v at a-1", whole.SourcePriceMs[0], want)
	}
}

func TestIdleSourcesStayOut(t *testing.T) {
	f := twoRegions()
	f.Demand[0].RPS = 0
	c := compile(t, f, CompileOptions{})
	if len(c.Sources) != 1 || len(c.Idle) != 1 || f.Demand[c.Idle[0]].Cluster != "us-west" {
		t.Errorf("sources %v, idle %v", c.Sources, c.Idle)
	}
}
