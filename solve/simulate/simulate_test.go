package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/irb-project/irb/solve/input"
	"github.com/irb-project/irb/solve/simulate/policy"
	"github.com/irb-project/irb/solve/simulate/report"
	"github.com/irb-project/irb/solve/simulate/scenario"
	"github.com/irb-project/irb/solve/simulate/traffic"
)

// load reads a fleet of the examples, with the default scenario.
func load(t testing.TB, fleet string) Input {
	t.Helper()
	in, _, err := Load(input.Paths{Folder: "../../examples/" + fleet}, "")
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func simulate(t testing.TB, in Input, p Policy) *report.Result {
	t.Helper()
	r, err := Run(t.Context(), in, p)
	if err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	return r
}

// hasty is the loop with gains at which it reacts within its own delay.
var hasty = policy.Gains{Gain: 1, Smoothing: 0.3, IntervalS: 15}

// The loop that irb replaces oscillates, irb does not: same seed, same fleet.
// The engines are at 89 % of their capacity.
func TestLoopOscillatesAndIRBDoesNot(t *testing.T) {
	in := load(t, "two-regions-queueing")
	in.Scenario.DurationS = 1000
	loop := simulate(t, in, Policy{Name: "legacy", Gains: hasty})
	if o := loop.Oscillation; o.Swing < 0.2 || o.PeriodS < 2*hasty.IntervalS {
		t.Errorf("the loop swings by %v, want 20 points of share at least", o)
	}
	ours := simulate(t, in, Policy{Name: "irb"})
	if o := ours.Oscillation; o.PeriodS != 0 {
		t.Errorf("irb swings by %v, want none", o)
	}
	if ours.LatencyMs.Mean > 0.8*loop.LatencyMs.Mean {
		t.Errorf("irb's mean latency is %.0f ms, the loop's %.0f", ours.LatencyMs.Mean, loop.LatencyMs.Mean)
	}
	if ours.Offered != loop.Offered {
		t.Errorf("irb met %d requests, the loop %d", ours.Offered, loop.Offered)
	}
}

// The same inputs give the same bytes, for every policy and whatever runs
// beside it.
func TestSameSeedSameBytes(t *testing.T) {
	in := load(t, "evidence/conversations")
	in.Scenario.DurationS, in.Scenario.WarmupS = 120, 30
	in.Scenario.IRB.EveryS = 30
	in.Scenario.Legacy = []policy.Gains{hasty}
	in.Scenario.Events = []scenario.Event{{Kind: scenario.Fail, Engine: "west", Endpoints: 1, AtS: 50, ForS: 20}}
	encode := func(seed uint64, parallel int) string {
		s := *in.Scenario
		s.Seed = seed
		results, err := RunAll(t.Context(), Input{Fleet: in.Fleet, Scenario: &s}, parallel, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(results)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := encode(1, 1)
	if encode(1, 4) != first {
		t.Error("the same seed gives other results")
	}
	if encode(2, 4) == first {
		t.Error("another seed gives the same results")
	}
}

// Fifty solves, each from what agents saw, with noise and a failure: nothing
// oscillates, and what moves is what the plans said.
func TestClosedLoop(t *testing.T) {
	in := load(t, "evidence/conversations")
	s := in.Scenario
	s.DurationS, s.WarmupS, s.CacheTokens, s.Traffic.Scale = 1500, 300, 2_500_000, 0.6
	s.IRB.EveryS, s.IRB.StaleS, s.IRB.Noise = 30, 10, 0.1
	s.Events = []scenario.Event{{Kind: scenario.Fail, Engine: "east", Endpoints: 1, AtS: 700, ForS: 200}}
	r := simulate(t, in, Policy{Name: "irb"})
	if n := len(r.Periods); n < 50 {
		t.Fatalf("%d solves, want 50", n)
	}
	planned, happened := 0.0, 0.0
	for _, p := range r.Periods[10:50] {
		if p.Failed != "" {
			t.Errorf("no plan at %v s: %s", p.AtS, p.Failed)
		}
		planned += p.MovedShare
		happened += p.Moved
	}
	if r.Oscillation.PeriodS != 0 {
		t.Errorf("swings by %v, want none", r.Oscillation)
	}
	// Beside the plans' moves there are those of the lost endpoint: an eighth of
	// all conversations, twice.
	if happened > planned+0.3 || happened < planned/4 {
		t.Errorf("%.3f of the traffic moved in all, the plans said %.3f", happened, planned)
	}
	if lost := r.Lost(); lost > 0.002 {
		t.Errorf("%.4f of the requests were lost, want only streams that the failure broke", lost)
	}
}

// A lost engine costs the top class nothing but what was streaming.
func TestFailover(t *testing.T) {
	in, _, err := Load(input.Paths{Folder: "../../examples/evidence/failover"}, "../../examples/evidence/failover/scenario.toml")
	if err != nil {
		t.Fatal(err)
	}
	in.Scenario.DurationS = 1000
	ours := simulate(t, in, Policy{Name: "irb"})
	if lost := ours.Lost(); lost > 0.005 {
		t.Errorf("%.4f of the top class are lost, want 0.005 at most", lost)
	}
	for _, name := range []string{"nearest", "round-robin", "least-requests", "prequal", "sglang", "llm-d"} {
		r := simulate(t, in, Policy{Name: name})
		if r.Answered+r.Failed+r.Shed != r.Offered {
			t.Errorf("%s: %d offered, %d answered, %d failed, %d shed", name, r.Offered, r.Answered, r.Failed, r.Shed)
		}
		if r.Lost() < ours.Lost() {
			t.Errorf("%s loses %.4f of the top class, irb %.4f: the claim that priorities help is wrong", name, r.Lost(), ours.Lost())
		}
	}
}

// At steady load with one engine every policy is the same, and the latency is
// the profile's.
func TestOneEngineIsItsProfile(t *testing.T) {
	in := load(t, "two-regions-queueing")
	in.Fleet.Engines = in.Fleet.Engines[:1]
	in.Fleet.Demand = in.Fleet.Demand[:1]
	in.Fleet.Demand[0].RPS = 60
	in.Scenario.Traffic.LengthCV = 0
	in.Scenario.DurationS, in.Scenario.WarmupS = 700, 100
	compiled, err := newLayout(in.Fleet, in.Scenario, 64)
	if err != nil {
		t.Fatal(err)
	}
	p := compiled.configs[0].Profile
	want := p.ReferenceMs(0.6) + 2 // round trip
	for _, name := range Names() {
		r := simulate(t, in, Policy{Name: name, Gains: hasty})
		if math.Abs(r.LatencyMs.Mean/want-1) > 0.02 || math.Abs(r.TTFTMs.Mean/(p.TTFT.At(0.6)+2)-1) > 0.05 {
			t.Errorf("%s: TTFT %.1f, latency %.0f ms, want %.1f and %.0f", name, r.TTFTMs.Mean, r.LatencyMs.Mean, p.TTFT.At(0.6)+2, want)
		}
	}
}

// Turns of a trace hit what the turns before left in the cache.
func TestTraceReplay(t *testing.T) {
	var text strings.Builder
	for turn := range 5 {
		ids := make([]string, turn+2)
		for i := range ids {
			ids[i] = fmt.Sprint(i)
		}
		fmt.Fprintf(&text, `{"timestamp": %d, "input_length": %d, "output_length": 10, "hash_ids": [%s]}`+"\n", 20_000*turn, 512*len(ids), strings.Join(ids, ","))
	}
	in := load(t, "two-regions-queueing")
	in.Scenario.WarmupS = 0
	var err error
	if in.Trace, err = traffic.ReadTrace("t", strings.NewReader(text.String())); err != nil {
		t.Fatal(err)
	}
	in.assign()
	// Prompts of 2 to 6 blocks; each finds the one before.
	want := float64(2+3+4+5) / float64(2+3+4+5+6)
	for _, name := range []string{"irb", "nearest", "sglang", "llm-d", "legacy"} {
		r := simulate(t, in, Policy{Name: name, Gains: hasty})
		if r.Offered != 5 || r.Answered != 5 || math.Abs(r.HitRate-want) > 1e-9 || r.MovedShare != 0 {
			t.Errorf("%s: %d of %d answered, hits %.3f, %.2f moved, want 5 of 5, %.3f and 0", name, r.Answered, r.Offered, r.HitRate, r.MovedShare, want)
		}
	}
}

func TestDemandOverTime(t *testing.T) {
	in := load(t, "two-regions-queueing")
	base := in.Fleet.Demand
	then := append(base[:0:0], base...)
	then[0].RPS = 2 * base[0].RPS
	in.Steps = []Step{{AtS: 100, Demand: base}, {AtS: 200, Demand: then}}
	in.Scenario.Events = []scenario.Event{{Kind: scenario.Demand, Cluster: base[1].Cluster, Factor: 3, AtS: 50, ForS: 10}}
	l, err := newLayout(in.Fleet, in.Scenario, 64)
	if err != nil {
		t.Fatal(err)
	}
	d := newDemand(l, in)
	for _, tt := range []struct{ at, first, second float64 }{
		{0, 1, 1}, {55, 1, 3}, {60, 1, 1}, {100, 1, 1}, {150, 1.5, 1}, {200, 2, 1}, {1000, 2, 1},
	} {
		got := d.at(tt.at)
		if got[0].RPS != tt.first*base[0].RPS || got[1].RPS != tt.second*base[1].RPS {
			t.Errorf("at %v s: %v and %v req/s, want %v and %v times %v and %v", tt.at, got[0].RPS, got[1].RPS, tt.first, tt.second, base[0].RPS, base[1].RPS)
		}
	}
}

func TestUnknownPolicy(t *testing.T) {
	_, err := Run(t.Context(), load(t, "two-regions-queueing"), Policy{Name: "magic"})
	if err == nil || !strings.Contains(err.Error(), `policy is "magic", want one of`) {
		t.Errorf("error is %v", err)
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in := load(t, "two-regions-queueing")
	if _, err := Run(ctx, in, Policy{Name: "nearest"}); err != context.Canceled {
		t.Errorf("error is %v, want that of the context", err)
	}
}

func TestSelectLegacy(t *testing.T) {
	loop := func(answered int, latency, swing float64) *report.Result {
		r := &report.Result{Policy: "legacy", Answered: answered, Oscillation: report.Oscillation{Swing: swing}}
		r.LatencyMs.Mean = latency
		return r
	}
	names := func(list []*report.Result) string {
		var b bytes.Buffer
		for _, r := range list {
			fmt.Fprintf(&b, "%s %g; ", r.Policy, r.LatencyMs.Mean)
		}
		return b.String()
	}
	irb := &report.Result{Policy: "irb"}
	for _, tt := range []struct {
		list []*report.Result
		want string
	}{
		{[]*report.Result{loop(1000, 5, 0.1), loop(1000, 6, 0.01), loop(1000, 7, 0), irb}, "legacy, best 5; legacy, stable 6; irb 0; "},
		{[]*report.Result{loop(1000, 5, 0), loop(1000, 6, 0.3), irb}, "legacy, best and stable 5; irb 0; "},
		{[]*report.Result{loop(500, 1, 0), loop(1000, 6, 0), irb}, "legacy, best and stable 6; irb 0; "},
		{[]*report.Result{loop(1000, 5, 0.3), irb}, "legacy, best 5; irb 0; "},
	} {
		if got := names(selectLegacy(tt.list)); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}

// BenchmarkMillion simulates a million requests; the time of one run must stay
// below a minute. Run it with -benchtime 1x.
func BenchmarkMillion(b *testing.B) {
	for _, name := range []string{"nearest", "llm-d", "irb"} {
		b.Run(name, func(b *testing.B) {
			in := load(b, "two-regions-queueing")
			in.Scenario.DurationS, in.Scenario.WarmupS = 1_000_000/160.0, 0
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			requests := 0
			for b.Loop() {
				r, err := Run(context.Background(), in, Policy{Name: name})
				if err != nil {
					b.Fatal(err)
				}
				requests += r.Offered
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(requests)/b.Elapsed().Seconds(), "requests/s")
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(requests), "allocs/request")
		})
	}
}
