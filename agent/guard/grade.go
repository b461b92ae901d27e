package guard

import (
	"math/bits"
	"time"
)

// Stay returns the thresholds for pick.Request. The slice is not changed.
func (c *Class) Stay() []uint64 {
	if c.peers == nil {
		return c.plan.spec.Stay
	}
	return c.peers.marks.Load().stay
}

// Grade says how well an endpoint suits a request.
type Grade uint8

// The grades: an endpoint of a worse one is for requests that find no better.
const (
	Clear  Grade = iota
	Spared       // it is full, or its penalty sends this key on
	Out          // it is ejected
)

// Grade grades an endpoint for a key. It is called for each endpoint that a
// request passes; a probe is granted to the first that asks. Away says that the
// request has passed an endpoint that is there, but spares it: see Endpoint.full.
func (c *Class) Grade(engine, i int, key uint64, away bool, now time.Time) Grade {
	e := c.plan.endpoints[engine][i]
	alike := false
	if c.peers != nil {
		m := c.peers.marks.Load()
		alike = m.alikeFull(engine, i)
		switch k := m.keepOf(engine, i); {
		case k == 0:
			if e.breaker.takeProbe(now) {
				return Clear
			}
			return Out
		case k != stayAll && mix(key^e.hash) >= k:
			return Spared
		}
	}
	if e.pushed.asks(now) || !alike && e.pushed.is(now) || e.full(c, away) {
		return Spared
	}
	return Clear
}

// WhySpared says why an endpoint was not Clear for a key, in a word for the log:
// ejected, penalty, retry_after (it asked to be left alone), refused (it said that
// it was full) or full.
func (c *Class) WhySpared(engine, i int, key uint64, now time.Time) string {
	e := c.plan.endpoints[engine][i]
	if c.peers != nil {
		switch k := c.peers.marks.Load().keepOf(engine, i); {
		case k == 0:
			return "ejected"
		case k != stayAll && mix(key^e.hash) >= k:
			return "penalty"
		}
	}
	switch {
	case e.pushed.asks(now):
		return "retry_after"
	case e.pushed.is(now):
		return "refused"
	}
	return "full"
}

// stayAll is the threshold that keeps all keys.
const stayAll = ^uint64(0)

// threshold returns the part w of all keys as a bound of their hashes.
func threshold(w float64) uint64 {
	switch {
	case w >= 1:
		return stayAll
	case !(w > 0):
		return 0
	}
	return uint64(w * (1 << 64))
}

// mix is the finaliser of SplitMix64 (Stafford's mix 13), as in package pick.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 27
	x *= 0x94D049BB133111EB
	return x ^ x>>31
}

// part returns the hash as a number below n.
func part(hash uint64, n uint64) uint64 {
	hi, _ := bits.Mul64(hash, n)
	return hi
}
