package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/irb-project/irb/solve/profile"
)

// maxUtilization returns the utilization up to which an engine is planned:
// its own or the policy's, lowered to where the latency limits still hold.
func (c *Compiled) maxUtilization(e Engine, p profile.Profile) float64 {
	limit := e.MaxUtilization
	if limit == 0 {
		limit = c.Fleet.Policy.MaxUtilization
	}
	for _, l := range c.latencyLimits(e, p) {
		limit = min(limit, l.curve.MaxUtilization(l.ms))
	}
	return limit
}

// latencyLimit is a limit on a latency of the reference request.
type latencyLimit struct {
	name  string // as in the policy
	curve profile.Curve
	ms    float64
}

// latencyLimits returns the latency limits of an engine, its own or the policy's.
func (c *Compiled) latencyLimits(e Engine, p profile.Profile) []latencyLimit {
	limits := []latencyLimit{
		{"ttft_limit_ms", p.TTFT, firstNonZero(e.TTFTLimitMs, c.Fleet.Policy.TTFTLimitMs)},
		{"tbot_limit_ms", p.TBOT, firstNonZero(e.TBOTLimitMs, c.Fleet.Policy.TBOTLimitMs)},
	}
	return slices.DeleteFunc(limits, func(l latencyLimit) bool { return l.ms == 0 })
}

// brokenLimits says which latency limits an engine breaks under any load:
// "ttft_limit_ms 10: its profile "h100" starts at 80 ms".
func (c *Compiled) brokenLimits(e Engine, p profile.Profile) string {
	var broken []string
	for _, l := range c.latencyLimits(e, p) {
		if l.curve.MaxUtilization(l.ms) <= 0 {
			broken = append(broken, fmt.Sprintf("%s %g: its profile %q starts at %g ms", l.name, l.ms, p.Name, l.curve.At(0)))
		}
	}
	return strings.Join(broken, ", and ")
}

// BeyondLimits says by how much an engine of split work breaks its latency
// limits, "" if it keeps them: its prompts and its outputs each run at a
// utilization of their own, while the limits lower only their joint one.
func (c *Compiled) BeyondLimits(node int, prompts, outputs float64) string {
	e := c.Fleet.Engines[c.NodeEngine[node]]
	var broken []string
	for _, l := range c.latencyLimits(e, c.Profile(node)) {
		v := prompts
		if l.name == "tbot_limit_ms" {
			v = outputs
		}
		if l.curve.At(v) > l.ms*(1+1e-6) {
			broken = append(broken, fmt.Sprintf("%s %g does not hold at utilization %.3g of its own", l.name, l.ms, v))
		}
	}
	return strings.Join(broken, ", ")
}

func firstNonZero(a, b float64) float64 {
	if a != 0 {
		return a
	}
	return b
}
