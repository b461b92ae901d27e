// Package policy is ways to route requests that irb is compared with. Each has
// the settings that its authors recommend, and sees what it would see in a
// gateway: its own requests, and what engines say of themselves.
package policy

import (
	"math"
	"math/rand/v2"

	"github.com/irb-project/irb/solve/simulate/traffic"
)

// Fleet is what every policy knows from the start.
type Fleet struct {
	Endpoints []Endpoint
	Sources   []Source
	Agents    int // gateways of all clusters together
	// BlockTokens is the size of the KV blocks that prompts are compared by.
	BlockTokens int
}

// Endpoint is one address.
type Endpoint struct {
	Engine      int32
	Name        string
	CapacityRPS float64 // reference requests/s
	CacheBlocks int     // that its KV cache holds
}

// Source is a cluster x class.
type Source struct {
	Eligible []int32   // endpoints, nearest engine first
	NetS     []float64 // by endpoint: network time of a request in s
}

// Load is what an endpoint says of itself.
type Load struct {
	Running, Waiting int
	KVUsage          float64 // 0 to 1
	Utilization      float64 // 0 to 1
	LatencyS         float64 // of a reference request, at the load of now
	Up               bool
}

// Signals asks endpoints for their load of now. Policies that would learn it
// later keep what they asked.
type Signals interface {
	Load(endpoint int32) Load
}

// Flight is a request on its way.
type Flight struct {
	ID       int32
	Agent    int32 // gateway that it came to
	Request  traffic.Request
	Endpoint int32 // of the present attempt
	SentS    float64
	FirstS   float64 // when the first token came back; 0: not yet
	Tokens   float64 // that came back at the end
	// CachedTokens of the prompt needed no computing.
	CachedTokens float64
	Tried        [MaxAttempts]int32
	Attempts     int
}

// MaxAttempts is how many endpoints a request is sent to at most.
const MaxAttempts = 3

func (f *Flight) tried(endpoint int32) bool {
	for _, e := range f.Tried[:f.Attempts] {
		if e == endpoint {
			return true
		}
	}
	return false
}

// Outcome is how an attempt ended.
type Outcome uint8

// The outcomes.
const (
	Success  Outcome = iota
	Pushback         // the queue was full
	Fault            // no connection, or broken off
	Refused          // no connection
)

// Verdict is what becomes of a request.
type Verdict uint8

// The verdicts.
const (
	Send Verdict = iota
	Shed         // refused by the gateway
	Fail         // no further endpoint is asked
)

// Policy routes the requests of all gateways. Times are in s from the start.
type Policy interface {
	// Route picks the endpoint of the first attempt of a request, or, after
	// failed ones, of the next.
	Route(f *Flight, now float64) (endpoint int32, verdict Verdict)
	// First tells that the first token has reached the gateway.
	First(f *Flight, now float64)
	// Done tells how the attempt ended.
	Done(f *Flight, o Outcome, now float64)
	// Tick is called every Interval seconds; an error ends the simulation.
	Tick(now float64) error
	Interval() float64
}

// base is what the policies here have in common: retries on other endpoints,
// and Envoy's outlier ejection, per gateway.
type base struct {
	fleet *Fleet
	rng   *rand.Rand
	ends  [][]end // by agent and endpoint
}

// end is what a gateway knows of an endpoint.
type end struct {
	inFlight     int
	faults       int // consecutive
	ejections    float64
	ejectedUntil float64
}

func newBase(f *Fleet, seed uint64) base {
	b := base{fleet: f, rng: rand.New(rand.NewPCG(seed, 0x706f6c696379))}
	b.ends = make([][]end, f.Agents)
	for i := range b.ends {
		b.ends[i] = make([]end, len(f.Endpoints))
	}
	return b
}

// Envoy's defaults.
const (
	consecutiveFaults = 5
	ejectionS         = 30
	maxEjectionS      = 300
)

// usable says whether a request may go to an endpoint; when lax, ejected ones
// are taken too.
func (b *base) usable(f *Flight, endpoint int32, lax bool, now float64) bool {
	return !f.tried(endpoint) && (lax || b.ends[f.Agent][endpoint].ejectedUntil <= now)
}

// choose returns the usable endpoint of the least cost. Without one the ejected
// ones are asked after all.
func (b *base) choose(f *Flight, now float64, cost func(endpoint int32) float64) (int32, Verdict) {
	if f.Attempts >= MaxAttempts {
		return 0, Fail
	}
	for _, lax := range [...]bool{false, true} {
		best, least := int32(-1), math.Inf(1)
		for _, e := range b.fleet.Sources[f.Request.Source].Eligible {
			if !b.usable(f, e, lax, now) {
				continue
			}
			if c := cost(e); c < least || best < 0 {
				best, least = e, c
			}
		}
		if best >= 0 {
			b.ends[f.Agent][best].inFlight++
			return best, Send
		}
	}
	return 0, Fail
}

// First implements Policy.
func (b *base) First(*Flight, float64) {}

// Done implements Policy.
func (b *base) Done(f *Flight, o Outcome, now float64) {
	e := &b.ends[f.Agent][f.Endpoint]
	e.inFlight--
	switch o {
	case Success:
		e.faults = 0
	case Fault, Refused:
		if e.faults++; e.faults >= consecutiveFaults {
			e.faults = 0
			e.ejections++
			e.ejectedUntil = now + min(maxEjectionS, ejectionS*e.ejections)
		}
	}
}

// Tick implements Policy.
func (b *base) Tick(float64) error { return nil }

// Interval implements Policy.
func (b *base) Interval() float64 { return math.Inf(1) }

// key is what keeps the requests of a conversation together; those of none get
// a random one.
func (b *base) key(f *Flight) uint64 {
	if k := f.Request.Conversation; k != 0 {
		return k
	}
	return b.rng.Uint64()
}

// hash returns a number in (0, 1) drawn from a key and an endpoint.
func hash(key uint64, endpoint int32) float64 {
	x := key ^ (uint64(endpoint)+1)*0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	x ^= x >> 31
	return (float64(x>>11) + 0.5) / (1 << 53)
}
