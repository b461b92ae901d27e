package model

import (
	"fmt"
	"math"
	"slices"
)

// Exclusion is why an engine may not serve a source; "" if it may. It reads as
// the end of a sentence: "a-1 is not used: <exclusion>".
type Exclusion string

// EligibleEngines returns the engine nodes that may serve a row of
// Fleet.Demand, ascending: those that Excluded says nothing against.
func (c *Compiled) EligibleEngines(demand int) []int32 {
	d := c.Fleet.Demand[demand]
	class := c.classOf[d.Class]
	var forbids []*Rule
	for i := range c.forbids {
		if c.forbids[i].appliesTo(d) {
			forbids = append(forbids, &c.forbids[i])
		}
	}
	fits := c.classFits(class)
	nodes := make([]int32, 0, len(c.Engines))
next:
	for e := range c.Engines {
		if !fits[e] || math.IsNaN(c.RTTMs(demand, e)) || c.Engines[e].Limit <= 0 || c.shut[e] != nil {
			continue
		}
		engine := &c.Fleet.Engines[c.NodeEngine[e]]
		if engine.MaxContextTokens > 0 && class.contextTokens(d) > engine.MaxContextTokens {
			continue
		}
		for _, r := range forbids {
			if r.covers(d, engine) {
				continue next
			}
		}
		nodes = append(nodes, int32(e))
	}
	return nodes
}

// classFits says which engine nodes fit a class whatever the source: model,
// capabilities, residency. It is the same for every source of the class.
func (c *Compiled) classFits(class *Class) []bool {
	if fits, ok := c.fits[class.Name]; ok {
		return fits
	}
	fits := make([]bool, len(c.Engines))
	for e := range fits {
		fits[e] = class.excludes(&c.Fleet.Engines[c.NodeEngine[e]]) == ""
	}
	c.fits[class.Name] = fits
	return fits
}

// Excluded says why an engine node may not serve a row of Fleet.Demand.
func (c *Compiled) Excluded(demand, node int) Exclusion {
	d := c.Fleet.Demand[demand]
	class := c.classOf[d.Class]
	e := &c.Fleet.Engines[c.NodeEngine[node]]
	if why := class.excludes(e); why != "" {
		return why
	}
	if need := class.contextTokens(d); e.MaxContextTokens > 0 && need > e.MaxContextTokens {
		return Exclusion(fmt.Sprintf("its context of %g tokens is below the %g needed", e.MaxContextTokens, need))
	}
	for i := range c.forbids {
		if r := &c.forbids[i]; r.covers(d, e) {
			return Exclusion(r.Name + " forbids it")
		}
	}
	switch {
	case math.IsNaN(c.RTTMs(demand, node)):
		return "it is not reachable from " + Exclusion(d.Cluster)
	case c.Engines[node].Limit <= 0:
		return "it has no capacity now (health or capacity is 0)"
	case c.shut[node] != nil:
		return Exclusion(c.shut[node].Name + " lets it take nothing")
	}
	return ""
}

// excludes says why an engine does not fit a class, whatever the source.
func (c *Class) excludes(e *Engine) Exclusion {
	if c.Model != "" && len(e.Models) > 0 && !slices.Contains(e.Models, c.Model) {
		return Exclusion(fmt.Sprintf("it does not serve model %q", c.Model))
	}
	for _, capability := range c.Requires {
		if !slices.Contains(e.Capabilities, capability) {
			return Exclusion(fmt.Sprintf("it lacks the capability %q", capability))
		}
	}
	for _, label := range sortedKeys(c.Residency) {
		if !slices.Contains(c.Residency[label], e.Label(label)) {
			return Exclusion(fmt.Sprintf("residency %s = %q excludes it: its %s is %q", label, c.Residency[label], label, e.Label(label)))
		}
	}
	return ""
}

func (c *Class) contextTokens(d Demand) float64 {
	if c.ContextTokens > 0 {
		return c.ContextTokens
	}
	return d.PromptTokens + d.OutputTokens
}

// forbids says whether a rule keeps its sources off its engines: a share of 0
// is no share of any plan, of a fallback or of a source without demand either.
func (r *Rule) forbids() bool { return r.Forbid || r.MaxShare != nil && *r.MaxShare == 0 }

// wantsNothing says whether a rule bounds nothing: a least share of 0.
func (r *Rule) wantsNothing() bool { return r.MinShare != nil && *r.MinShare == 0 }

// covers says whether a cap bounds an engine.
func (c *Cap) covers(n *EngineNode) bool { return c.Engine == n.Name || c.Region == n.Region }

// capOfNothing returns the cap that lets an engine take nothing at all, nil if
// there is none.
func (c *Compiled) capOfNothing(n *EngineNode) *Cap {
	for i := range c.Fleet.Policy.Caps {
		if limit := &c.Fleet.Policy.Caps[i]; limit.MaxRPS == 0 && limit.covers(n) {
			return limit
		}
	}
	return nil
}

// appliesTo says whether a rule speaks of a source.
func (r *Rule) appliesTo(d Demand) bool {
	return (r.Cluster == "" || r.Cluster == d.Cluster) && (r.Class == "" || r.Class == d.Class)
}

// covers says whether a rule speaks of a source and an engine.
func (r *Rule) covers(d Demand, e *Engine) bool {
	return r.appliesTo(d) && (r.Engine == "" || r.Engine == e.Name) && (r.Region == "" || r.Region == e.Region)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
