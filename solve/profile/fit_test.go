package profile

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func table(v, ttft, tbot []float64) Spec {
	return Spec{Name: "x", PromptTokens: 1024, OutputTokens: 256, Utilization: v, TTFTMs: ttft, TBOTMs: tbot}
}

func TestFitKeepsConvexTables(t *testing.T) {
	straight := []float64{80, 81.1, 82.2, 83.3, 84.4, 85.5}
	for _, s := range []Spec{
		table(ttft70b.V, ttft70b.Ms, tbot70b.Ms),
		table(ttft70b.V, []float64{80, 80, 80, 80, 80, 80}, make([]float64, 6)),
		table([]float64{0, .1, .2, .3, .4, .5}, straight, straight), // not straight in binary
		table([]float64{0}, []float64{3}, []float64{0}),
	} {
		p, err := Fit(s)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(p.TTFT.V, s.Utilization) || !slices.Equal(p.TBOT.V, s.Utilization) ||
			!slices.Equal(p.TTFT.Ms, s.TTFTMs) || !slices.Equal(p.TBOT.Ms, s.TBOTMs) || p.WorstRelError != 0 {
			t.Errorf("got %+v, want the table as it was: %+v", p, s)
		}
	}
}

// TestFitTwice: a fitted curve is convex, so fitting it changes no bit.
func TestFitTwice(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		v, y := noisy(rng, 30, 0.3)
		s := table(v, y, y)
		s.AcceptErrorAbove25 = true
		p, err := Fit(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Fit(table(p.TTFT.V, p.TTFT.Ms, p.TTFT.Ms))
		if err != nil || !slices.Equal(again.TTFT.Ms, p.TTFT.Ms) || again.WorstRelError != 0 {
			t.Fatalf("second fit gives %v (%v), want %v", again.TTFT, err, p.TTFT)
		}
	}
}

func TestFitError(t *testing.T) {
	// TTFT is fitted by 1.2, 1.2, 4: off by 0.8/2 and 0.2/1.
	s := table([]float64{0, 1, 2}, []float64{2, 1, 4}, []float64{1, 2, 3})
	_, err := Fit(s)
	want := `profile "x": ttft_ms is 2 at utilization 0, the nearest convex non-decreasing curve has 1.2 there: off by 40.0 %, want at most 25 % unless the profile accepts it`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	s.AcceptErrorAbove25 = true
	p, err := Fit(s)
	if err != nil || math.Abs(p.WorstRelError-0.4) > 1e-12 {
		t.Errorf("worst relative error is %v (%v), want 0.4", p.WorstRelError, err)
	}
}

func TestFitFormula(t *testing.T) {
	s := Spec{Name: "f", PromptTokens: 100, OutputTokens: 10, TTFTMs: []float64{50}, TBOTMs: []float64{5}, Queueing: "ps"}
	p, err := Fit(s)
	if err != nil || p.ReferenceMs(.5) != 200 {
		t.Errorf("ps: reference latency at 0.5 is %v (%v), want 200", p.ReferenceMs(.5), err)
	}
	s.Queueing = "none"
	p, err = Fit(s)
	if err != nil || p.ReferenceMs(.5) != 100 || p.LatencyMs(.9, 200, 20) != 200 {
		t.Errorf("none: reference latency %v, own latency %v (%v), want 100 and 200", p.ReferenceMs(.5), p.LatencyMs(.9, 200, 20), err)
	}
}

func TestMaxUtilizationFor(t *testing.T) {
	p, err := Fit(table(ttft70b.V, ttft70b.Ms, tbot70b.Ms))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ ttft, tbot, want float64 }{
		{0, 0, math.Inf(1)}, {140, 0, .75}, {0, 15, .5}, {140, 15, .5}, {85, 15, .25}, {1, 0, 0},
	} {
		if got := p.MaxUtilizationFor(tc.ttft, tc.tbot); got != tc.want {
			t.Errorf("limits %v and %v ms hold up to %v, want %v", tc.ttft, tc.tbot, got, tc.want)
		}
	}
}

func TestFitRefuses(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	two := []float64{1, 2}
	for _, tc := range []struct {
		s    Spec
		want []string
	}{
		{Spec{}, []string{"prompt_tokens is 0, want a finite number > 0", "neither a utilization table nor queueing"}},
		{Spec{PromptTokens: nan, OutputTokens: -1, Queueing: "mm1"}, []string{"prompt_tokens is NaN", "output_tokens is -1", `queueing is "mm1", want "ps" or "none"`, "ttft_ms has 0 values, want 1"}},
		{table([]float64{0.1, 0.1}, two, two), []string{"utilization starts at 0.1, want 0", "utilization[1] is 0.1 after 0.1, want rising values"}},
		{table([]float64{0, inf}, two, two), []string{"utilization[1] is +Inf, want a finite number >= 0"}},
		{table([]float64{0, 1}, []float64{1, nan}, []float64{-1, 2, 3}), []string{"ttft_ms[1] is NaN", "tbot_ms has 3 values, want 2", "tbot_ms[0] is -1"}},
		{table([]float64{0, 1}, []float64{5, 0}, two), []string{"ttft_ms: value 1 is 0 in a table that must be fitted"}},
		{Spec{PromptTokens: 1, Queueing: "ps", Utilization: []float64{0}, TTFTMs: []float64{1}, TBOTMs: []float64{1}}, []string{`queueing is "ps" beside a utilization table`}},
	} {
		_, err := Fit(tc.s)
		if err == nil {
			t.Errorf("%+v accepted, want %q", tc.s, tc.want)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q lacks %q", err, want)
			}
		}
	}
}
