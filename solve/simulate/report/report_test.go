package report

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/irb-project/irb/solve/simulate/irb"
	"github.com/irb-project/irb/solve/simulate/policy"
	"github.com/irb-project/irb/solve/simulate/traffic"
)

// sampled makes bins whose first engine's share follows a function of time, as
// Poisson arrivals of a rate show it.
func sampled(n int, perBin float64, share func(t float64) float64) []Bin {
	rng := rand.New(rand.NewPCG(5, 5))
	bins := make([]Bin, n)
	for i := range bins {
		p := share(float64(i) * BinS)
		bins[i].Sent = make([]int, 2)
		for t := rng.ExpFloat64() / perBin; t < 1; t += rng.ExpFloat64() / perBin {
			e := 1
			if rng.Float64() < p {
				e = 0
			}
			bins[i].Sent[e]++
		}
	}
	return bins
}

func TestOscillation(t *testing.T) {
	sine := func(amplitude, period float64) func(float64) float64 {
		return func(t float64) float64 { return 0.5 + amplitude*math.Sin(2*math.Pi*t/period) }
	}
	tests := []struct {
		name          string
		share         func(float64) float64
		swing, period float64 // 0: none
	}{
		{"steady", func(float64) float64 { return 0.5 }, 0, 0},
		{"trend", func(t float64) float64 { return 0.3 + t/20000 }, 0, 0},
		{"one step", func(t float64) float64 {
			if t > 2000 {
				return 0.8
			}
			return 0.5
		}, 0, 0},
		{"fast", sine(0.2, 60), 0.4, 60},
		{"slow", sine(0.1, 300), 0.2, 300},
		{"square", func(t float64) float64 {
			if math.Mod(t, 120) < 60 {
				return 0.9
			}
			return 0.1
		}, 0.8, 120},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := oscillation(sampled(360, 400, tt.share), []string{"a", "b"})
			// A square's peak-to-peak is less than that of a sine of its variance.
			if math.Abs(got.PeriodS-tt.period) > 10 || got.Swing < 0.85*tt.swing || got.Swing > 1.5*tt.swing+1e-9 {
				t.Errorf("%v, want a swing of %v in %v s", got, tt.swing, tt.period)
			}
		})
	}
}

func TestQuantiles(t *testing.T) {
	list := make([]float32, 200)
	for i := range list {
		list[i] = float32(200 - i)
	}
	if got, want := quantiles(list), (Quantiles{Mean: 100.5, P50: 100, P99: 198}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := quantiles(nil); got != (Quantiles{}) {
		t.Errorf("%+v of nothing", got)
	}
}

// A hand-worked run of four requests.
func TestCollector(t *testing.T) {
	k := NewCollector(Config{
		DurationS: 100, WarmupS: 10, TTFTMs: 500, TBOTMs: 20, PeriodS: 50,
		Engines: []string{"a", "b"}, EngineOf: []int32{0, 1}, PrefillMs: []float64{0.1, 0.2},
		Classes: []Class{{Name: "gold", Priority: 1}, {Name: "bulk"}}, ClassOf: []int{0, 1},
	})
	request := func(at float64, source, turn int32, prompt float64) *policy.Flight {
		f := &policy.Flight{Request: traffic.Request{AtS: at, Source: source, Turn: turn, Conversation: 7, PromptTokens: prompt, OutputTokens: 100}}
		k.Offered(f)
		return f
	}
	answer := func(f *policy.Flight, endpoint int32, ttft, latency, cached float64) {
		f.Endpoint, f.Attempts, f.CachedTokens = endpoint, f.Attempts+1, cached
		k.Sent(f, f.Request.AtS)
		f.FirstS = f.Request.AtS + ttft
		k.Answered(f, f.Request.AtS+latency)
	}
	answer(request(5, 0, 0, 1000), 0, 1, 2, 0)      // in the warm-up
	answer(request(20, 0, 1, 1200), 0, 0.1, 2, 900) // good: 19 ms a token
	moved := request(60, 0, 2, 1500)                // one retry; b has nothing of 1300 tokens
	moved.Attempts = 1
	answer(moved, 1, 0.4, 4.4, 0) // 40 ms a token: not good
	k.Refused(request(70, 1, 0, 10), policy.Shed)
	k.Refused(request(80, 0, 0, 10), policy.Fail)
	r := k.Result("x", "", []irb.Period{{AtS: 0}, {AtS: 50}})
	if r.Offered != 4 || r.Answered != 2 || r.Shed != 1 || r.Failed != 1 || r.Retries != 1 {
		t.Errorf("%d offered, %d answered, %d shed, %d failed, %d retries, want 4, 2, 1, 1, 1", r.Offered, r.Answered, r.Shed, r.Failed, r.Retries)
	}
	near := func(name string, got, want float64) {
		if math.Abs(got-want) > 1e-6*max(1, math.Abs(want)) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	near("TTFT", r.TTFTMs.Mean, 250)
	near("latency", r.LatencyMs.Mean, 3200)
	near("goodput", r.Goodput, 0.25)
	near("hits", r.HitRate, 900.0/2700)
	near("moved", r.MovedShare, 0.5)
	near("lost of gold", r.Lost(), 1.0/3)
	// 1200 + 100 tokens were at a, and cost 0.2 ms each at b, in 50 s.
	near("recomputed", r.Periods[1].RecomputeMsPerS, 1300*0.2/50)
	near("moved in the first period", r.Periods[0].Moved, 0)
	near("moved in the second", r.Periods[1].Moved, 1)
	if r.Bins[2].Sent[0] != 1 || r.Bins[6].Sent[1] != 1 || r.Bins[7].Shed != 1 {
		t.Errorf("bins %+v", r.Bins)
	}
}

func TestTables(t *testing.T) {
	r := &Result{Policy: "irb", Note: "as set", Offered: 100, Answered: 95, Shed: 5, TTFTMs: Quantiles{Mean: 123.4}, Oscillation: Oscillation{Swing: 0.123, PeriodS: 140}}
	var text, md strings.Builder
	if err := Table(&text, []*Result{r}); err != nil {
		t.Fatal(err)
	}
	if err := Markdown(&md, []*Result{r}); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), md.String()} {
		for _, want := range []string{"policy", "irb", "123", "12.3 % in 140 s", "5.0 %"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
	}
	if lines := strings.Count(md.String(), "\n"); lines != 3 {
		t.Errorf("%d lines of Markdown, want 3", lines)
	}
	if !strings.HasSuffix(text.String(), "\nirb: as set\n") {
		t.Errorf("the settings are not said in\n%s", text.String())
	}
	r.Answered = 0
	if _, rows := Cells([]*Result{r}); rows[0][1] != "-" || rows[0][6] != "-" {
		t.Errorf("%q, want no latency where nothing was answered", rows[0])
	}
}
