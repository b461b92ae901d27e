package virtual

import (
	"math"
	"slices"
	"time"

	"github.com/irb-project/irb/agent/guard"
	"github.com/irb-project/irb/solve/profile"
)

// engine serves by its profile: the more are in service, the slower, up to as
// many as it can do at utilization 1; the others wait, up to as many again, and
// what is more is refused.
type engine struct {
	sim      *sim
	number   int
	capacity float64 // req/s
	slots    int
	running  []*request
	waiting  []*request

	slow     float64 // times are this many times as long
	refusing float64 // part of the requests that gets a 503
	dead     bool    // refuses connections
}

// inProgress returns how many requests are in service at utilization v, by
// Little's law.
func (e *engine) inProgress(v float64) float64 {
	return v * e.capacity * trueProfile.ReferenceMs(v) / 1000
}

// utilization is the inverse of inProgress.
func (e *engine) utilization(n int) float64 {
	lo, hi := 0.0, 1.0
	for range 20 {
		if mid := (lo + hi) / 2; e.inProgress(mid) < float64(n) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

func newEngine(s *sim, number int, capacity float64) *engine {
	e := &engine{sim: s, number: number, capacity: capacity, slow: 1}
	e.slots = int(math.Ceil(e.inProgress(1)))
	return e
}

// trueProfile is how all engines behave, whatever the snapshot says.
var trueProfile = mustFit()

func mustFit() profile.Profile {
	p, err := profile.Fit(spec)
	if err != nil {
		panic(err) // of our own making
	}
	return p
}

// take takes a request that has arrived.
func (e *engine) take(r *request) {
	switch {
	case e.dead:
		r.unreachable()
	case e.refusing > 0 && e.sim.rng.Float64() < e.refusing, len(e.waiting) >= e.slots:
		r.end(guard.Pushback)
	case len(e.running) >= e.slots:
		e.waiting = append(e.waiting, r)
	default:
		e.serve(r)
	}
}

// frames is in how many parts an answer is made: what befalls the engine
// meanwhile shows on what is left of it.
const frames = 8

func (e *engine) serve(r *request) {
	v := e.utilization(len(e.running))
	e.running = append(e.running, r)
	attempt := r.attempts
	after := func(ms float64, do func()) {
		e.sim.after(time.Duration(ms*e.slow*float64(time.Millisecond)), func() {
			if r.attempts == attempt && !r.over { // else the engine died meanwhile
				do()
			}
		})
	}
	decodeMs := trueProfile.TBOT.At(v) * outputTokens / frames
	done := 0
	var frame func()
	frame = func() {
		if done++; done < frames {
			r.attempt.Progress(done*outputTokens/frames, e.sim.now)
			after(decodeMs, frame)
			return
		}
		e.running = slices.DeleteFunc(e.running, func(x *request) bool { return x == r })
		r.answered()
		e.next()
	}
	after(trueProfile.TTFT.At(v), func() {
		r.begins()
		after(decodeMs, frame)
	})
}

func (e *engine) next() {
	if len(e.waiting) > 0 {
		r := e.waiting[0]
		e.waiting = e.waiting[1:]
		e.serve(r)
	}
}

// die ends the engine and all that is under way there.
func (e *engine) die() {
	e.dead = true
	lost := append(e.running, e.waiting...)
	e.running, e.waiting = nil, nil
	for _, r := range lost {
		r.reset()
	}
}
