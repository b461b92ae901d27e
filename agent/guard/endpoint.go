package guard

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/irb-project/irb/agent/signal"
)

// Endpoint is what is known of one endpoint. It outlives plans that keep it; an
// endpoint that comes back after it was away gets a new one, so what is left
// over of its old requests cannot disturb it.
//
// Requests write to it by atomic additions alone. Sums are cumulative: whoever
// looks at them keeps what it saw last.
type Endpoint struct {
	engine, id string
	hash       uint64

	inFlight atomic.Int64
	limit    atomic.Int64 // requests in flight of this agent; 0: none

	// What a request is expected to take now, set by ticks.
	ttftPerTokenNs atomic.Int64 // per uncached prompt token
	tbotNs         atomic.Int64
	queueNs        atomic.Int64 // before the engine begins

	work        atomic.Int64 // begun, in 1/1000 reference requests
	done        atomic.Int64 // answered well, likewise
	frameTokens atomic.Int64 // in a frame of a stream, in 1/1000, of late; 0: unknown
	countFrom   atomic.Int64 // unix ns: of requests that began before, no latency counts
	observedUs  atomic.Int64 // latency of answers, net of the round trip
	expectedUs  atomic.Int64 // of the same answers
	samples     atomic.Int64
	successes   atomic.Int64
	faults      atomic.Int64
	pushbacks   atomic.Int64 // 429 and 503

	// Requests that nothing has come back for: their number, the sums of their
	// start times and of what they are expected to take.
	waiting           atomic.Int64
	waitingStartUs    atomic.Int64
	waitingExpectedUs atomic.Int64 // without a cache: those that miss it wait longest

	breaker breaker
	pushed  busyMark
	said    [3]gauge // by signal.Quantity

	rate        float64 // own work begun, reference requests/s; of ticks, as all below
	lastWork    int64
	goodput     float64 // own work answered well, likewise
	lastDone    int64
	lastAnswers answers
	newAnswers  answers // since the last tick
	recent      answers // decayed over about a second
	ownShare    float64 // part of the engine's requests that are ours; 0: unknown
	utilization float64 // estimated; NaN: unknown
	queue       float64 // waiting requests as the engine says; Unknown where it does not
	running     float64 // requests in service, 0 if unknown
	planLimit   float64 // by plan and queue; 0: none
	relief      float64 // what raises it, because its peers are as full; at least 1
	queueing    bool    // it tells of a longer queue than may be
	saturated   bool
	saturatedAt time.Time // last
}

// answers counts kinds of answers.
type answers struct{ successes, faults, pushbacks float64 }

func newEndpoint(engine, id string) *Endpoint {
	e := &Endpoint{engine: engine, id: id, utilization: math.NaN(), queue: signal.Unknown()}
	// Not the hash by which keys find their home among endpoints: those that
	// stay must be any of those whose home it is.
	e.hash = xxhash.Sum64String("stay\x00" + engine + "\x00" + id)
	return e
}

// InFlight returns the number of this agent's requests at the endpoint.
func (e *Endpoint) InFlight() int64 { return e.inFlight.Load() }

// learnFrame takes in how many tokens the frames of an answer held. Of two
// answers that end at the same time one may be lost.
func (e *Endpoint) learnFrame(milliTokens int64) {
	if old := e.frameTokens.Load(); old > 0 {
		milliTokens = old + (milliTokens-old)/8
	}
	e.frameTokens.Store(max(1, milliTokens))
}

// full says whether the agent has as many requests there as it should. Those
// that are away from an endpoint that may hold their prompts in its cache are
// more work here than there, so they need as much more room: the limit is
// divided by the work of a mean request of the class without a cache, of that
// with one. Else what one endpoint has too much of fills the next, whose own
// requests move on and leave their caches too, until all of the fleet computes
// everything again.
func (e *Endpoint) full(c *Class, away bool) bool {
	limit := e.limit.Load()
	if away {
		limit = int64(math.Ceil(float64(limit) / c.cold))
	}
	return limit > 0 && e.inFlight.Load() >= limit
}

// Observe takes what the engine said of itself. What it did not say leaves
// what it said before, until that is too old.
func (e *Endpoint) Observe(r signal.Report, now time.Time) {
	for q, x := range [...]float64{signal.Running: r.Running, signal.Waiting: r.Waiting, signal.KVUsage: r.KVUsage} {
		if signal.Known(x) {
			e.said[q].set(x, now)
		}
	}
}

// gauge is a value and when it was said. A reader may see a new value with an
// old time, which makes it stale too early, never fresh for too long.
type gauge struct {
	bits atomic.Uint64
	at   atomic.Int64 // unix ns; 0: never
}

func (g *gauge) set(x float64, now time.Time) {
	g.bits.Store(math.Float64bits(x))
	g.at.Store(now.UnixNano())
}

// get returns the value if it is younger than ttl, else Unknown. A time that is
// ahead of the clock is not believed: the clock was set back.
func (g *gauge) get(now time.Time, ttl time.Duration) float64 {
	at := g.at.Load()
	if age := now.UnixNano() - at; at == 0 || age >= int64(ttl) || age < -int64(ttl) {
		return signal.Unknown()
	}
	return math.Float64frombits(g.bits.Load())
}

// inProgress returns running plus waiting as the engine says, Unknown without
// the first; an engine that has no queue to tell of has none.
func (e *Endpoint) inProgress(now time.Time, ttl time.Duration) float64 {
	n := e.said[signal.Running].get(now, ttl)
	if w := e.said[signal.Waiting].get(now, ttl); signal.Known(w) {
		n += w
	}
	return n
}

// overdue returns how many requests wait for a first sign and the ratio of
// their mean age to what they are expected to take: a lower bound of the
// latency ratio that shows long before slow answers come.
func (e *Endpoint) overdue(now time.Time) (n int64, ratio float64) {
	n = e.waiting.Load()
	start, expected := e.waitingStartUs.Load(), e.waitingExpectedUs.Load()
	if n <= 0 || expected <= 0 {
		return 0, 0
	}
	return n, float64(n*now.UnixMicro()-start) / float64(expected)
}

// later raises a to x if x is larger: of two marks the one that lasts longer
// holds.
func later(a *atomic.Int64, x int64) {
	for {
		old := a.Load()
		if old >= x || a.CompareAndSwap(old, x) {
			return
		}
	}
}

// decrement lowers a count, not below zero.
func decrement(a *atomic.Int64) {
	for {
		n := a.Load()
		if n <= 0 || a.CompareAndSwap(n, n-1) {
			return
		}
	}
}
