package guard

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/irb-project/irb/agent/signal"
	"github.com/irb-project/irb/agent/snapshot"
)

// hand is a guard worked by hand.
type hand struct {
	*Guard
	plan    *Plan
	now     time.Time
	changes []Change
}

func newHand(s *snapshot.Snapshot, settings Settings) *hand {
	h := &hand{now: start}
	h.Guard = New(settings, func(c Change) { h.changes = append(h.changes, c) })
	h.plan = h.NewPlan(spec(s), h.now)
	return h
}

func (h *hand) class() *Class { return h.plan.Class(0) }

// pass lets time pass, tick by tick.
func (h *hand) pass(d time.Duration) {
	for end := h.now.Add(d); h.now.Before(end); {
		h.now = h.now.Add(TickInterval)
		h.Tick(h.now)
	}
}

// answer is one request that takes a while and ends.
func (h *hand) answer(engine int, took time.Duration, o Outcome) {
	a := h.class().Begin(engine, 0, Work{Stream: true}, h.now)
	at := h.now.Add(took)
	if o == Success {
		a.First(at)
	}
	a.End(Ending{Outcome: o}, at)
}

func (h *hand) weight(engine int) float64 { return h.plan.peers[0].members[engine].weight }

// grades counts the grades of a thousand keys at an endpoint, by pick's
// threshold first.
func (h *hand) grades(engine int) (clear, spared, out int) {
	for k := range uint64(1000) {
		key := mix(k + 1)
		if stay := h.class().Stay()[engine]; stay != stayAll && mix(key^h.plan.engines[engine].hash) >= stay {
			spared++
			continue
		}
		switch h.class().Grade(engine, 0, key, h.now) {
		case Clear:
			clear++
		case Spared:
			spared++
		case Out:
			out++
		}
	}
	return clear, spared, out
}

func TestSettings(t *testing.T) {
	if err := Defaults().Check(); err != nil {
		t.Error(err)
	}
	bad := Settings{Agents: -1, MaxEjectedShare: 2, OutlierFactor: math.NaN(), EjectionBase: time.Hour, RetryRatio: -1}
	err := bad.Check()
	for _, want := range []string{
		"agents is -1, want 0 to 100000", "consecutive faults is 0", "ejection base is 1h0m0s, want 100ms to 10m", "ejection max is 0s",
		"at most ejection max", "max ejected share is 2", "outlier factor is NaN", "min samples is 0", "queue limit is 0",
		"concurrency slack is 0", "signal TTL is 0s", "retry ratio is -1",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is\n%v\nwant it to tell %q", err, want)
		}
	}
}

func TestCurve(t *testing.T) {
	p := profile()
	c := curve{&p}
	ps := curve{&snapshot.Profile{PromptTokens: 100, OutputTokens: 10, TTFTV: []float64{0}, TTFTMs: []float64{50}, TBOTV: []float64{0}, TBOTMs: []float64{10}, Queueing: "ps"}}
	for _, test := range []struct{ got, want float64 }{
		{c.ttftMs(0), 80}, {c.ttftMs(0.125), 82.5}, {c.ttftMs(0.5), 100}, {c.ttftMs(2), 400}, {c.ttftMs(-1), 80},
		{c.tbotMs(0.95), 26}, {c.latencyMs(0.5, 512, 10), 200},
		{ps.ttftMs(0.5), 100}, {ps.tbotMs(0), 10}, {ps.ttftMs(1), 1000},
		{curve{&snapshot.Profile{TTFTV: []float64{0}, TTFTMs: []float64{7}, Queueing: "none"}}.ttftMs(0.9), 7},
		{curve{&snapshot.Profile{}}.ttftMs(0.5), 0},
	} {
		if math.Abs(test.got-test.want) > 1e-9 {
			t.Errorf("got %v, want %v", test.got, test.want)
		}
	}
	last := -1.0
	for n := 0.0; n < 400; n += 7 { // Little's law forth and back, monotone
		v := c.utilizationOf(n, 100)
		if v < last || v > 1 {
			t.Errorf("utilization of %v requests is %v after %v", n, v, last)
		}
		if back := v * 100 * c.latencyMs(v, 1024, 64) / 1000; v < 1 && math.Abs(back-n) > 0.01 {
			t.Errorf("%v requests are utilization %v, which is %v requests", n, v, back)
		}
		last = v
	}
}

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

// TestCase9PushbackIsNoFault: full queues do not open a breaker; keys are
// passed on for as long as the engine asks, and come back at once when it is
// well.
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

// TestCase10EveryMarkExpires: whatever was seen, in any order, an agent that
// sees nothing more returns to the plan in a bounded time.
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

// TestCase11OnlyWhenAllAre: saturation is confirmed only when every endpoint
// that a class reaches is saturated; each that is, is passed.
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

// TestCase14StaleIsUnknown: what engines said too long ago saturates nothing.
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

// TestCase15CountsNeverNegative: an endpoint that was away and comes back
// starts anew; what ends late does not disturb it, and what ends twice counts
// once.
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

// TestCase18ScaledByAgents: the limit of one agent is its part of the plan.
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

// TestCase19BoundedLoad: a hot key does not pile up on one endpoint.
func TestCase19BoundedLoad(t *testing.T) {
	s := Defaults()
	s.Agents = 1
	h := newHand(fleet(2, 10, 0.6), s)
	key := uint64(42)
	n := 0
	for ; h.class().Grade(0, 0, key, h.now) == Clear; n++ {
		h.class().Begin(0, 0, Work{Stream: true}, h.now)
	}
	if limit := h.plan.Endpoint(0, 0).limit.Load(); int64(n) != limit || n > 60 {
		t.Errorf("%d requests of one key at once, limit %d", n, limit)
	}
}

// TestCase20LaterDeadlineHolds: a second mark never shortens the first.
func TestCase20LaterDeadlineHolds(t *testing.T) {
	var m busyMark
	m.pushback(start, 20*time.Second)
	m.pushback(start, time.Second)
	if !m.is(start.Add(19 * time.Second)) {
		t.Error("the shorter mark replaced the longer")
	}
	m.pushback(start, time.Hour)
	if m.is(start.Add(busyAsk)) {
		t.Error("an hour is believed")
	}
}

// TestCase22CheckedAfter: whatever is ejected, what remains is checked after:
// no more than the share goes, but one always may and one always stays.
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

// TestCase25WeightsSurvive: a new weight file keeps penalties and ejections,
// and one that leaves an endpoint as it was brings its full weight back.
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

func TestMedianOfOthers(t *testing.T) {
	members := make([]member, 5)
	for i, x := range []float64{3, 1, math.NaN(), 10, 2} {
		members[i].judged.ratio = x
	}
	o := newOthers(members, func(m *member) float64 { return m.judged.ratio })
	for x, want := range map[float64]float64{1: 3, 2: 3, 3: 2, 10: 2} {
		if got := o.median(x); got != want {
			t.Errorf("without %v the median is %v, want %v", x, got, want)
		}
	}
	if got := o.median(math.NaN()); got != 2.5 {
		t.Errorf("median of all is %v, want 2.5", got)
	}
	if got := (others{[]float64{4}}).median(4); !math.IsNaN(got) {
		t.Errorf("median of none is %v", got)
	}
}

// TestAbsorb: a fallback takes what it may absorb, divided by the agents.
func TestAbsorb(t *testing.T) {
	for _, agents := range []int{1, 4} {
		s := fleet(2, 100, 0.6)
		src := &s.Sources[0]
		src.Fallbacks = []snapshot.Fallback{{Engine: "e1", AbsorbRPS: 20}}
		src.Weights = src.Weights[:1]
		settings := Defaults()
		settings.Agents = agents
		h := newHand(s, settings)
		taken := 0
		for range 100 {
			for h.class().Absorb(1) {
				taken++
			}
			h.pass(TickInterval)
		}
		if want := 20 * 11 / agents; taken < want-2 || taken > want+1 {
			t.Errorf("%d agents: one took %d in 10 s, want %d", agents, taken, want)
		}
		if h.class().Absorb(0) {
			t.Error("an engine that is no fallback absorbs")
		}
	}
}

// TestBudget: retries are at most the share, none at saturation, and higher
// priorities come first.
func TestBudget(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, 0.7: 1, 0.825: 0.5, 0.95: 0, 1: 0} {
		if got := easing(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("at utilization %v %v of the budget is left, want %v", v, got, want)
		}
	}
	settings := Defaults()
	settings.RetryFloor = 0
	for _, full := range []bool{false, true} {
		h := newHand(fleet(3, 100, 0.6, snapshot.Class{Name: "gold", Priority: 1}, snapshot.Class{Name: "bulk"}), settings)
		gold, bulk := h.plan.Class(0), h.plan.Class(1)
		sent := [2]int{}
		requests := 0
		for range 200 {
			if full {
				for e := range 3 {
					h.plan.Endpoint(e, 0).Observe(signal.Report{Running: 200, Waiting: 50, KVUsage: 1}, h.now)
				}
			}
			for range 10 {
				requests += 2
				gold.Deposit()
				bulk.Deposit()
				for i, c := range []*Class{bulk, gold} {
					if c.Withdraw() {
						sent[1-i]++
					}
				}
			}
			h.pass(TickInterval)
		}
		retries := sent[0] + sent[1]
		switch {
		case full && retries > 2*requests/100:
			t.Errorf("saturated: %d retries of %d requests", retries, requests)
		case !full && (retries < requests*18/100 || retries > requests*20/100+20):
			t.Errorf("%d retries of %d requests, want a fifth", retries, requests)
		case !full && sent[0] < sent[1]:
			t.Errorf("gold sent %d retries, bulk %d", sent[0], sent[1])
		}
	}
}

// TestRetryAfterSpreads: refused clients are told times that differ.
func TestRetryAfterSpreads(t *testing.T) {
	h := newHand(fleet(1, 10, 0.6), Defaults())
	g := &h.class().gates[fresh]
	g.part.Store(0)
	g.retryAfter.Store(int64(10 * time.Second))
	var tenths [10]int
	for k := range uint64(10000) {
		d, ok := h.class().Admit(mix(k), false, h.now)
		if ok || d < time.Second || d >= 11*time.Second {
			t.Fatalf("admitted %v, retry after %v", ok, d)
		}
		tenths[(d-time.Second)/time.Second]++
	}
	for i, n := range tenths {
		if n < 850 || n > 1150 {
			t.Errorf("second %d: %d of 10000 come back", i, n)
		}
	}
	if _, ok := h.class().Admit(1, true, h.now); !ok {
		t.Error("a turn under way is refused with the new ones")
	}
}

// TestGateKeepsConversations: the part that is let in is chosen by key.
func TestGateKeepsConversations(t *testing.T) {
	h := newHand(fleet(1, 10, 0.6), Defaults())
	g := &h.class().gates[fresh]
	var last int
	for _, part := range []float64{0, 0.1, 0.5, 0.9, 1} {
		g.part.Store(threshold(part))
		in := 0
		for k := range uint64(10000) {
			_, first := h.class().Admit(mix(k), false, h.now)
			_, second := h.class().Admit(mix(k), false, h.now.Add(time.Second))
			if first != second {
				t.Fatalf("key %d: %v, then %v", k, first, second)
			}
			if first {
				in++
			}
		}
		if math.Abs(float64(in)/10000-part) > 0.02 || in < last {
			t.Errorf("of 10000 keys %d are let in, want %v", in, part)
		}
		last = in
	}
}

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
	if _, ok := c.Admit(1, false, h.now); !ok || c.Grade(0, 0, 1, h.now) != Clear || c.Absorb(0) || len(c.Stay()) != 2 {
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
	if h.Admitted()["chat"] != 1 {
		t.Errorf("admitted: %v", h.Admitted())
	}
	if len(h.changes) != 1 || h.changes[0].State != Ejected || h.changes[0].Why != "5 faults in a row, ejection 1" {
		t.Errorf("changes: %+v", h.changes)
	}
}

// TestRequestPathAllocatesNothing: what a request calls takes no memory.
func TestRequestPathAllocatesNothing(t *testing.T) {
	h := newHand(fleet(5, 100, 0.6), Defaults())
	h.pass(time.Second)
	if n := testing.AllocsPerRun(100, func() { request(h) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func request(h *hand) {
	c := h.class()
	c.Admit(7, false, h.now)
	c.Deposit()
	_ = c.Stay()
	if c.Grade(1, 0, 7, h.now) == Out {
		panic("ejected")
	}
	a := c.Begin(1, 0, Work{PromptTokens: 100, Stream: true}, h.now)
	a.First(h.now)
	a.End(Ending{Outcome: Success, Tokens: 10, LastToken: h.now.Add(time.Second)}, h.now.Add(time.Second))
}

func BenchmarkRequest(b *testing.B) {
	h := newHand(fleet(5, 100, 0.6), Defaults())
	h.pass(time.Second)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			request(h)
		}
	})
}

// BenchmarkTick has 1,000 endpoints that each of 20 classes reaches.
func BenchmarkTick(b *testing.B) {
	var classes []snapshot.Class
	for i := range 20 {
		classes = append(classes, snapshot.Class{Name: string(rune('a' + i)), Priority: i % 3})
	}
	h := newHand(fleet(1000, 100, 0.6, classes...), Defaults())
	for b.Loop() {
		h.pass(TickInterval)
	}
}
