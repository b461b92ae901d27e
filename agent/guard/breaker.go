package guard

import (
	"math"
	"sync/atomic"
	"time"
)

// breaker ejects an endpoint after consecutive faults, for a time that doubles
// with each ejection, and lets it back in after one good answer to a probe. It
// is a mark only: whether routing follows it, the peers decide.
//
// Only faults count, and only good answers end an ejection: an answer that
// refuses the request itself (4xx) says nothing, and a full queue is no fault.
type breaker struct {
	consecutive atomic.Int64
	openUntil   atomic.Int64 // unix ns; 0: not ejected. Past: probing
	nextProbe   atomic.Int64 // unix ns
	ejections   atomic.Int64 // in a row
	closedAt    atomic.Int64 // unix ns of the end of the last ejection; 0: none
}

// breakerState is what a breaker says at a time.
type breakerState uint8

const (
	closed  breakerState = iota
	open                 // ejected
	probing              // ejected, but a request now and then is let through
)

const (
	// probeInterval is the time between two probes of one agent.
	probeInterval = 500 * time.Millisecond
	// probingFor is how long probes are asked for. An endpoint that gave neither
	// a good answer nor a fault in that time is let back in as if it had: every
	// mark expires.
	probingFor = 10 * time.Second
)

func (b *breaker) state(now time.Time) breakerState {
	until := b.openUntil.Load()
	switch {
	case until == 0:
		return closed
	case now.UnixNano() < until:
		return open
	case now.UnixNano() < until+int64(probingFor):
		return probing
	}
	return closed
}

// fault counts a fault of a request that began at the given time. What began
// before an ejection says nothing about the end of it.
func (b *breaker) fault(began, now time.Time, s *Settings) {
	n := b.consecutive.Add(1)
	until := b.openUntil.Load()
	switch b.state(now) {
	case open:
		return
	case probing:
		if began.UnixNano() < until {
			return
		}
	case closed:
		if n < int64(s.ConsecutiveFaults) {
			return
		}
	}
	d := s.EjectionMax
	if k := b.ejections.Load(); k < 16 {
		d = min(d, s.EjectionBase<<k)
	}
	// Of faults at the same time one ejects.
	if b.openUntil.CompareAndSwap(until, now.Add(d).UnixNano()) {
		b.ejections.Add(1)
		b.nextProbe.Store(0)
	}
}

// success counts a good answer to a request that began at the given time.
func (b *breaker) success(began, now time.Time) {
	if b.consecutive.Load() != 0 { // else every answer would write to it
		b.consecutive.Store(0)
	}
	until := b.openUntil.Load()
	if until != 0 && began.UnixNano() >= until && b.openUntil.CompareAndSwap(until, 0) {
		b.closedAt.Store(now.UnixNano())
	}
}

// takeProbe says whether this request may be the next probe.
func (b *breaker) takeProbe(now time.Time) bool {
	if b.state(now) != probing {
		return false
	}
	next := b.nextProbe.Load()
	return now.UnixNano() >= next && b.nextProbe.CompareAndSwap(next, now.Add(probeInterval).UnixNano())
}

// wantsProbe says whether takeProbe would say yes.
func (b *breaker) wantsProbe(now time.Time) bool {
	return b.state(now) == probing && now.UnixNano() >= b.nextProbe.Load()
}

// tick lets expire what is over: an ejection that no probe ended, and the
// memory of ejections once the endpoint has been well for as long as the
// longest one.
func (b *breaker) tick(now time.Time, s *Settings) {
	until := b.openUntil.Load()
	if until != 0 && b.state(now) == closed && b.openUntil.CompareAndSwap(until, 0) {
		b.consecutive.Store(0)
		b.closedAt.Store(now.UnixNano())
	}
	at := b.closedAt.Load()
	if b.openUntil.Load() == 0 && at != 0 && now.UnixNano()-at > int64(s.EjectionMax) {
		b.ejections.Store(0)
		b.closedAt.Store(0)
	}
}

// weight is the part of its keys that the endpoint should have: none while it
// is ejected, then a slow start.
func (b *breaker) weight(now time.Time) float64 {
	if b.state(now) != closed {
		return 0
	}
	at := b.closedAt.Load()
	if at == 0 {
		return 1
	}
	return slowStart(now.Sub(time.Unix(0, at)))
}

const (
	// startWeight is where an endpoint starts again (Envoy's slow start).
	startWeight = 0.1
	// growth is the factor by which it gets more per second: all after 10 s.
	growth = 1.25
)

func slowStart(d time.Duration) float64 {
	return min(1, startWeight*math.Pow(growth, max(0, d.Seconds())))
}

// busyMark sends requests past an endpoint that said it was full, for as long
// as it asked for or for a little longer each time; a good answer clears it.
type busyMark struct {
	until  atomic.Int64 // unix ns
	asked  atomic.Int64 // likewise, by a Retry-After
	streak atomic.Int64
}

const (
	busyBase = 50 * time.Millisecond
	busyMax  = time.Second      // without a Retry-After
	busyAsk  = 30 * time.Second // the most that a Retry-After is believed
)

func (m *busyMark) pushback(now time.Time, retryAfter time.Duration) {
	if retryAfter > 0 {
		later(&m.asked, now.Add(min(retryAfter, busyAsk)).UnixNano())
		return
	}
	d := min(busyMax, busyBase<<min(m.streak.Add(1)-1, 10))
	later(&m.until, now.Add(d).UnixNano())
}

func (m *busyMark) success() {
	for _, mark := range []*atomic.Int64{&m.until, &m.asked, &m.streak} {
		if mark.Load() != 0 { // else every answer would write to it
			mark.Store(0)
		}
	}
}

// asks says whether the endpoint asked to be left alone, is whether the agent
// thinks that it should be.
func (m *busyMark) asks(now time.Time) bool { return now.UnixNano() < m.asked.Load() }
func (m *busyMark) is(now time.Time) bool   { return now.UnixNano() < m.until.Load() }
