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

// What is cached at an endpoint that is full moves only to one that has room for
// it without a cache; else one endpoint that is too full fills the next.
func TestFullEndpointsSpillWhereColdPromptsFit(t *testing.T) {
	tests := []struct {
		name   string
		cached float64
		want   float64 // part of the limit, to which others take it in
	}{
		{"no cache", 0, 1},
		// (1024 + 4 x 64) / (102.4 + 4 x 64) = 3.571 times the work.
		{"cached", 0.9, 358.4 / 1280},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			snap := fleet(2, 100, 0.5)
			snap.Sources[0].CachedFraction = tt.cached
			s := Defaults()
			s.Agents = 1
			h := newHand(snap, s)
			limit := float64(h.plan.Endpoint(1, 0).limit.Load())
			away, home := 0, 0
			for ; h.class().Grade(1, 0, 42, false, h.now) == Clear; home++ {
				if h.class().Grade(1, 0, 42, true, h.now) == Clear {
					away++
				}
				h.class().Begin(1, 0, Work{Stream: true}, h.now)
			}
			if float64(home) != limit || float64(away) != math.Ceil(tt.want*limit) {
				t.Errorf("limit %v: takes %d of its own and %d of others, want %v and %v",
					limit, home, away, limit, math.Ceil(tt.want*limit))
			}
		})
	}
}

// A prompt that is at no cache's home is computed whole: that takes longer and
// is more work, and the endpoint is not slow for it.
func TestColdRequestsAreExpectedToTakeLonger(t *testing.T) {
	snap := fleet(1, 100, 0.5)
	snap.Sources[0].CachedFraction = 0.9
	p := New(Defaults(), nil).NewPlan(spec(snap), start)
	warm := p.Class(0).Begin(0, 0, Work{PromptTokens: 1024, Stream: true}, start)
	cold := p.Class(0).Begin(0, 0, Work{PromptTokens: 1024, Stream: true, Cold: true}, start)
	// 80 ms for the 1024 tokens without load, a tenth of that where nine tenths
	// are cached. The reference request is 1024 + 4 x 64 = 1280 token equivalents,
	// the warm one 102.4 + 256 = 358.4 of those.
	if math.Abs(float64(warm.expected-8000)) > 1 || math.Abs(float64(cold.expected-80000)) > 1 {
		t.Errorf("first tokens are expected after %d and %d us, want 8000 and 80000", warm.expected, cold.expected)
	}
	if warm.work != 279 && warm.work != 280 || cold.work != 1000 {
		t.Errorf("work is %d and %d thousandths of a reference request, want 280 (or 279, cut off) and 1000", warm.work, cold.work)
	}
}

// Endpoints that are busier than planned have less room than planned.
func TestMovesFindRoomAtPresentLoad(t *testing.T) {
	p := New(Defaults(), nil).NewPlan(spec(fleet(5, 100, 0.5)), start).peers[0]
	p.members[2].penalty.lost, p.members[2].slow = 0.9, true
	for i := range p.members {
		// At utilization 0.9 a reference request takes 220 + 64 x 22 = 1628 ms, so
		// 0.9 x 100/s x 1.628 s are in progress, four of them in the queue.
		p.members[i].endpoint.running, p.members[i].endpoint.queue = 0.9*100*1.628-4, 4
	}
	weights := p.wanted(start)
	p.limitMoves(start, weights)
	// It would lose 45, by plan; the four others have 10 each.
	if want := 1 - 0.9*40/45; math.Abs(weights[2]-want) > 1e-4 {
		t.Errorf("weight is %.4f, want %.4f", weights[2], want)
	}
}
