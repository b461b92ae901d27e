package engine

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/irb-project/irb/solve/profile"
	"github.com/irb-project/irb/solve/simulate/kv"
)

func fit(t testing.TB, s profile.Spec) profile.Profile {
	t.Helper()
	p, err := profile.Fit(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// measured are means of a run, in ms.
type measured struct {
	ttft, latency float64
	refused       int
}

// load runs an engine under a Poisson process of jobs.
func load(t testing.TB, c Config, rps float64, n int, size func(r *rand.Rand) (prompt, output float64)) measured {
	t.Helper()
	c.BlockTokens, c.OutputTokenWork = 16, 4
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, 7))
	began := make([]float64, n)
	var m measured
	done := 0.0
	handle := func() {
		at := e.Due()
		x := e.Step()
		if x.First {
			m.ttft += at - began[x.ID]
			return
		}
		m.latency += at - began[x.ID]
		done++
	}
	now := 0.0
	for i := range n {
		now += rng.ExpFloat64() / rps
		for e.Due() <= now {
			handle()
		}
		prompt, output := size(rng)
		began[i] = now
		if !e.Submit(Job{ID: int32(i), PromptTokens: prompt, OutputTokens: output, Prefix: &kv.Prefix{}}, now) {
			m.refused++
		}
	}
	for !math.IsInf(e.Due(), 1) {
		handle()
	}
	m.ttft *= 1000 / done
	m.latency *= 1000 / done
	return m
}

func fixed(prompt, output float64) func(*rand.Rand) (float64, float64) {
	return func(*rand.Rand) (float64, float64) { return prompt, output }
}

// lognormal sizes with a coefficient of variation of 1.
func lognormal(prompt, output float64) func(*rand.Rand) (float64, float64) {
	sigma := math.Sqrt(math.Log(2))
	return func(r *rand.Rand) (float64, float64) {
		x := func(mean float64) float64 { return mean * math.Exp(sigma*r.NormFloat64()-sigma*sigma/2) }
		return x(prompt), x(output)
	}
}

// M/G/1-PS: with T(0) of one service time the engine is one server, and the
// mean latency is T(0)/(1-v) whatever the distribution of sizes (Kleinrock,
// Queueing Systems 2, 4.4).
func TestAgreesWithTheory(t *testing.T) {
	p := fit(t, profile.Spec{Name: "ps", PromptTokens: 100, OutputTokens: 10, TTFTMs: []float64{50}, TBOTMs: []float64{5}, Queueing: "ps"})
	for _, v := range []float64{0.3, 0.6, 0.8} {
		want := 100 / (1 - v)
		for name, size := range map[string]func(*rand.Rand) (float64, float64){
			"fixed": fixed(100, 10), "lognormal": lognormal(100, 10),
		} {
			got := load(t, Config{Profile: p, CapacityRPS: 10}, 10*v, 300_000, size)
			if math.Abs(got.latency/want-1) > 0.03 || got.refused > 30 {
				t.Errorf("utilization %v, %s sizes: mean latency %.1f ms, want %.1f; %d refused", v, name, got.latency, want, got.refused)
			}
		}
	}
}

// At steady load the mean is the profile's, for engines that run many requests
// at a time as for those that run few. Close to full load it is above a table
// that is finite there, as it must be.
func TestAgreesWithProfile(t *testing.T) {
	p := fit(t, profile.Spec{
		Name: "70b", PromptTokens: 1024, OutputTokens: 256, Utilization: []float64{0, 0.25, 0.5, 0.75, 0.9, 1},
		TTFTMs: []float64{80, 85, 100, 140, 220, 400}, TBOTMs: []float64{12, 13, 15, 18, 22, 30},
	})
	for _, capacity := range []float64{3, 30} {
		for _, v := range []float64{0.1, 0.4, 0.7, 0.85} {
			got := load(t, Config{Profile: p, CapacityRPS: capacity}, capacity*v, 200_000, fixed(1024, 256))
			if math.Abs(got.latency/p.ReferenceMs(v)-1) > 0.03 || math.Abs(got.ttft/p.TTFT.At(v)-1) > 0.08 {
				t.Errorf("capacity %v, utilization %v: TTFT %.1f, latency %.0f ms, the profile says %.1f and %.0f",
					capacity, v, got.ttft, got.latency, p.TTFT.At(v), p.ReferenceMs(v))
			}
		}
	}
}

// Work, not the number of requests, fills an engine: half the prompts cached,
// it carries more requests at the utilization that the plan reckons with.
func TestCapacityIsWork(t *testing.T) {
	p := fit(t, profile.Spec{
		Name: "p", PromptTokens: 1000, OutputTokens: 100, Utilization: []float64{0, 0.5, 1},
		TTFTMs: []float64{100, 200, 500}, TBOTMs: []float64{10, 15, 30},
	})
	// (500 + 4 x 100) / (1000 + 4 x 100) of the work: 0.8 of capacity is 24.9 req/s.
	rps := 0.8 * 20 * 1400 / 900
	got := load(t, Config{Profile: p, CapacityRPS: 20}, rps, 60_000, fixed(500, 100))
	want := p.LatencyMs(0.8, 500, 100)
	if math.Abs(got.latency/want-1) > 0.05 || got.refused > 0 {
		t.Errorf("latency %.0f ms, want %.0f as at utilization 0.8; %d refused", got.latency, want, got.refused)
	}
}

// Above capacity as much is served as the capacity says, and the rest refused.
func TestOverload(t *testing.T) {
	p := fit(t, profile.Spec{
		Name: "p", PromptTokens: 1000, OutputTokens: 100, Utilization: []float64{0, 0.5, 1},
		TTFTMs: []float64{100, 200, 500}, TBOTMs: []float64{10, 15, 30},
	})
	const n = 20_000
	got := load(t, Config{Profile: p, CapacityRPS: 20}, 40, n, fixed(1000, 100))
	if served := 1 - float64(got.refused)/n; math.Abs(served-0.5) > 0.02 {
		t.Errorf("%.3f of twice the capacity is served, want half", served)
	}
}

func TestCachedPromptIsQuick(t *testing.T) {
	p := fit(t, profile.Spec{Name: "p", PromptTokens: 1000, OutputTokens: 100, TTFTMs: []float64{100}, TBOTMs: []float64{10}, Queueing: "none"})
	e, err := New(Config{Profile: p, CapacityRPS: 10, OutputTokenWork: 4, BlockTokens: 10})
	if err != nil {
		t.Fatal(err)
	}
	one := &kv.Prefix{Conversation: 5}
	turn := func(now, prompt float64) (ttft, latency, cached float64) {
		if !e.Submit(Job{PromptTokens: prompt, OutputTokens: 100, Prefix: one}, now) {
			t.Fatal("refused")
		}
		ttft = e.Due() - now
		cached = e.Step().CachedTokens
		latency = e.Due() - now
		e.Step()
		return ttft, latency, cached
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
	if ttft, latency, cached := turn(0, 1000); !near(ttft, 0.1) || !near(latency, 1.1) || cached != 0 {
		t.Errorf("first turn: TTFT %v, latency %v, %v cached, want 0.1, 1.1 and 0", ttft, latency, cached)
	}
	// 1,100 of 1,200 tokens are there: 100 are left to compute.
	if ttft, _, cached := turn(10, 1200); !near(ttft, 0.01) || cached != 1100 {
		t.Errorf("second turn: TTFT %v with %v cached, want 0.01 with 1100", ttft, cached)
	}
	// A prompt that is there in full still computes one token.
	if ttft, _, cached := turn(20, 1200); !near(ttft, 0.0001) || cached != 1199 {
		t.Errorf("the same again: TTFT %v with %v cached, want 0.0001 with 1199", ttft, cached)
	}
	e.Fail(30, func(int32) { t.Error("lost a job that was done") })
	if _, _, cached := turn(30, 1200); cached != 0 {
		t.Errorf("%v tokens survived a failure", cached)
	}
}

func TestFaults(t *testing.T) {
	p := fit(t, profile.Spec{Name: "p", PromptTokens: 1000, OutputTokens: 100, TTFTMs: []float64{100}, TBOTMs: []float64{10}, Queueing: "none"})
	e, err := New(Config{Profile: p, CapacityRPS: 10, OutputTokenWork: 4, BlockTokens: 10})
	if err != nil {
		t.Fatal(err)
	}
	job := Job{PromptTokens: 1000, OutputTokens: 100, Prefix: &kv.Prefix{}}
	e.Submit(job, 0)
	e.Degrade(3, 1, 0.05) // half the prefill is left, which takes 0.15 s now
	if at := e.Due(); math.Abs(at-0.2) > 1e-9 {
		t.Errorf("the first token is due at %v, want 0.2", at)
	}
	lost := 0
	for i := range 50 {
		job.ID = int32(i + 1)
		e.Submit(job, 0.1)
	}
	if e.Waiting() == 0 {
		t.Error("nothing waits behind 51 jobs")
	}
	in := e.Running() + e.Waiting()
	e.Fail(0.1, func(int32) { lost++ })
	if lost != in || e.Running() != 0 || e.Waiting() != 0 || !math.IsInf(e.Due(), 1) || e.Usage() != 0 {
		t.Errorf("%d of %d jobs lost, %d run, %d wait, due at %v, usage %v", lost, in, e.Running(), e.Waiting(), e.Due(), e.Usage())
	}
}

func TestConfigIsChecked(t *testing.T) {
	p := fit(t, profile.Spec{Name: "p", PromptTokens: 1000, OutputTokens: 100, TTFTMs: []float64{100}, TBOTMs: []float64{10}, Queueing: "none"})
	for _, c := range []Config{{Profile: p, BlockTokens: 1}, {Profile: p, CapacityRPS: math.Inf(1), BlockTokens: 1}, {CapacityRPS: 1, BlockTokens: 1}, {Profile: p, CapacityRPS: 1}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

// BenchmarkEngine measures a whole request: submit, first token, end.
func BenchmarkEngine(b *testing.B) {
	p := fit(b, profile.Spec{Name: "p", PromptTokens: 1000, OutputTokens: 100, TTFTMs: []float64{100}, TBOTMs: []float64{10}, Queueing: "ps"})
	e, err := New(Config{Profile: p, CapacityRPS: 100, OutputTokenWork: 4, BlockTokens: 64})
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	prefix := make([]kv.Prefix, 1000)
	for i := range prefix {
		prefix[i].Conversation = uint64(i) + 1
	}
	b.ReportAllocs()
	now := 0.0
	for b.Loop() {
		now += rng.ExpFloat64() / 70
		for e.Due() <= now {
			e.Step()
		}
		e.Submit(Job{PromptTokens: 1000, OutputTokens: 100, Prefix: &prefix[rng.IntN(len(prefix))]}, now)
	}
}
