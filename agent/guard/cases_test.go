package guard

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/irb-project/irb/agent/signal"
	"github.com/irb-project/irb/agent/snapshot"
)

func TestCase7And8NeutralIsNeutral(t *testing.T) {
	h := newHand(fleet(3, 100, 0.6), Defaults())
	for range 1000 {
		h.answer(0, time.Millisecond, Neutral)
	}
	h.pass(time.Second)
	if h.weight(0) != 1 {
		t.Error("refused requests ejected the endpoint")
	}
	for range 5 {
		h.answer(0, time.Millisecond, Fault)
	}
	h.pass(Defaults().EjectionBase + time.Second)
	h.answer(0, time.Millisecond, Neutral)
	h.Tick(h.now)
	if h.weight(0) != 0 || h.plan.Endpoint(0, 0).breaker.state(h.now) != probing {
		t.Error("a refused request ended the ejection")
	}
}

func TestCase9PushbackIsNoFault(t *testing.T) {
	h := newHand(fleet(3, 100, 0.6), Defaults())
	for range 100 {
		h.answer(0, time.Millisecond, Pushback)
	}
	h.Tick(h.now)
	if clear, spared, out := h.grades(0); clear != 0 || out != 0 {
		t.Errorf("full: %d keys stay, %d spared, %d out, want all spared", clear, spared, out)
	}
	h.answer(0, time.Millisecond, Success)
	if clear, _, _ := h.grades(0); clear != 1000 {
		t.Errorf("after a good answer %d keys stay", clear)
	}
}

func TestCase10EveryMarkExpires(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 30 {
		h := newHand(fleet(4, 100, 0.6), Defaults())
		for range 300 {
			o := Outcome(rng.IntN(4))
			a := h.class().Begin(rng.IntN(4), 0, Work{Stream: rng.IntN(2) == 0, PromptTokens: rng.Float64() * 5000}, h.now)
			h.now = h.now.Add(time.Duration(rng.IntN(50)) * time.Millisecond)
			if rng.IntN(2) == 0 {
				a.First(h.now)
			}
			a.End(Ending{Outcome: o, RetryAfter: time.Duration(rng.IntN(100)) * time.Second, Tokens: rng.IntN(50), LastToken: h.now.Add(time.Second)}, h.now)
			h.plan.Endpoint(rng.IntN(4), 0).Observe(signal.Report{Running: rng.Float64() * 500, Waiting: rng.Float64() * 100, KVUsage: rng.Float64()}, h.now)
			if rng.IntN(3) == 0 {
				h.pass(TickInterval)
			}
		}
		h.pass(Defaults().EjectionMax + probingFor + holdMax + 20*time.Second)
		for e := range 4 {
			if clear, spared, out := h.grades(e); clear != 1000 {
				t.Fatalf("engine %d: %d keys stay, %d spared, %d out, a minute after anything was seen", e, clear, spared, out)
			}
			if n := h.plan.Endpoint(e, 0).InFlight(); n != 0 {
				t.Errorf("%d in flight", n)
			}
			if n := h.plan.Endpoint(e, 0).waiting.Load(); n != 0 {
				t.Errorf("%d waiting for a sign", n)
			}
		}
		if _, ok := h.class().Admit(1, false, h.now); !ok {
			t.Error("still shedding")
		}
	}
}

func TestCase11OnlyWhenAllAre(t *testing.T) {
	h := newHand(fleet(3, 10, 0.6), Defaults())
	offer := func(full int) (refused int) {
		for range 40 {
			for e := range full {
				h.plan.Endpoint(e, 0).Observe(signal.Report{Running: 20, Waiting: 50, KVUsage: 0.9}, h.now)
			}
			for k := range uint64(20) {
				if _, ok := h.class().Admit(mix(k), false, h.now); !ok {
					refused++
				}
			}
			h.pass(TickInterval)
		}
		return refused
	}
	if n := offer(2); n != 0 {
		t.Errorf("two of three full: %d refused", n)
	}
	if n := offer(3); n == 0 {
		t.Error("all full: none refused")
	}
}

func TestCase14StaleIsUnknown(t *testing.T) {
	h := newHand(fleet(3, 10, 0.6), Defaults())
	for e := range 3 {
		h.plan.Endpoint(e, 0).Observe(signal.Report{Running: 20, Waiting: 50, KVUsage: 1}, h.now)
	}
	h.pass(time.Second)
	if !h.class().saturated() {
		t.Error("fresh reports of long queues: not saturated")
	}
	h.pass(Defaults().SignalTTL)
	if h.class().saturated() || signal.Known(h.plan.Endpoint(0, 0).queue) {
		t.Error("stale reports still count")
	}
	if Defaults().SignalTTL < 2*time.Second {
		t.Error("reports are stale between two polls")
	}
	h.plan.Endpoint(0, 0).Observe(signal.Nothing(), h.now)
	h.pass(TickInterval)
	if signal.Known(h.plan.Endpoint(0, 0).queue) {
		t.Error("a report of nothing is taken for one")
	}
}

func TestCase15CountsNeverNegative(t *testing.T) {
	s := fleet(2, 100, 0.6)
	h := newHand(s, Defaults())
	old := h.class().Begin(0, 0, Work{}, h.now)
	gone := spec(s)
	gone.Endpoints = [][]string{nil, s.Engines[1].Endpoints}
	h.plan = h.NewPlan(gone, h.now)
	h.plan = h.NewPlan(spec(s), h.now)
	back := h.plan.Endpoint(0, 0)
	now := h.class().Begin(0, 0, Work{}, h.now)
	old.End(Ending{Outcome: Fault}, h.now)
	old.End(Ending{Outcome: Fault}, h.now)
	if n := back.InFlight(); n != 1 {
		t.Errorf("%d in flight, want 1", n)
	}
	now.End(Ending{}, h.now)
	now.End(Ending{}, h.now)
	if n := back.InFlight(); n != 0 {
		t.Errorf("%d in flight, want 0", n)
	}
	decrement(&back.inFlight)
	if n := back.InFlight(); n != 0 {
		t.Errorf("%d in flight, want 0", n)
	}
}

func TestCase18ScaledByAgents(t *testing.T) {
	limit := func(agents int, waiting float64) int64 {
		s := Defaults()
		s.Agents = agents
		h := newHand(fleet(2, 1000, 0.6), s)
		h.plan.Endpoint(0, 0).Observe(signal.Report{Running: 10, Waiting: waiting, KVUsage: signal.Unknown()}, h.now)
		h.pass(TickInterval)
		return h.plan.Endpoint(0, 0).limit.Load()
	}
	one, eight := limit(1, 5), limit(8, 5)
	if one <= 0 || eight <= 0 || float64(one)/float64(eight) < 5 || float64(one)/float64(eight) > 8 {
		t.Errorf("limit is %d for one agent, %d for each of eight", one, eight)
	}
	if free := limit(8, 0); free <= eight {
		t.Errorf("limit is %d without a queue, %d with one", free, eight)
	}
	if n := limit(0, 0); n != 0 {
		t.Errorf("agents unknown, no queue: limit is %d, want none", n)
	}
	if n := limit(0, 50); n != minLimit {
		t.Errorf("agents unknown, a queue, nothing of ours there: limit is %d, want %d", n, minLimit)
	}
}

func TestCase19BoundedLoad(t *testing.T) {
	s := Defaults()
	s.Agents = 1
	h := newHand(fleet(2, 10, 0.6), s)
	key := uint64(42)
	n := 0
	for ; h.class().Grade(0, 0, key, false, h.now) == Clear; n++ {
		h.class().Begin(0, 0, Work{Stream: true}, h.now)
	}
	if limit := h.plan.Endpoint(0, 0).limit.Load(); int64(n) != limit || n > 60 {
		t.Errorf("%d requests of one key at once, limit %d", n, limit)
	}
}

func TestCase20LaterDeadlineHolds(t *testing.T) {
	var m busyMark
	m.pushback(start, 20*time.Second)
	m.pushback(start, time.Second)
	if !m.asks(start.Add(19 * time.Second)) {
		t.Error("the shorter mark replaced the longer")
	}
	m.pushback(start, time.Hour)
	if m.asks(start.Add(busyAsk)) {
		t.Error("an hour is believed")
	}
}

func TestCase22CheckedAfter(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		n := 1 + rng.IntN(6)
		p := &peers{}
		weights := make([]float64, n)
		total := 0.0
		for i := range n {
			c := 1 + 9*rng.Float64()
			total += c
			p.members = append(p.members, member{capacity: c})
			weights[i] = []float64{0, 0, 1, 1, rng.Float64()}[rng.IntN(5)]
		}
		wanted := append([]float64(nil), weights...)
		s := Settings{MaxEjectedShare: rng.Float64()}
		panicking := p.limitLoss(weights, &s)
		gone, losers, most := 0.0, 0, 0.0
		for i, w := range weights {
			loss := p.members[i].capacity * (1 - w)
			gone += loss
			if w < wanted[i] || w > 1 {
				t.Fatalf("%v became %v", wanted, weights)
			}
			if loss > 1e-9 {
				losers++
				most = max(most, loss)
			}
		}
		if panicking && losers > 0 {
			t.Fatalf("panic, but %v became %v", wanted, weights)
		}
		if losers > 1 && gone > s.MaxEjectedShare*total+1e-9 && gone > most+1e-9 {
			t.Fatalf("%v of %v is gone, at most %v may", gone, total, s.MaxEjectedShare)
		}
		if gone >= total {
			t.Fatalf("%v became %v: nothing stays", wanted, weights)
		}
	}
}

func TestCase25WeightsSurvive(t *testing.T) {
	s := fleet(3, 100, 0.6)
	h := newHand(s, Defaults())
	for range 5 {
		h.answer(2, time.Millisecond, Fault)
	}
	h.pass(TickInterval)
	h.plan = h.NewPlan(spec(s), h.now)
	if clear, _, _ := h.grades(2); clear != 0 {
		t.Errorf("after a reload an ejected endpoint keeps %d keys", clear)
	}
	h.pass(Defaults().EjectionMax + probingFor)
	for e := range 3 {
		if clear, _, _ := h.grades(e); clear != 1000 {
			t.Errorf("engine %d has %d of 1000 keys again", e, clear)
		}
	}
}

// TestCase11RoomElsewhere: a class that reaches an engine with room is let in,
// whatever its priority, while another one finds all of its engines saturated.
func TestCase11RoomElsewhere(t *testing.T) {
	snap := fleet(3, 10, 0.6, snapshot.Class{Name: "here", Priority: 1}, snapshot.Class{Name: "anywhere"})
	local := &snap.Sources[0]
	local.Weights, local.LayoutTo = local.Weights[:1], local.LayoutTo[:1]
	h := newHand(snap, Defaults())
	refused := [2]int{}
	for tick := range 100 {
		waiting := 50.0
		if tick%3 == 2 {
			waiting = 0 // a queue that is short at times
		}
		h.plan.Endpoint(0, 0).Observe(signal.Report{Running: 20, Waiting: waiting, KVUsage: 0.9}, h.now)
		for k := range uint64(20) {
			for n := range 2 {
				if _, ok := h.plan.Class(n).Admit(mix(k), false, h.now); !ok {
					refused[n]++
				}
			}
		}
		h.pass(TickInterval)
	}
	if refused[0] == 0 || refused[1] != 0 {
		t.Errorf("refused %d of the class that is pressed, %d of the one with room", refused[0], refused[1])
	}
}
