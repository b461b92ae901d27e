package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// addBounds turns shares, rules and caps into bounds on pairs, groups of
// pairs, and sets of engines. Shares are of offered demand.
func (c *Compiled) addBounds() error {
	beyond := make(map[int][]int) // rule -> rows of Fleet.Demand that do not reach what it wants a least share on
	for s, demand := range c.SourceDemand {
		d := c.Fleet.Demand[demand]
		class := c.classOf[d.Class]
		if class.MaxShare > 0 {
			c.boundPairs(s, nil, 0, class.MaxShare)
		}
		if class.MaxDomainShare > 0 {
			c.addDomainGroups(s, class)
		}
		for i := range c.Fleet.Policy.Rules {
			r := &c.Fleet.Policy.Rules[i]
			if r.forbids() || r.wantsNothing() || !r.appliesTo(d) {
				continue
			}
			if r.MinShare != nil && !c.reaches(s, r) {
				beyond[i] = append(beyond[i], demand)
				continue
			}
			lo, hi := 0.0, math.Inf(1)
			if r.MinShare != nil {
				lo = *r.MinShare
			}
			if r.MaxShare != nil {
				hi = *r.MaxShare
			}
			if r.Engine != "" {
				c.boundPairs(s, r, lo, hi)
			} else {
				c.addGroup(r.Name, s, lo, hi, func(e *EngineNode) bool { return e.Region == r.Region })
			}
		}
	}
	c.warnBeyond(beyond)
	return c.addCaps()
}

// reaches says whether source s may use an engine that rule r covers.
func (c *Compiled) reaches(s int, r *Rule) bool {
	return slices.ContainsFunc(c.Col[c.Row[s]:c.Row[s+1]], func(e int32) bool {
		return r.Engine == c.Engines[e].Name || r.Region == c.Engines[e].Region
	})
}

// warnBeyond warns of least shares on what cannot be used now: an engine that is
// down is no reason to serve nobody.
func (c *Compiled) warnBeyond(beyond map[int][]int) {
	for i := range c.Fleet.Policy.Rules {
		rows := beyond[i]
		if len(rows) == 0 {
			continue
		}
		r, d := &c.Fleet.Policy.Rules[i], c.Fleet.Demand[rows[0]]
		more := ""
		if len(rows) > 1 {
			more = fmt.Sprintf(" and %d other sources", len(rows)-1)
		}
		what := r.Engine
		if r.Region != "" {
			what = "region " + r.Region
		}
		c.warnf("%s: its min_share is left out for %s/%s%s, which may not use %s now", r.Name, d.Cluster, d.Class, more, what)
	}
}

// boundPairs tightens the bounds of the pairs of source s that rule r covers
// (nil: all) to shares of its demand.
func (c *Compiled) boundPairs(s int, r *Rule, minShare, maxShare float64) {
	if c.Lower == nil {
		c.Lower = make([]float64, c.Pairs())
		c.Upper = make([]float64, c.Pairs())
		for k := range c.Upper {
			c.Upper[k] = math.Inf(1)
		}
	}
	demand := c.Sources[s].DemandRPS
	for k := c.Row[s]; k < c.Row[s+1]; k++ {
		if r == nil || r.Engine == c.Engines[c.Col[k]].Name {
			c.Lower[k] = max(c.Lower[k], minShare*demand)
			c.Upper[k] = min(c.Upper[k], maxShare*demand)
		}
	}
}

// PairBounds names what sets the bounds of pair k of source s, "" where nothing
// does: a rule by its name, or the max_share of the class.
func (c *Compiled) PairBounds(s, k int) (lower, upper string) {
	d := c.Fleet.Demand[c.SourceDemand[s]]
	least, most := 0.0, math.Inf(1)
	if class := c.classOf[d.Class]; class.MaxShare > 0 {
		upper, most = "max_share of class "+class.Name, class.MaxShare
	}
	for i := range c.Fleet.Policy.Rules {
		r := &c.Fleet.Policy.Rules[i]
		if r.forbids() || r.Engine != c.Engines[c.Col[k]].Name || !r.appliesTo(d) {
			continue
		}
		if r.MinShare != nil && *r.MinShare > least {
			lower, least = r.Name, *r.MinShare
		}
		if r.MaxShare != nil && *r.MaxShare < most {
			upper, most = r.Name, *r.MaxShare
		}
	}
	return lower, upper
}

func (c *Compiled) addDomainGroups(s int, class *Class) {
	label := c.Fleet.Policy.FailureDomain
	seen := make(map[string]bool)
	for k := c.Row[s]; k < c.Row[s+1]; k++ {
		domain := c.Engines[c.Col[k]].Domain
		if seen[domain] {
			continue
		}
		seen[domain] = true
		c.addGroup(fmt.Sprintf("max_domain_share of %s in %s %s", class.Name, label, domain), s, 0, class.MaxDomainShare,
			func(e *EngineNode) bool { return e.Domain == domain })
	}
}

func (c *Compiled) addGroup(name string, s int, minShare, maxShare float64, in func(*EngineNode) bool) {
	g := Group{Name: name, Source: s, MinRPS: minShare * c.Sources[s].DemandRPS, MaxRPS: maxShare * c.Sources[s].DemandRPS}
	for k := c.Row[s]; k < c.Row[s+1]; k++ {
		if in(&c.Engines[c.Col[k]]) {
			g.Engines = append(g.Engines, c.Col[k])
		}
	}
	if len(g.Engines) > 0 {
		c.Groups = append(c.Groups, g)
	}
}

// addCaps adds the caps. Requests of a cap are reference requests: the
// policy's, else that of its engines, which must then agree.
func (c *Compiled) addCaps() error {
	var errs []error
	for i := range c.Fleet.Policy.Caps {
		limit := &c.Fleet.Policy.Caps[i]
		if limit.MaxRPS == 0 {
			continue // its engines are out of reach
		}
		w := WorkCap{Name: limit.Name}
		work := 0.0
		if r := c.Fleet.Policy.Reference; r != nil {
			work = r.Prompt + c.Fleet.Policy.OutputTokenWork*r.Output
		}
		for e := range c.Engines {
			node := &c.Engines[e]
			if node.Limit <= 0 || !limit.covers(node) {
				continue
			}
			if c.Fleet.Policy.Reference == nil {
				if work != 0 && work != node.ReferenceWork {
					errs = append(errs, fmt.Errorf("%s: its engines have different reference requests; set reference in the policy to say what max_rps counts", limit.Name))
					break
				}
				work = node.ReferenceWork
			}
			w.Engines = append(w.Engines, int32(e))
		}
		if w.MaxWork = limit.MaxRPS * work; len(w.Engines) > 0 {
			c.Caps = append(c.Caps, w)
		}
	}
	return errors.Join(errs...)
}

// addStay adds what leaving the previous engine costs: each req/s that leaves
// loses its cached prefix, cache_penalty_ms once per requests_per_key requests.
func (c *Compiled) addStay(previous Previous) {
	if previous == nil {
		return
	}
	c.Stay = make([]float64, c.Pairs())
	c.StayPenaltyMs = make([]float64, c.Pairs())
	for s, demand := range c.SourceDemand {
		d := c.Fleet.Demand[demand]
		was := previous[SourceKey{d.Cluster, d.Class}]
		for k := c.Row[s]; k < c.Row[s+1]; k++ {
			fraction := was[c.Engines[c.Col[k]].Name]
			if fraction > 0 {
				c.Stay[k] = fraction * d.RPS
				c.StayPenaltyMs[k] = c.CachePenaltyMs(demand, int(c.Col[k])) / d.RequestsPerKey
			}
		}
	}
}

// CachePenaltyMs is what one conversation loses when it leaves an engine: by
// default the time to compute its cached prompt again, h p TTFT(0)/p_ref.
func (c *Compiled) CachePenaltyMs(demand, node int) float64 {
	d := c.Fleet.Demand[demand]
	if p := c.classOf[d.Class].CachePenaltyMs; p != nil {
		return *p
	}
	if p := c.Fleet.Policy.CachePenaltyMs; p != nil {
		return *p
	}
	p := c.Profile(node)
	return d.CachedFraction * d.PromptTokens * p.TTFT.At(0) / p.PromptTokens
}
