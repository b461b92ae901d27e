package snapshot

import "math"

// Tolerances of sums that agents do not route by; people read them.
const (
	// sumTolerance is relative, for rates, fractions and costs that were added
	// in floating point.
	sumTolerance = 1e-6
	// fractionTolerance is absolute, between a fraction and its quota: what
	// compaction of the layout may give away, with room.
	fractionTolerance = 0.01
)

func (c *checker) source(s *Source) {
	where := place{kind: "source", cluster: s.Cluster, name: s.Class}
	c.name("cluster", s.Cluster)
	class := c.classes[s.Class]
	if class == nil {
		c.errorf("%s: unknown class", where)
	}
	for _, n := range []struct {
		name  string
		value float64
	}{
		{"offered_rps", s.OfferedRPS},
		{"served_rps", s.ServedRPS},
		{"shed_rps", s.ShedRPS},
		{"prompt_tokens", s.PromptTokens},
		{"output_tokens", s.OutputTokens},
		{"requests_per_key", s.RequestsPerKey},
		{"latency_ms", s.LatencyMs},
		{"profile_latency_ms", s.ProfileMs},
	} {
		c.atLeast0(where, n.name, n.value)
	}
	c.finite(where, "price_ms", s.PriceMs)
	c.number(where, "cached_fraction", s.CachedFraction, 0, 1)
	if s.ServedRPS > s.OfferedRPS*(1+sumTolerance) {
		c.errorf("%s: served_rps is %v, want at most the offered %v", where, s.ServedRPS, s.OfferedRPS)
	}
	c.sum(where, "served_rps and shed_rps", s.ServedRPS+s.ShedRPS, s.OfferedRPS)

	c.used = emptied(c.used)
	c.weights(where, s, class)
	c.layout(where, s)
	for i := range s.Fallbacks {
		f := &s.Fallbacks[i]
		c.route(where, "fallback", f.Engine, class)
		c.atLeast0(where.in("fallback", f.Engine), "absorb_rps", f.AbsorbRPS)
	}
	c.alternatives(where, s)
}

// emptied returns a map to use again, another one if it held much: emptying it
// takes as long then for each small source that follows.
func emptied[V any](m map[string]V) map[string]V {
	if len(m) > 64 {
		return map[string]V{}
	}
	clear(m)
	return m
}

// route demands that requests of the class may and can go to an engine, which
// has one role in a source only.
func (c *checker) route(where place, role, engine string, class *Class) {
	if other := c.used[engine]; other != "" {
		c.errorf("%s: engine %q is a %s and a %s", where, engine, other, role)
	}
	c.used[engine] = role
	e := c.engines[engine]
	if e == nil {
		c.errorf("%s: %s %q: unknown engine", where, role, engine)
		return
	}
	if len(e.Endpoints) == 0 {
		c.errorf("%s: %s %q: the engine has no endpoint", where, role, engine)
	}
	if class == nil {
		return
	}
	if err := class.Admits(e); err != nil {
		c.errorf("%s: %s %q may not serve it: %w", where, role, engine, err)
	}
}

func (c *checker) weights(where place, s *Source, class *Class) {
	var quota int64
	var fraction, rps float64
	for i := range s.Weights {
		w := &s.Weights[i]
		at := where.in("weight", w.Engine)
		c.order(where.in("weight", ""), i, func(j int) string { return s.Weights[j].Engine })
		c.route(where, "weight", w.Engine, class)
		if w.Quota < 0 || w.Quota > QuotaSum {
			c.errorf("%s: quota is %d, want [0, 2^32]", at, w.Quota)
			return
		}
		c.number(at, "fraction", w.Fraction, 0, 1)
		if share := float64(w.Quota) / QuotaSum; math.Abs(share-w.Fraction) > fractionTolerance {
			c.errorf("%s: fraction is %v, its quota is %v", at, w.Fraction, share)
		}
		c.atLeast0(at, "rps", w.RPS)
		c.atLeast0(at, "rtt_ms", w.RTTMs)
		c.cost(at, &w.Cost)
		quota += w.Quota
		fraction += w.Fraction
		rps += w.RPS
	}
	if quota != QuotaSum {
		c.errorf("%s: quotas sum to %d, want exactly 2^32", where, quota)
	}
	c.sum(where, "fractions", fraction, 1)
	c.sum(where, "rps of weights", rps, s.ServedRPS)
}

// cost demands that the parts of a marginal cost make up its total.
func (c *checker) cost(where place, k *Cost) {
	parts := k.Net + k.Base + k.Delay + k.Externality + k.Kink + k.Limit + k.Share + k.Cache
	scale := math.Abs(k.Net) + math.Abs(k.Base) + math.Abs(k.Delay) + math.Abs(k.Externality) +
		math.Abs(k.Kink) + math.Abs(k.Limit) + math.Abs(k.Share) + math.Abs(k.Cache)
	if !(math.Abs(parts-k.Total) <= sumTolerance*scale) || math.IsInf(scale, 1) {
		c.errorf("%s: cost_ms: the parts sum to %v, total is %v", where, parts, k.Total)
	}
	c.finite(where, "cost_ms.one_less", k.OneLess)
	c.finite(where, "cost_ms.one_more", k.OneMore)
	if k.OneLess != 0 && k.OneMore != 0 && k.OneLess > k.OneMore {
		c.errorf("%s: cost_ms: one less saves %v, one more costs %v, want at least as much", where, k.OneLess, k.OneMore)
	}
}

// layout demands ranges that cover the hash space and measure what the quotas
// say.
func (c *checker) layout(where place, s *Source) {
	if len(s.LayoutFrom) != len(s.LayoutTo) || len(s.LayoutFrom) == 0 {
		c.errorf("%s: layout has %d starts and %d engines, want as many and at least one",
			where, len(s.LayoutFrom), len(s.LayoutTo))
		return
	}
	if s.LayoutFrom[0] != 0 {
		c.errorf("%s: layout_from starts at %d, want 0", where, s.LayoutFrom[0])
	}
	measure := make(map[string]int64, len(s.Weights))
	for i, from := range s.LayoutFrom {
		end := int64(QuotaSum)
		if i+1 < len(s.LayoutFrom) {
			end = int64(s.LayoutFrom[i+1])
		}
		if end <= int64(from) {
			c.errorf("%s: layout_from: %d after %d, want ascending", where, end, from)
			return
		}
		measure[s.LayoutTo[i]] += end - int64(from)
	}
	for i := range s.Weights {
		w := &s.Weights[i]
		if measure[w.Engine] != w.Quota {
			c.errorf("%s: weight %s: the layout gives it %d of 2^32, its quota is %d", where, w.Engine, measure[w.Engine], w.Quota)
		}
		delete(measure, w.Engine)
	}
	for _, engine := range sortedKeys(measure) {
		c.errorf("%s: the layout names engine %q, which has no weight", where, engine)
	}
}

func (c *checker) alternatives(where place, s *Source) {
	c.seen = emptied(c.seen)
	seen := c.seen
	for i := range s.Alternatives {
		a := &s.Alternatives[i]
		at := where.in("alternative", a.Engine)
		switch {
		case c.engines[a.Engine] == nil:
			c.errorf("%s: unknown engine", at)
		case c.used[a.Engine] == "weight" || seen[a.Engine]:
			c.errorf("%s: the engine is a weight, or given twice", at)
		}
		seen[a.Engine] = true
		c.finite(at, "loses_by_ms", a.LosesByMs)
		c.cost(at, &a.Cost)
	}
}

// sum demands that a sum is what it should be, within rounding.
func (c *checker) sum(where place, what string, got, want float64) {
	if !(math.Abs(got-want) <= sumTolerance*math.Abs(want)+1e-12) {
		c.errorf("%s: %s sum to %v, want %v", where, what, got, want)
	}
}
