package guard

import (
	"time"

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
		switch h.class().Grade(engine, 0, key, false, h.now) {
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
