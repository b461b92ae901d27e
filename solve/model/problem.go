package model

import (
	"math"
	"slices"

	"github.com/irb-project/irb/solve/profile"
)

// Problem is the convex program of one solve. Sources are in order of cluster
// then class, engines in order of name, pairs in order of source then engine,
// so that the order of input rows cannot matter.
//
// For x[k] >= 0 req/s on pair k = (s, e), single work:
//
//	minimize   sum_k CostMs[k] x[k] + sum_e F_e(Y_e) + sum_k StayPenaltyMs[k] (Stay[k] - x[k])+
//	where      Y_e = sum_k w_s x[k]               work/s on engine e
//	subject to sum_k x[k] = ServedRPS[s]          every source (= DemandRPS unless shed)
//	           Lower[k] <= x[k] <= Upper[k]
//	           Min <= sum of group <= Max         every Group
//	           Y_e <= Limit_e                     every engine
//	           sum of Y_e over a cap <= MaxWork   every Cap
//
// in ms x req/s. Split work replaces F_e(Y_e) by FA_e(P_e) + FB_e(O_e) with
// P_e = sum q_s x[k] and O_e = sum o_s x[k].
type Problem struct {
	Work    WorkKind // WorkSingle or WorkSplit
	Shed    bool     // demand above capacity is shed, not an error
	Sources []Source
	Engines []EngineNode

	// Pairs of source s are Row[s] <= k < Row[s+1]; only eligible ones exist.
	Row    []int
	Col    []int32   // engine of pair k
	CostMs []float64 // net + base, ms per request

	// Nil where no pair has one; else one value per pair, in req/s.
	Lower, Upper []float64 // Upper +Inf: none
	Stay         []float64 // previous weight x present demand
	// StayPenaltyMs is the cost in ms of each req/s that leaves pair k.
	StayPenaltyMs []float64

	Groups []Group
	Caps   []WorkCap
}

// Source is a cluster x class with demand > 0.
type Source struct {
	Cluster, Class string
	Priority       int
	DemandRPS      float64
	// PromptTokens is the effective prompt q = (1 - cached) p.
	PromptTokens, OutputTokens float64
	Work                       float64 // w = q + r o, token equivalents per request
}

// EngineNode is an engine with health and limits applied. Engines with health
// 0 or capacity 0 have Limit 0, no sinks and no pairs.
type EngineNode struct {
	Name, Region, Domain string
	ReferenceWork        float64       // p_ref + r o_ref
	Capacity             float64       // K = capacity_rps x ReferenceWork x health, work/s
	Limit                float64       // C = K x max utilization, work/s
	Delay                *profile.Sink // single work: over Y
	Prefill, Output      *profile.Sink // split work: over P (prompt tokens/s), O (output tokens/s)
}

// Group bounds the flow of one source over a set of engines, in req/s: a
// failure domain or a region.
type Group struct {
	Name           string // "max_domain_share of chat in region-a"
	Source         int
	Engines        []int32
	MinRPS, MaxRPS float64 // MaxRPS +Inf: none
}

// WorkCap bounds the work of a set of engines together.
type WorkCap struct {
	Name    string
	Engines []int32
	MaxWork float64 // work/s
}

// Pairs returns the number of eligible pairs.
func (p *Problem) Pairs() int { return len(p.Col) }

// MinimaRPS returns what the minima of each source ask for together, in req/s,
// those of groups beyond those of their pairs. Of nested groups it may be more.
func (p *Problem) MinimaRPS() []float64 {
	rps := make([]float64, len(p.Sources))
	for s := range rps {
		for k := p.Row[s]; p.Lower != nil && k < p.Row[s+1]; k++ {
			rps[s] += p.Lower[k]
		}
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		more := g.MinRPS
		for k := p.Row[g.Source]; more > 0 && p.Lower != nil && k < p.Row[g.Source+1]; k++ {
			if slices.Contains(g.Engines, p.Col[k]) {
				more -= p.Lower[k]
			}
		}
		rps[g.Source] += max(0, more)
	}
	return rps
}

// BoundSources says which sources have shares or a previous plan.
func (p *Problem) BoundSources() []bool {
	bound := make([]bool, len(p.Sources))
	for i := range p.Groups {
		bound[p.Groups[i].Source] = true
	}
	if p.Upper == nil && p.Stay == nil {
		return bound
	}
	for s := range p.Sources {
		for k := p.Row[s]; k < p.Row[s+1] && !bound[s]; k++ {
			bound[s] = p.Upper != nil && (p.Lower[k] > 0 || !math.IsInf(p.Upper[k], 1)) || p.Stay != nil && p.Stay[k] > 0
		}
	}
	return bound
}
