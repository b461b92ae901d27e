package guard

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/irb-project/irb/agent/signal"
	"github.com/irb-project/irb/agent/snapshot"
)

// TestNothingSeenNothingChanges: a guard that sees nothing follows the plan.
func TestNothingSeenNothingChanges(t *testing.T) {
	h := newHand(fleet(3, 100, 0.6), Defaults())
	h.pass(time.Minute)
	for e := range 3 {
		if clear, _, _ := h.grades(e); clear != 1000 || h.class().Stay()[e] != stayAll {
			t.Errorf("engine %d keeps %d of 1000 keys", e, clear)
		}
	}
	if len(h.changes) > 0 {
		t.Errorf("changes: %v", h.changes)
	}
}

// TestWhySpared: the word for the log is the reason of the grade.
func TestWhySpared(t *testing.T) {
	fault := func(h *hand) {
		for range Defaults().ConsecutiveFaults {
			h.answer(0, time.Millisecond, Fault)
		}
		h.Tick(h.now)
	}
	refuse := func(after time.Duration) func(h *hand) {
		return func(h *hand) {
			a := h.class().Begin(0, 0, Work{}, h.now)
			a.End(Ending{Outcome: Pushback, RetryAfter: after}, h.now)
		}
	}
	fill := func(h *hand) {
		for h.class().Grade(0, 0, 1, false, h.now) == Clear {
			h.class().Begin(0, 0, Work{}, h.now)
		}
	}
	for want, bring := range map[string]func(*hand){
		"ejected": fault, "retry_after": refuse(time.Minute), "refused": refuse(0), "full": fill,
	} {
		s := Defaults()
		s.Agents = 1
		h := newHand(fleet(3, 10, 0.6), s)
		bring(h)
		if g, why := h.class().Grade(0, 0, 1, false, h.now), h.class().WhySpared(0, 0, 1, h.now); g == Clear || why != want {
			t.Errorf("grade %d for %q, want a worse one for %q", g, why, want)
		}
	}
}

// TestEjection: consecutive faults eject, the times grow to a bound and end in
// probes, one good answer ends them, and what was is forgotten.
func TestEjection(t *testing.T) {
	h := newHand(fleet(3, 100, 0.6), Defaults())
	h.pass(time.Second)
	want := Defaults().EjectionBase
	for range 8 {
		for h.weight(1) > 0 || h.plan.Endpoint(1, 0).breaker.state(h.now) == probing {
			h.answer(1, time.Millisecond, Fault)
			h.now = h.now.Add(2 * time.Millisecond)
			if h.plan.Endpoint(1, 0).breaker.state(h.now) == open {
				break
			}
		}
		h.Tick(h.now)
		began := h.now
		if clear, _, _ := h.grades(1); clear != 0 {
			t.Fatalf("ejected, but keeps %d keys", clear)
		}
		for h.plan.Endpoint(1, 0).breaker.state(h.now) == open {
			h.pass(TickInterval)
		}
		if took := h.now.Sub(began); took < want-2*TickInterval || took > want+2*TickInterval {
			t.Fatalf("ejected for %v, want %v", took, want)
		}
		want = min(2*want, Defaults().EjectionMax)
		if clear, spared, out := h.grades(1); clear != 1 || out != 999 {
			t.Fatalf("probing: %d keys get through, %d spared, %d out, want one probe", clear, spared, out)
		}
	}
	h.answer(1, time.Millisecond, Success)
	h.Tick(h.now)
	if clear, _, _ := h.grades(1); clear < 70 || clear > 130 {
		t.Errorf("just back: keeps %d of 1000 keys, want about 100", clear)
	}
	h.pass(11 * time.Second)
	if clear, _, _ := h.grades(1); clear != 1000 {
		t.Errorf("11 s after: keeps %d keys", clear)
	}
	h.pass(Defaults().EjectionMax)
	if n := h.plan.Endpoint(1, 0).breaker.ejections.Load(); n != 0 {
		t.Errorf("%d ejections are still remembered", n)
	}
}

// TestCase7And8NeutralIsNeutral: refusals of the request itself (4xx) neither
// open a breaker nor close it.
// TestCase9PushbackIsNoFault: full queues do not open a breaker; keys are
// passed on for as long as the engine asks, and come back at once when it is
// well.
// TestCase10EveryMarkExpires: whatever was seen, in any order, an agent that
// sees nothing more returns to the plan in a bounded time.
// TestCase11OnlyWhenAllAre: saturation is confirmed only when every endpoint
// that a class reaches is saturated; each that is, is passed.
// TestCase14StaleIsUnknown: what engines said too long ago saturates nothing.
// TestCase15CountsNeverNegative: an endpoint that was away and comes back
// starts anew; what ends late does not disturb it, and what ends twice counts
// once.
// TestCase18ScaledByAgents: the limit of one agent is its part of the plan.
// TestCase19BoundedLoad: a hot key does not pile up on one endpoint.
// TestCase20LaterDeadlineHolds: a second mark never shortens the first.
// TestCase22CheckedAfter: whatever is ejected, what remains is checked after:
// no more than the share goes, but one always may and one always stays.
// TestCase25WeightsSurvive: a new weight file keeps penalties and ejections,
// and one that leaves an endpoint as it was brings its full weight back.
// TestOneStays: an endpoint without peers is never ejected, and two that both
// fail are used by plan.
func TestOneStays(t *testing.T) {
	h := newHand(fleet(1, 100, 0.6), Defaults())
	for range 50 {
		h.answer(0, time.Millisecond, Fault)
	}
	h.pass(time.Second)
	if h.weight(0) != 1 {
		t.Error("the only endpoint is ejected")
	}
	h = newHand(fleet(2, 100, 0.6), Defaults())
	for range 50 {
		h.answer(0, time.Millisecond, Fault)
		h.answer(1, time.Millisecond, Fault)
	}
	h.pass(time.Second)
	if h.weight(0) != 1 || h.weight(1) != 1 {
		t.Errorf("both fail: weights %v, %v", h.weight(0), h.weight(1))
	}
}

// TestSinglePeer: with nobody to compare with, slowness is no reason.
func TestSinglePeer(t *testing.T) {
	h := newHand(fleet(2, 100, 0.6), Defaults())
	for range 50 {
		h.answer(0, 10*time.Second, Success) // nothing is known of the other
	}
	h.pass(time.Second)
	if h.weight(0) != 1 {
		t.Errorf("weight is %v", h.weight(0))
	}
	for range 50 {
		h.answer(0, 10*time.Second, Success)
		h.answer(1, 80*time.Millisecond, Success)
		h.pass(TickInterval)
	}
	if h.weight(0) >= 1 || h.weight(1) != 1 {
		t.Errorf("a hundred times slower than its peer: weights %v, %v", h.weight(0), h.weight(1))
	}
	if why := h.Views(h.now)[0].Why; !strings.Contains(why, "times the profile's") {
		t.Errorf("why: %q", why)
	}
}

// TestPenaltyOfErrors: faults that are not consecutive lower the weight.
func TestPenaltyOfErrors(t *testing.T) {
	h := newHand(fleet(3, 100, 0.6), Defaults())
	for i := range 200 {
		h.answer(0, 80*time.Millisecond, []Outcome{Success, Fault}[i%2])
		h.answer(1, 80*time.Millisecond, Success)
		h.answer(2, 80*time.Millisecond, Success)
		h.pass(TickInterval)
	}
	if h.weight(0) > 0.2 || h.weight(1) != 1 {
		t.Errorf("half of all answers are faults: weights %v, %v", h.weight(0), h.weight(1))
	}
}

// TestAbsorb: a fallback takes what it may absorb, divided by the agents.
// TestBudget: retries are at most the share, none at saturation, and higher
// priorities come first.
// TestRetryAfterSpreads: refused clients are told times that differ.
// TestGateKeepsConversations: the part that is let in is chosen by key.
// TestHold: an engine that the operator took away stays away.
func TestHold(t *testing.T) {
	h := &hand{now: start, Guard: New(Defaults(), nil)}
	p := spec(fleet(3, 100, 0.6))
	p.Stay[1] = 0
	h.plan = h.NewPlan(p, h.now)
	h.pass(time.Second)
	if stay := h.class().Stay(); stay[1] != 0 || stay[0] != stayAll {
		t.Errorf("stay is %v", stay)
	}
	// What is not there has no room either.
	for _, e := range []int{0, 2} {
		h.plan.Endpoint(e, 0).Observe(signal.Report{Running: 10, Waiting: 50, KVUsage: 0.5}, h.now)
	}
	h.pass(TickInterval)
	if !h.class().saturated() {
		t.Error("all engines but the one on hold are saturated, the class is not")
	}
}

// TestClassElsewhere: a class that the cluster has no source of is passed
// through.
func TestClassElsewhere(t *testing.T) {
	s := fleet(2, 100, 0.6)
	s.Classes = append(s.Classes, snapshot.Class{Name: "other"})
	h := newHand(s, Defaults())
	c := h.plan.Class(1)
	a := c.Begin(0, 0, Work{PromptTokens: 10}, h.now)
	a.First(h.now)
	a.End(Ending{}, h.now)
	if _, ok := c.Admit(1, false, h.now); !ok || c.Grade(0, 0, 1, false, h.now) != Clear || c.Absorb(0) || len(c.Stay()) != 2 {
		t.Error("not passed through")
	}
	h.pass(time.Second)
}

// TestUntimed: how long a session or a list of models takes says nothing.
func TestUntimed(t *testing.T) {
	h := newHand(fleet(2, 100, 0.6), Defaults())
	for range 20 {
		h.class().Begin(0, 0, Work{Untimed: true}, h.now)
		h.answer(1, 80*time.Millisecond, Success)
	}
	h.pass(time.Minute)
	if h.weight(0) != 1 || !math.IsNaN(h.plan.peers[0].members[0].judged.ratio) || h.plan.Endpoint(0, 0).InFlight() != 20 {
		t.Errorf("weight %v, judged %v", h.weight(0), h.plan.peers[0].members[0].judged)
	}
}

// TestConcurrent: requests, ticks, reloads and views at the same time leave
// nothing behind. It is for the race detector most of all.
func TestConcurrent(t *testing.T) {
	snap := fleet(4, 1000, 0.6)
	g := New(Defaults(), nil)
	var plan atomic.Pointer[Plan]
	plan.Store(g.NewPlan(spec(snap), start))
	var requests, others sync.WaitGroup
	for seed := range uint64(8) {
		requests.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			for n := range 3000 {
				now := start.Add(time.Duration(n) * time.Millisecond)
				c := plan.Load().Class(0)
				c.Admit(rng.Uint64(), false, now)
				c.Deposit()
				engine := rng.IntN(4)
				c.Grade(engine, 0, rng.Uint64(), false, now)
				a := c.Begin(engine, 0, Work{Stream: true}, now)
				plan.Load().Endpoint(engine, 0).Observe(signal.Report{Running: 3, Waiting: float64(rng.IntN(20)), KVUsage: 0.5}, now)
				a.First(now.Add(100 * time.Millisecond))
				a.End(Ending{Outcome: Outcome(rng.IntN(4))}, now.Add(time.Second))
				c.Withdraw()
			}
		})
	}
	done := make(chan struct{})
	others.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			default:
			}
			now := start.Add(time.Duration(n) * TickInterval)
			g.Tick(now)
			if n%10 == 0 {
				plan.Store(g.NewPlan(spec(snap), now))
				g.SetSettings(Defaults())
			}
			g.Views(now)
		}
	})
	requests.Wait()
	close(done)
	others.Wait()
	for _, v := range g.Views(start) {
		if v.InFlight != 0 {
			t.Errorf("%s: %d in flight", v.Engine, v.InFlight)
		}
	}
	for e := range 4 {
		at := plan.Load().Endpoint(e, 0)
		if n, us := at.waiting.Load(), at.waitingStartUs.Load(); n != 0 || us != 0 || at.waitingExpectedUs.Load() != 0 {
			t.Errorf("endpoint %d: %d requests wait for a sign since %d", e, n, us)
		}
	}
}

func TestViews(t *testing.T) {
	h := newHand(fleet(2, 100, 0.6), Defaults())
	for range 5 {
		h.answer(0, time.Millisecond, Fault)
	}
	h.plan.Endpoint(1, 0).Observe(signal.Report{Running: 3, Waiting: 0, KVUsage: signal.Unknown()}, h.now)
	h.pass(TickInterval)
	text, err := json.Marshal(h.Views(h.now))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"weights":{"chat":0}`, `"why":"ejected"`, `"running":3,"waiting":0,`, `"why":"as planned"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("views are %s, want %s", text, want)
		}
	}
	if v := h.ClassViews(); len(v) != 1 || v[0].Class != "chat" || v[0].Admitted != 1 || v[0].RetryRatio != 0.2 || v[0].OwnBudget {
		t.Errorf("classes: %+v", v)
	}
	if len(h.changes) != 1 || h.changes[0].State != Ejected || h.changes[0].Why != "5 faults in a row, ejection 1" {
		t.Errorf("changes: %+v", h.changes)
	}
}

// TestRequestPathAllocatesNothing: what a request calls takes no memory.
// BenchmarkTick has 1,000 endpoints that each of 20 classes reaches.
