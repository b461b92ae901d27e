package guard

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/irb-project/irb/agent/signal"
	"github.com/irb-project/irb/agent/snapshot"
)

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

func TestAbsorb(t *testing.T) {
	for _, agents := range []int{1, 4} {
		s := fleet(2, 100, 0.6)
		src := &s.Sources[0]
		src.Fallbacks = []snapshot.Fallback{{Engine: "e1", AbsorbRPS: 20}}
		src.Weights, src.LayoutTo = src.Weights[:1], src.LayoutTo[:1]
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

// TestBudgetOfAClass: a class with a ratio or floor of its own retries by that,
// and neither pays into nor takes from what the others share.
func TestBudgetOfAClass(t *testing.T) {
	settings := Defaults()
	settings.RetryFloor = 0
	ratio := func(x float64) *float64 { return &x }
	snap := fleet(3, 100, 0.6,
		snapshot.Class{Name: "half", Guard: snapshot.Guard{RetryBudgetRatio: ratio(0.5)}},
		snapshot.Class{Name: "none", Guard: snapshot.Guard{RetryBudgetRatio: ratio(0)}},
		snapshot.Class{Name: "floor", Guard: snapshot.Guard{RetryBudgetRatio: ratio(0), RetryBudgetFloor: ratio(2)}},
		snapshot.Class{Name: "agent's"}, snapshot.Class{Name: "too"},
	)
	h := newHand(snap, settings)
	const ticks, perTick = 300, 5 // 50 req/s of each for 30 s
	retries := make([]int, len(snap.Classes))
	for n := range ticks {
		if n == ticks/2 {
			h.plan = h.NewPlan(spec(snap), h.now) // budgets outlive a reload
		}
		for range perTick {
			for i := range retries {
				h.plan.Class(i).Deposit()
				if h.plan.Class(i).Withdraw() {
					retries[i]++
				}
			}
		}
		h.pass(TickInterval)
	}
	const requests = ticks * perTick
	for i, want := range []int{requests / 2, 0, 60} { // 2/s for 30 s
		if got := retries[i]; got < want*95/100 || got > want*105/100 {
			t.Errorf("class %q sent %d retries of %d requests, want about %d", snap.Classes[i].Name, got, requests, want)
		}
	}
	if shared, want := retries[3]+retries[4], 2*requests/5; shared < want*95/100 || shared > want*105/100 {
		t.Errorf("the classes of the shared budget sent %d, want about %d", shared, want)
	}
	v := h.ClassViews()
	if !v[0].OwnBudget || v[0].RetryRatio != 0.5 || v[2].RetryFloor != 2 || v[3].OwnBudget || v[3].RetryRatio != 0.2 {
		t.Errorf("views: %+v", v)
	}
}

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

// Making the guards of many classes must not keep the processor for long.
func TestNewPlanPauses(t *testing.T) {
	classes := make([]snapshot.Class, 200)
	for i := range classes {
		classes[i].Name = fmt.Sprintf("k%05d", i)
	}
	s := spec(fleet(3, 100, 0.5, classes...))
	pauses := 0
	s.Pause = func() { pauses++ }
	New(Defaults(), nil).NewPlan(s, start)
	if pauses < 5*len(classes) { // one in each pass over the classes
		t.Errorf("%d pauses for %d classes", pauses, len(classes))
	}
}
