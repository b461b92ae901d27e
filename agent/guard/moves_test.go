package guard

import (
	"math"
	"testing"

	"github.com/irb-project/irb/agent/signal"
)

// What a slow endpoint loses must find room at the others, and where its
// conversations are cached, room for prompts without a cache.
func TestMovesFindRoom(t *testing.T) {
	tests := []struct {
		name        string
		utilization float64
		cached      float64
		want        float64 // weight left of 0.1
	}{
		// The peers' free 4 x 50 take the 45 that it loses.
		{"room", 0.5, 0, 0.1},
		// It would lose 81 of its 90; the peers have 4 x 10.
		{"nearly full", 0.9, 0, 1 - 40.0/90},
		// (1024 + 256) / (102.4 + 256) = 3.57 times the work where there is no
		// cache: 161 for the 45, beside 200 free; at 0.7, 225 beside 120.
		{"cached, room", 0.5, 0.9, 0.1},
		{"cached, less room", 0.7, 0.9, 1 - 120.0/(3.571428571*70)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			snap := fleet(5, 100, tt.utilization)
			snap.Sources[0].CachedFraction = tt.cached
			p := New(Defaults(), nil).NewPlan(spec(snap), start).peers[0]
			p.members[2].penalty.lost, p.members[2].slow = 0.9, true
			weights := p.wanted(start)
			p.limitMoves(start, weights)
			if math.Abs(weights[2]-tt.want) > 1e-6 {
				t.Errorf("weight is %.4f, want %.4f", weights[2], tt.want)
			}
			p.members[2].slow = false // faults: no matter whether there is room
			if weights = p.wanted(start); math.Abs(weights[2]-0.1) > 1e-9 {
				t.Errorf("weight of a faulty one is %.4f, want 0.1", weights[2])
			}
		})
	}
}

// Of the requests that wait, those that miss the cache wait longest: their age
// is no sign of a slow endpoint.
func TestCacheMissesAreNotOverdue(t *testing.T) {
	snap := fleet(1, 100, 0.5)
	snap.Sources[0].CachedFraction = 0.9
	g := New(Defaults(), nil)
	plan := g.NewPlan(spec(snap), start)
	at := plan.Endpoint(0, 0)
	at.Observe(signal.Report{Running: 0, Waiting: 0, KVUsage: signal.Unknown()}, start)
	g.Tick(start)
	for range 5 {
		plan.Class(0).Begin(0, 0, Work{PromptTokens: 1024, Stream: true}, start)
	}
	// 80 ms without load for the whole prompt, 8 for the tenth that is not cached.
	if n, ratio := at.overdue(start.Add(82 * 1e6)); n != 5 || math.Abs(ratio-1) > 0.1 {
		t.Errorf("%d requests are %.2f times overdue, want 5 that are due now", n, ratio)
	}
}
