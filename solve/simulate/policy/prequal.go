package policy

import (
	"math"
	"slices"
)

// Prequal probes a few endpoints per request and keeps the answers in a pool;
// a request goes to the coldest of the pool: among endpoints whose requests in
// flight are below a quantile, the one of least latency; if all are above, the
// one with the fewest in flight (Wydrowski et al., Load is not what you should
// balance, NSDI 2024). The latency that engines answer is exact here, and the
// network is added to it, which the paper does not need within one place.
type Prequal struct {
	base
	signals Signals
	pools   [][]pool // by agent and source
	sorted  []int
}

// The paper's settings.
const (
	prequalProbes   = 3                 // per request
	prequalPool     = 16                // answers kept
	prequalAgeS     = 1.0               // the oldest answer that counts
	prequalRemove   = 1                 // answers taken out per request
	prequalDelta    = 1.0               // growth of the pool that reuse allows for
	prequalQuantile = 0.840896415253715 // 2^-1/4, of requests in flight: hot above
)

type pool struct {
	coming []probe // answers on their way
	probes []probe // answers that are there, the oldest first
	reuse  float64 // times that an answer may be used
	worst  bool    // whether the worst or the oldest is taken out next
}

type probe struct {
	endpoint int32
	inFlight int
	latencyS float64
	fromS    float64 // when it arrives
	uses     float64
}

// NewPrequal returns the policy.
func NewPrequal(f *Fleet, seed uint64, s Signals) *Prequal {
	p := &Prequal{base: newBase(f, seed), signals: s}
	p.pools = make([][]pool, f.Agents)
	for a := range p.pools {
		for _, src := range f.Sources {
			at := pool{reuse: math.Inf(1)}
			if spare := (1-prequalPool/float64(len(src.Eligible)))*prequalProbes - prequalRemove; spare > 0 {
				at.reuse = max(1, (1+prequalDelta)/spare)
			}
			p.pools[a] = append(p.pools[a], at)
		}
	}
	return p
}

// Route implements Policy.
func (p *Prequal) Route(f *Flight, now float64) (int32, Verdict) {
	src := &p.fleet.Sources[f.Request.Source]
	at := &p.pools[f.Agent][f.Request.Source]
	at.arrive(now)
	hot := p.hotFrom(at)
	tie := p.rng.Uint64()
	e, verdict := p.choose(f, now, func(e int32) float64 {
		// The latest answer of an endpoint; one without comes last.
		for i := len(at.probes) - 1; i >= 0; i-- {
			if x := &at.probes[i]; x.endpoint == e {
				return x.badness(hot) + src.NetS[e]
			}
		}
		return 1e18 * (1 + hash(tie, e))
	})
	if verdict == Send {
		at.use(e)
	}
	at.remove(hot)
	p.probe(at, src, now)
	return e, verdict
}

// badness orders answers: cold ones by latency, before hot ones by requests in
// flight.
func (x *probe) badness(hot int) float64 {
	if x.inFlight >= hot {
		return 1e9 + float64(x.inFlight)
	}
	return x.latencyS
}

// hotFrom returns the number in flight from which an endpoint is hot.
func (p *Prequal) hotFrom(at *pool) int {
	p.sorted = p.sorted[:0]
	for i := range at.probes {
		p.sorted = append(p.sorted, at.probes[i].inFlight)
	}
	if len(p.sorted) == 0 {
		return math.MaxInt
	}
	slices.Sort(p.sorted)
	return p.sorted[int(prequalQuantile*float64(len(p.sorted)-1))] + 1
}

// probe asks some endpoints; the answers arrive a round trip later.
func (p *Prequal) probe(at *pool, src *Source, now float64) {
	for range min(prequalProbes, len(src.Eligible)) {
		e := src.Eligible[p.rng.IntN(len(src.Eligible))]
		load := p.signals.Load(e)
		if !load.Up {
			continue
		}
		at.coming = append(at.coming, probe{
			endpoint: e, inFlight: load.Running + load.Waiting, latencyS: load.LatencyS, fromS: now + src.NetS[e],
		})
	}
}

func (at *pool) drop(i int) { at.probes = slices.Delete(at.probes, i, i+1) }

// arrive takes in the answers that have come and lets go of the old ones.
func (at *pool) arrive(now float64) {
	left := at.coming[:0]
	for _, x := range at.coming {
		if x.fromS > now {
			left = append(left, x)
			continue
		}
		if len(at.probes) == prequalPool {
			at.drop(0)
		}
		at.probes = append(at.probes, x)
	}
	at.coming = left
	for len(at.probes) > 0 && now-at.probes[0].fromS > prequalAgeS {
		at.drop(0)
	}
}

// use counts a request that goes to an endpoint in what is known of it.
func (at *pool) use(endpoint int32) {
	for i := len(at.probes) - 1; i >= 0; i-- {
		x := &at.probes[i]
		if x.endpoint != endpoint {
			continue
		}
		x.inFlight++
		if x.uses++; x.uses >= at.reuse {
			at.drop(i)
		}
	}
}

// remove takes out the oldest and the worst in turn.
func (at *pool) remove(hot int) {
	for range prequalRemove {
		if len(at.probes) <= 2 {
			return
		}
		out := 0
		if at.worst {
			for i := range at.probes {
				if at.probes[i].badness(hot) > at.probes[out].badness(hot) {
					out = i
				}
			}
		}
		at.worst = !at.worst
		at.drop(out)
	}
}
