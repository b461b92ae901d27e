package policy

// Nearest sends to the nearest engine, a conversation to one endpoint there,
// and to the next nearest when that fails.
type Nearest struct{ base }

// NewNearest returns the policy.
func NewNearest(f *Fleet, seed uint64) *Nearest { return &Nearest{newBase(f, seed)} }

// Route implements Policy.
func (p *Nearest) Route(f *Flight, now float64) (int32, Verdict) {
	key := p.key(f)
	net := p.fleet.Sources[f.Request.Source].NetS
	return p.choose(f, now, func(e int32) float64 {
		// Endpoints of one engine are equally far: the hash, below a nanosecond,
		// orders those.
		return net[e] + 1e-9*hash(key, e)
	})
}

// RoundRobin goes round all eligible endpoints in proportion to their capacity,
// smoothly, as nginx does.
type RoundRobin struct {
	base
	credit [][][]float64 // by agent, source and endpoint
}

// NewRoundRobin returns the policy.
func NewRoundRobin(f *Fleet, seed uint64) *RoundRobin {
	p := &RoundRobin{base: newBase(f, seed)}
	p.credit = make([][][]float64, f.Agents)
	for a := range p.credit {
		p.credit[a] = make([][]float64, len(f.Sources))
		for s := range f.Sources {
			p.credit[a][s] = make([]float64, len(f.Endpoints))
			for e := range f.Endpoints { // gateways that start together must not move in step
				p.credit[a][s][e] = p.rng.Float64() * f.Endpoints[e].CapacityRPS
			}
		}
	}
	return p
}

// Route implements Policy.
func (p *RoundRobin) Route(f *Flight, now float64) (int32, Verdict) {
	credit := p.credit[f.Agent][f.Request.Source]
	sum := 0.0
	for _, e := range p.fleet.Sources[f.Request.Source].Eligible {
		credit[e] += p.fleet.Endpoints[e].CapacityRPS
		sum += p.fleet.Endpoints[e].CapacityRPS
	}
	e, verdict := p.choose(f, now, func(e int32) float64 { return -credit[e] })
	if verdict == Send {
		credit[e] -= sum
	}
	return e, verdict
}

// LeastRequests sends to the endpoint where this gateway has the fewest
// requests in flight for its capacity; of equal ones any.
type LeastRequests struct{ base }

// NewLeastRequests returns the policy.
func NewLeastRequests(f *Fleet, seed uint64) *LeastRequests { return &LeastRequests{newBase(f, seed)} }

// Route implements Policy.
func (p *LeastRequests) Route(f *Flight, now float64) (int32, Verdict) {
	ends := p.ends[f.Agent]
	tie := p.rng.Uint64()
	return p.choose(f, now, func(e int32) float64 {
		return (float64(ends[e].inFlight) + 1e-6*hash(tie, e)) / p.fleet.Endpoints[e].CapacityRPS
	})
}
