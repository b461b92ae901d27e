package policy

import "github.com/irb-project/irb/solve/simulate/kv"

// records is what gateways believe each endpoint to have in its KV cache: what
// they sent there, as much of it as fits.
type records struct {
	fleet *Fleet
	sets  [][]*kv.Cache // by agent and endpoint
	sizes [][]float64   // blocks recorded
}

func newRecords(f *Fleet) records {
	r := records{fleet: f, sets: make([][]*kv.Cache, f.Agents), sizes: make([][]float64, f.Agents)}
	for a := range r.sets {
		r.sizes[a] = make([]float64, len(f.Endpoints))
		for _, e := range f.Endpoints {
			r.sets[a] = append(r.sets[a], kv.NewCache(e.CacheBlocks))
		}
	}
	return r
}

// match returns the part of the prompt that an endpoint should have.
func (r *records) match(f *Flight, e int32) float64 {
	blocks := int(f.Request.PromptTokens) / r.fleet.BlockTokens
	if blocks == 0 {
		return 0
	}
	return float64(r.sets[f.Agent][e].Match(&f.Request.Prefix, blocks)) / float64(blocks)
}

// note records a prompt that goes to an endpoint.
func (r *records) note(f *Flight, e int32) {
	set := r.sets[f.Agent][e]
	set.Touch(&f.Request.Prefix, int(f.Request.PromptTokens)/r.fleet.BlockTokens)
	r.sizes[f.Agent][e] = float64(set.Len())
}

// SGLang is the cache_aware policy of the gateways of SGLang and vLLM: the
// endpoint of the longest known prefix if that is more than a part of the
// prompt, else the one with the smallest record; when the busiest has far more
// in flight than the idlest, the one with the fewest.
type SGLang struct {
	base
	records
}

// Their defaults.
const (
	sglangMatch    = 0.3 // --cache-threshold
	sglangAbsolute = 64  // --balance-abs-threshold
	sglangRelative = 1.5 // --balance-rel-threshold
)

// NewSGLang returns the policy.
func NewSGLang(f *Fleet, seed uint64) *SGLang {
	return &SGLang{newBase(f, seed), newRecords(f)}
}

// Route implements Policy.
func (p *SGLang) Route(f *Flight, now float64) (int32, Verdict) {
	ends := p.ends[f.Agent]
	eligible := p.base.fleet.Sources[f.Request.Source].Eligible
	least, most, best := 1<<30, 0, 0.0
	for _, e := range eligible {
		least, most = min(least, ends[e].inFlight), max(most, ends[e].inFlight)
	}
	cost := func(e int32) float64 { return float64(ends[e].inFlight) }
	if !(most-least > sglangAbsolute && float64(most) > sglangRelative*float64(least)) {
		for _, e := range eligible {
			best = max(best, p.match(f, e))
		}
		if cost = func(e int32) float64 { return p.sizes[f.Agent][e] }; best > sglangMatch {
			cost = func(e int32) float64 { return -p.match(f, e) }
		}
	}
	e, verdict := p.choose(f, now, cost)
	if verdict == Send {
		p.note(f, e)
	}
	return e, verdict
}

// LLMD is the default scoring of llm-d's router: the highest sum of the known
// prefix (weight 3), the queue (2) and the use of the KV cache (2), the latter
// two as engines said at the last poll.
type LLMD struct {
	base
	records
	signals Signals
	loads   []Load
}

const (
	llmdPrefix, llmdQueue, llmdKV = 3, 2, 2
	llmdPollS                     = 0.05
)

// NewLLMD returns the policy.
func NewLLMD(f *Fleet, seed uint64, s Signals) *LLMD {
	return &LLMD{newBase(f, seed), newRecords(f), s, make([]Load, len(f.Endpoints))}
}

// Interval implements Policy.
func (p *LLMD) Interval() float64 { return llmdPollS }

// Tick polls the engines.
func (p *LLMD) Tick(float64) error {
	for e := range p.loads {
		p.loads[e] = p.signals.Load(int32(e))
	}
	return nil
}

// Route implements Policy.
func (p *LLMD) Route(f *Flight, now float64) (int32, Verdict) {
	least, most := 1<<30, 0
	for _, e := range p.base.fleet.Sources[f.Request.Source].Eligible {
		least, most = min(least, p.loads[e].Waiting), max(most, p.loads[e].Waiting)
	}
	tie := p.rng.Uint64()
	e, verdict := p.choose(f, now, func(e int32) float64 {
		queue := 1.0
		if most > least {
			queue = float64(most-p.loads[e].Waiting) / float64(most-least)
		}
		score := llmdPrefix*p.match(f, e) + llmdQueue*queue + llmdKV*(1-p.loads[e].KVUsage)
		return 1e-9*hash(tie, e) - score
	})
	if verdict == Send {
		p.note(f, e)
	}
	return e, verdict
}
