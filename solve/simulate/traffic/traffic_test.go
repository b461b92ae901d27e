package traffic

import (
	"math"
	"slices"
	"testing"
)

func all(s Stream) (list []Request) {
	var r Request
	for s.Next(&r) {
		list = append(list, r)
	}
	return list
}

func TestSyntheticHasTheMeansAskedFor(t *testing.T) {
	sources := []Source{{RPS: 20, PromptTokens: 2000, OutputTokens: 100, Turns: 5}, {RPS: 5, PromptTokens: 500, OutputTokens: 50}}
	o := Options{Seed: 3, DurationS: 4000, BlockTokens: 16, LengthCV: 1, ThinkS: 20, AnswerS: 0.02}
	list := all(NewSynthetic(sources, Steady(), o))
	for s, want := range sources {
		var n, prompt, output float64
		keys := map[uint64]bool{}
		for _, r := range list {
			if int(r.Source) == s {
				n++
				prompt += r.PromptTokens
				output += r.OutputTokens
				keys[r.Conversation] = true
			}
		}
		// Conversations come in bunches: 5 % is four standard deviations of the
		// mean prompt, which differs between conversations.
		for _, x := range []struct {
			name      string
			got, want float64
		}{
			{"rate", n / o.DurationS, want.RPS}, {"prompt", prompt / n, want.PromptTokens},
			{"output", output / n, want.OutputTokens}, {"turns", n / float64(len(keys)), max(1, want.Turns)},
		} {
			if math.Abs(x.got/x.want-1) > 0.05 {
				t.Errorf("source %d: %s is %.4g, want %.4g", s, x.name, x.got, x.want)
			}
		}
	}
	if !slices.IsSortedFunc(list, func(a, b Request) int { return int(math.Copysign(1, a.AtS-b.AtS)) }) {
		t.Error("not in order of time")
	}
}

// The turns of a conversation repeat what was said, and come one after another.
func TestTurnsGrow(t *testing.T) {
	o := Options{Seed: 1, DurationS: 2000, BlockTokens: 16, LengthCV: 0, ThinkS: 20, AnswerS: 0.02}
	last := map[uint64]Request{}
	turns := 0
	for _, r := range all(NewSynthetic([]Source{{RPS: 5, PromptTokens: 2000, OutputTokens: 100, Turns: 4}}, Steady(), o)) {
		if was, ok := last[r.Conversation]; ok {
			turns++
			if r.Turn != was.Turn+1 || r.PromptTokens != was.PromptTokens+164 || r.AtS < was.AtS+2 {
				t.Fatalf("turn %d of %v tokens at %.1f s after turn %d of %v at %.1f s", r.Turn, r.PromptTokens, r.AtS, was.Turn, was.PromptTokens, was.AtS)
			}
		}
		last[r.Conversation] = r
	}
	if turns < 1000 {
		t.Errorf("only %d further turns", turns)
	}
}

func TestShape(t *testing.T) {
	shape := Shape{Peak: 3, Factor: func(_ int, at float64) float64 {
		if at < 1000 {
			return 1
		}
		return 3
	}}
	var before, after float64
	for _, r := range all(NewSynthetic([]Source{{RPS: 10, PromptTokens: 10, OutputTokens: 1}}, shape, Options{Seed: 1, DurationS: 2000, BlockTokens: 16})) {
		if r.AtS < 1000 {
			before++
		} else {
			after++
		}
	}
	// Four standard deviations of a Poisson count.
	if math.Abs(before-10_000) > 400 || math.Abs(after-30_000) > 700 {
		t.Errorf("%v requests, then %v, want 10,000 and 30,000", before, after)
	}
}

func TestSameSeedSameTraffic(t *testing.T) {
	sources := []Source{{RPS: 20, PromptTokens: 2000, OutputTokens: 100, Turns: 5}}
	run := func(seed uint64) []Request {
		return all(NewSynthetic(sources, Steady(), Options{Seed: seed, DurationS: 100, BlockTokens: 16, LengthCV: 1, ThinkS: 5}))
	}
	equal := func(a, b []Request) bool {
		return slices.EqualFunc(a, b, func(x, y Request) bool {
			return x.AtS == y.AtS && x.Conversation == y.Conversation && x.PromptTokens == y.PromptTokens
		})
	}
	if !equal(run(1), run(1)) {
		t.Error("the same seed gives other requests")
	}
	if equal(run(1), run(2)) {
		t.Error("another seed gives the same requests")
	}
}
