package model

import (
	"math"
	"testing"

	"github.com/irb-project/irb/solve/profile"
)

// TestSplitSinks: for 1024 prompt and 256 output tokens at 4 units of work
// each, prompt tokens alone reach the work limit at twice their part of the
// reference mix, whatever the profile: the joint limit is the only one. Processor
// sharing goes on from max utilization with its slope there.
func TestSplitSinks(t *testing.T) {
	for _, tc := range []struct {
		queueing         string
		prompts, outputs float64 // limits, tokens/s
		ttft             float64 // what it adds to that of the reference prompt there, ms
	}{
		{"none", 0.9 * 10 * 2048, 0.9 * 10 * 512, 0},
		// 80/(1-v) - 80 is 720 at 0.9, its slope 80/(1-v)² is 8000, and 1.8 - 0.9 is 0.9.
		{"ps", 0.9 * 10 * 2048, 0.9 * 10 * 512, 720 + 8000*0.9},
	} {
		p, err := profile.Fit(profile.Spec{
			Name: "p", PromptTokens: 1024, OutputTokens: 256,
			TTFTMs: []float64{80}, TBOTMs: []float64{12}, Queueing: tc.queueing,
		})
		if err != nil {
			t.Fatal(err)
		}
		e := EngineNode{ReferenceWork: 2048, Capacity: 10 * 2048, Limit: 0.9 * 10 * 2048}
		if err := e.addSplitSinks(p, 4); err != nil {
			t.Fatal(err)
		}
		if math.Abs(e.Prefill.Limit-tc.prompts) > 1e-9 || math.Abs(e.Output.Limit-tc.outputs) > 1e-9 {
			t.Errorf("%s: limits %v and %v tokens/s, want %v and %v", tc.queueing, e.Prefill.Limit, e.Output.Limit, tc.prompts, tc.outputs)
		}
		if got := 1024 * e.Prefill.Delay(e.Prefill.Limit); math.Abs(got-tc.ttft) > 1e-9*tc.ttft {
			t.Errorf("%s: TTFT grows by %v ms, want %v", tc.queueing, got, tc.ttft)
		}
	}
}
