package reason

import (
	"math"
	"strings"
	"testing"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
)

// twoRegions is a fleet whose optimum is known by hand: us-east 120 req/s, 2 ms
// from a-1 (100 req/s) and 65 ms from c-1 (80 req/s); us-west 40 req/s, 2 ms
// from c-1.
func twoRegions(t *testing.T, spec profile.Spec, maxUtilization float64) *model.Compiled {
	t.Helper()
	spec.Name, spec.PromptTokens, spec.OutputTokens = "p", 1024, 256
	nan := float32(math.NaN())
	c, err := model.Compile(&model.Fleet{
		Policy: model.Policy{
			Fleet: "test", MaxUtilization: maxUtilization, OutputTokenWork: 4, RoundTrips: 1,
			FailureDomain: "region", Classes: []model.Class{{Name: "default"}},
		},
		Profiles: []profile.Spec{spec},
		Engines: []model.Engine{
			{Name: "a-1", Region: "region-a", Profile: "p", CapacityRPS: 100, Health: 1},
			{Name: "c-1", Region: "region-c", Profile: "p", CapacityRPS: 80, Health: 1},
		},
		Demand: []model.Demand{
			{Cluster: "us-east", Class: "default", RPS: 120, PromptTokens: 1024, OutputTokens: 256, RequestsPerKey: 1},
			{Cluster: "us-west", Class: "default", RPS: 40, PromptTokens: 1024, OutputTokens: 256, RequestsPerKey: 1},
		},
		Latency: model.Latency{
			From: []string{"us-east", "us-west"}, To: []string{"region-a", "region-c"},
			RTTMs: []float32{2, 65, nan, 2},
		},
	}, model.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// flatPlan is the talk's case: no queueing, limits at full capacity.
func flatPlan(t *testing.T) *Reader {
	c := twoRegions(t, profile.Spec{TTFTMs: []float64{80}, TBOTMs: []float64{12}, Queueing: "none"}, 1)
	base := 80 + 256*12.0
	return NewReader(c, &model.Solution{
		Flows:         []model.Flow{{Pair: 0, RPS: 100}, {Pair: 1, RPS: 20}, {Pair: 2, RPS: 40}},
		ServedRPS:     []float64{120, 40},
		SourcePriceMs: []float64{base + 65, base + 2},
		EnginePrice:   []float64{63 / 2048.0, 0},
	})
}

// queueingPlan has the loads at which 2 + 14720 v_a = 65 + 14720 v_c.
func queueingPlan(t *testing.T) *Reader {
	c := twoRegions(t, profile.Spec{
		Utilization: []float64{0, 0.25, 0.5, 0.75, 0.9, 1},
		TTFTMs:      []float64{80, 85, 100, 140, 220, 400},
		TBOTMs:      []float64{12, 13, 15, 18, 22, 30},
	}, 0.9)
	// v_a - v_c = 63/14720 and 100 v_a + 80 v_c = 160
	va := (160 + 80*63/14720.0) / 180
	vc := va - 63/14720.0
	_, pa := c.Engines[0].Delay.Marginal(va * c.Engines[0].Capacity)
	_, pc := c.Engines[1].Delay.Marginal(vc * c.Engines[1].Capacity)
	return NewReader(c, &model.Solution{
		Flows:         []model.Flow{{Pair: 0, RPS: 100 * va}, {Pair: 1, RPS: 80*vc - 40}, {Pair: 2, RPS: 40}},
		ServedRPS:     []float64{120, 40},
		SourcePriceMs: []float64{c.CostMs[0] + 2048*pa, c.CostMs[2] + 2048*pc},
		EnginePrice:   []float64{pa, pc},
	})
}

func TestCostsSumToThePrice(t *testing.T) {
	for name, r := range map[string]*Reader{"flat": flatPlan(t), "queueing": queueingPlan(t)} {
		for s := range r.c.Sources {
			for _, f := range r.Flows(s) {
				if cost := r.Cost(s, f.Pair); math.Abs(cost.Total-r.sol.SourcePriceMs[s]) > 1e-6 {
					t.Errorf("%s: pair %d costs %v ms, the price of its source is %v", name, f.Pair, cost, r.sol.SourcePriceMs[s])
				}
			}
		}
	}
}

func TestLimitPriceOfTheFlatCase(t *testing.T) {
	r := flatPlan(t)
	if cost := r.Cost(0, 0); math.Abs(cost.Limit-63) > 1e-9 || cost.Delay != 0 || cost.Externality != 0 {
		t.Errorf("a-1 costs %+v, want a limit price of 63 ms and no delay", cost)
	}
	used, unused := r.Options(0, 3)
	weights := r.Weights(0, used, unused)
	if weights[0].Code != CodeAtLimit || weights[1].Code != CodeSpill {
		t.Errorf("codes are %q and %q", weights[0].Code, weights[1].Code)
	}
	for _, want := range []string{"a-1 is at its limit (100 of 100 req/s)", "a-1 3154 unloaded + 63 limit price", "c-1 3217"} {
		if !strings.Contains(weights[0].Text, want) {
			t.Errorf("the reason of a-1 lacks %q: %s", want, weights[0].Text)
		}
	}
	if got := weights[0].Fraction + weights[1].Fraction; math.Abs(got-1) > 1e-15 {
		t.Errorf("fractions sum to %v", got)
	}
}

func TestSpillingBeforeTheEngineIsFull(t *testing.T) {
	r := queueingPlan(t)
	used, unused := r.Options(0, 3)
	weights := r.Weights(0, used, unused)
	if weights[0].Code != CodeQueueing {
		t.Fatalf("code of a-1 is %q, want %q: %s", weights[0].Code, CodeQueueing, weights[0].Text)
	}
	for _, want := range []string{"not filled to its limit (89.0791 of 90 req/s)", "delay the others"} {
		if !strings.Contains(weights[0].Text, want) {
			t.Errorf("the reason of a-1 lacks %q: %s", want, weights[0].Text)
		}
	}
	if math.Abs(weights[0].RPS-89.0791) > 5e-5 || math.Abs(weights[1].RPS-30.9209) > 5e-5 {
		t.Errorf("us-east sends %v and %v req/s, want 89.0791 and 30.9209", weights[0].RPS, weights[1].RPS)
	}
}

// An engine that carries nothing for the source may be faster without load, as
// b-1 here, whose room is priced at 100 ms; then a-1 is not called the fastest.
func TestTheFastestInUseIsNotCalledTheFastest(t *testing.T) {
	nan := float32(math.NaN())
	for _, test := range []struct {
		name string
		rtt  float32
		want string
	}{
		{"faster", 1, "a-1, the fastest in use without load, is at its limit"},
		{"slower", 3, "a-1, the fastest without load, is at its limit"},
		{"out of reach", nan, "a-1, the fastest without load, is at its limit"},
	} {
		c := twoRegions(t, profile.Spec{TTFTMs: []float64{80}, TBOTMs: []float64{12}, Queueing: "none"}, 1)
		fleet := *c.Fleet
		fleet.Engines = append(fleet.Engines, model.Engine{Name: "b-1", Region: "region-b", Profile: "p", CapacityRPS: 10, Health: 1})
		fleet.Latency = model.Latency{
			From: []string{"us-east", "us-west"}, To: []string{"region-a", "region-b", "region-c"},
			RTTMs: []float32{2, test.rtt, 65, nan, 2, 2},
		}
		c, err := model.Compile(&fleet, model.CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		prices := map[string]float64{"a-1": 63 / 2048.0, "b-1": 100 / 2048.0, "c-1": 0}
		rates := []map[string]float64{{"a-1": 100, "c-1": 20}, {"b-1": 10, "c-1": 30}}
		sol := &model.Solution{ServedRPS: []float64{120, 40}, SourcePriceMs: []float64{3152 + 65, 3152 + 2}}
		for _, e := range c.Engines {
			sol.EnginePrice = append(sol.EnginePrice, prices[e.Name])
		}
		for s := range c.Sources {
			for k := c.Row[s]; k < c.Row[s+1]; k++ {
				if rps := rates[s][c.Engines[c.Col[k]].Name]; rps > 0 {
					sol.Flows = append(sol.Flows, model.Flow{Pair: k, RPS: rps})
				}
			}
		}
		r := NewReader(c, sol)
		used, unused := r.Options(0, 3)
		if text := r.Weights(0, used, unused)[1].Text; !strings.Contains(text, test.want) {
			t.Errorf("%s: the reason of c-1 lacks %q: %s", test.name, test.want, text)
		}
	}
}

func TestOnlyEligible(t *testing.T) {
	r := flatPlan(t)
	used, unused := r.Options(1, 3)
	w := r.Weights(1, used, unused)[0]
	if w.Code != CodeOnlyEligible || w.Fraction != 1 {
		t.Errorf("us-west has %+v, want the only eligible engine", w)
	}
}

func TestAlternativeLosesByItsReducedCost(t *testing.T) {
	r := flatPlan(t)
	r.sol.Flows = []model.Flow{{Pair: 0, RPS: 90}, {Pair: 2, RPS: 40}}
	r.sol.EnginePrice[0] = 0
	r.sol.SourcePriceMs[0] = r.c.CostMs[0]
	r = NewReader(r.c, r.sol)
	used, unused := r.Options(0, 3)
	a := r.Alternatives(0, used, unused)
	if len(a) != 1 || math.Abs(a[0].LosesByMs-63) > 1e-9 || a[0].Code != CodeLoses {
		t.Fatalf("alternatives are %+v, want c-1 losing by 63 ms", a)
	}
	if !strings.Contains(a[0].Text, "c-1 loses by 63 ms: against a-1 network +63") {
		t.Errorf("reason is %q", a[0].Text)
	}
}

func TestCacheTermAndItsInterval(t *testing.T) {
	r := flatPlan(t)
	r.c.Stay = []float64{110, 0, 40}
	r.c.StayPenaltyMs = []float64{10, 0, 10}
	// Below what it had: one more request there saves a cache.
	if cost := r.Cost(0, 0); cost.Cache != -10 {
		t.Errorf("cache term is %v ms, want -10", cost.Cache)
	}
	// Exactly what it had: the term lies in [-10, 0] and closes the cost.
	r.sol.SourcePriceMs[1] -= 4
	if cost := r.Cost(1, 2); math.Abs(cost.Cache+4) > 1e-9 || math.Abs(cost.Total-r.sol.SourcePriceMs[1]) > 1e-9 {
		t.Errorf("cost is %+v, want a cache term of -4 ms that closes it", cost)
	}
}
