package guard

import (
	"math"
	"testing"
	"time"

	"github.com/irb-project/irb/agent/signal"
)

// TestBusyIsNotSlow: an endpoint that is saturated and gets its capacity done is
// not penalized for what waits there; one that gets a tenth of it done is.
func TestBusyIsNotSlow(t *testing.T) {
	for _, test := range []struct {
		perTick   int // answers in 100 ms; the capacity is 100 req/s
		penalized bool
	}{{10, false}, {6, false}, {1, true}} {
		s := Defaults()
		s.Agents = 1
		h := newHand(fleet(3, 100, 0.6), s)
		for n := range 150 {
			latency := 80 * time.Millisecond
			if n >= 50 { // well at first, then a queue
				latency = 10 * time.Second
				h.plan.Endpoint(0, 0).Observe(signal.Report{Running: 200, Waiting: 50, KVUsage: 0.5}, h.now)
			}
			for range test.perTick {
				h.answer(0, latency, Success)
			}
			h.answer(1, 80*time.Millisecond, Success)
			h.answer(2, 80*time.Millisecond, Success)
			h.pass(TickInterval)
		}
		if got := h.weight(0) < 1; got != test.penalized {
			t.Errorf("%d answers a tick: weight %v, want penalized %v", test.perTick, h.weight(0), test.penalized)
		}
	}
}

// TestFullAlike: an endpoint that says "full" is passed, but not when its peers
// say so as often; a Retry-After is heeded in any case.
func TestFullAlike(t *testing.T) {
	for _, alike := range []bool{false, true} {
		h := newHand(fleet(3, 100, 0.6), Defaults())
		for range 20 {
			for e := range 3 {
				o := Success
				if e == 0 || alike {
					o = Pushback
				}
				h.answer(e, 80*time.Millisecond, o)
			}
			h.pass(TickInterval)
		}
		h.answer(0, time.Millisecond, Pushback)
		want := 0
		if alike {
			want = 1000
		}
		if clear, _, _ := h.grades(0); clear != want {
			t.Errorf("alike %v: %d keys stay, want %d", alike, clear, want)
		}
		a := h.class().Begin(0, 0, Work{}, h.now)
		a.End(Ending{Outcome: Pushback, RetryAfter: 5 * time.Second}, h.now)
		if clear, _, _ := h.grades(0); clear != 0 {
			t.Errorf("alike %v: asked to be left alone, but %d keys stay", alike, clear)
		}
	}
}

// TestFewSamples: the fewer the samples, the farther out a ratio must be: with
// 3 of 5, beyond 5/3 of twice the median of the peers.
func TestFewSamples(t *testing.T) {
	for _, test := range []struct {
		ratio, samples float64
		down           bool
	}{{2.1, 5, true}, {3.3, 3, false}, {3.4, 3, true}, {1.9, 20, false}} {
		s := Defaults()
		m := member{endpoint: newEndpoint("e", "e")}
		m.judged = verdict{ratio: test.ratio, samples: test.samples, errors: math.NaN()}
		peers := comparison{ratio: 1, errors: math.NaN(), known: 4}
		m.step(start, TickInterval, peers, &s)
		peers.samples = 3 * 4
		down := m.step(start.Add(patience), TickInterval, peers, &s)
		if down != test.down || (m.penalty.weight() < 1) != test.down {
			t.Errorf("ratio %v of %v samples: down %v, weight %v", test.ratio, test.samples, down, m.penalty.weight())
		}
	}
}

// TestPeersMustShow: a first step waits until the peers have shown themselves.
func TestPeersMustShow(t *testing.T) {
	s := Defaults()
	m := member{endpoint: newEndpoint("e", "e")}
	m.judged = verdict{ratio: 10, samples: 20, errors: math.NaN()}
	peers := comparison{ratio: 1, errors: math.NaN(), known: 4, samples: 100}
	for n := range 100 {
		if m.step(start.Add(time.Duration(n)*TickInterval), TickInterval, peers, &s) {
			t.Fatal("a step down while nothing is seen of its peers")
		}
	}
	peers.samples += enoughSamples * 4
	if !m.step(start.Add(time.Minute), TickInterval, peers, &s) {
		t.Error("no step down though its peers have shown themselves")
	}
}

// TestProgress: an answer under way tells how fast its tokens come, as soon as
// it is known how many a frame holds, and each token counts once.
func TestProgress(t *testing.T) {
	h := newHand(fleet(2, 100, 0.6), Defaults())
	e := h.plan.Endpoint(0, 0)
	answer := func(seconds, frames, tokens int) totals {
		before := e.totals()
		a := h.class().Begin(0, 0, Work{Stream: true}, h.now)
		a.First(h.now)
		for s := range seconds {
			a.Progress((s+1)*frames/seconds, h.now.Add(time.Duration(s+1)*time.Second))
		}
		end := h.now.Add(time.Duration(seconds) * time.Second)
		a.End(Ending{Outcome: Success, Tokens: tokens, Frames: frames, LastToken: end}, end)
		now := e.totals()
		return totals{observedUs: now.observedUs - before.observedUs, expectedUs: now.expectedUs - before.expectedUs, samples: now.samples - before.samples}
	}
	tbotUs := float64(e.tbotNs.Load()) / 1000
	ttftUs := float64(e.ttftPerTokenNs.Load()) * 1024 / 1000
	for n, wantSamples := range []float64{2, 5} { // the first tells at its end, how many tokens a frame holds
		got := answer(4, 40, 120)
		if math.Abs(got.observedUs-4e6) > 1 || got.samples != wantSamples || math.Abs(got.expectedUs-120*tbotUs-ttftUs) > 10 {
			t.Errorf("answer %d: %+v, want 4 s observed, %v us expected, %v samples", n, got, 120*tbotUs+ttftUs, wantSamples)
		}
	}
}

// TestRelief: what all have too many of in flight moves nothing; what one has
// too many of does; and a queue is no time for relief.
func TestRelief(t *testing.T) {
	s := Defaults()
	s.Agents = 1
	for _, test := range []struct {
		others, waiting float64
		full            bool
	}{{0, 0, true}, {1, 0, false}, {1, 50, true}} {
		h := newHand(fleet(3, 10, 0.6), s)
		limit := h.plan.Endpoint(0, 0).limit.Load()
		for e := range 3 {
			n := float64(limit) * 2
			if e > 0 {
				n *= test.others
			}
			for range int(n) {
				h.class().Begin(e, 0, Work{Untimed: true}, h.now)
			}
			h.plan.Endpoint(e, 0).Observe(signal.Report{Running: n, Waiting: test.waiting, KVUsage: 0.5}, h.now)
		}
		h.pass(TickInterval)
		if got := h.plan.Endpoint(0, 0).full(h.class(), false); got != test.full {
			t.Errorf("others %v, %v waiting: full is %v, limit %d was %d", test.others, test.waiting, got, h.plan.Endpoint(0, 0).limit.Load(), limit)
		}
	}
}
