package model

import (
	"math"
	"testing"

	"github.com/irb-project/irb/solve/profile"
)

// TestSplitSinks: for 1024 prompt and 256 output tokens at 4 units of work
// each, prompt tokens alone reach the work limit at twice their part of the
// reference mix; by processor sharing they end at max utilization.
func TestSplitSinks(t *testing.T) {
	for _, tc := range []struct {
		queueing         string
		prompts, outputs float64 // limits, tokens/s
	}{
		{"none", 0.9 * 10 * 2048, 0.9 * 10 * 512},
		{"ps", 0.9 * 10 * 1024, 0.9 * 10 * 256},
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
	}
}
