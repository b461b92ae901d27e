// Package model holds what is solved: the fleet as its owner describes it
// (Fleet), the convex program made from it (Problem), and its answer
// (Solution), each with units and checks of meaning.
package model

import "github.com/irb-project/irb/solve/profile"

// Fleet is all input of one solve, by name, after the checks of meaning. Its
// rows are in the order of the files; nothing computed from it depends on that
// order.
type Fleet struct {
	Policy   Policy
	Profiles []profile.Spec
	Engines  []Engine
	Demand   []Demand
	Latency  Latency
	Inputs   []InputDigest
	Warnings []string // what the reader of the input should know, file:line first
}

// InputDigest names the exact bytes of one input file.
type InputDigest struct {
	Role   string // "demand", "latency", "engines", "policy"
	File   string // base name
	SHA256 string // hex
}

// Policy is policy.toml; defaults are filled in.
type Policy struct {
	Fleet           string
	MaxUtilization  float64 // (0, 1]
	OutputTokenWork float64 // r, work of one output token in prompt tokens
	RoundTrips      float64 // round trips that a request pays, default 1
	Reference       *Tokens // nil: not set
	Work            WorkKind
	Shed            bool     // shed = "allow"
	FailureDomain   string   // engine label, default "region"
	TTFTLimitMs     float64  // 0: none; lowers the usable utilization
	TBOTLimitMs     float64  // 0: none
	CachePenaltyMs  *float64 // nil: h p TTFT(0)/p_ref of the engine that is left
	Classes         []Class
	Rules           []Rule
	Caps            []Cap
}

// Tokens is the size of a request in tokens.
type Tokens struct{ Prompt, Output float64 }

// WorkKind says what makes an engine slow: see design "The model".
type WorkKind string

// The work models. Auto chooses single where all mixes agree within 5 %.
const (
	WorkAuto   WorkKind = "auto"
	WorkSingle WorkKind = "single"
	WorkSplit  WorkKind = "split"
)

// Class is a traffic class.
type Class struct {
	Name           string
	Model          string              // "" any
	Priority       int                 // higher is kept longer
	Residency      map[string][]string // label -> allowed values, all labels must hold
	Requires       []string            // capabilities
	ContextTokens  float64             // context a request of this class needs; 0: prompt + output means
	MaxShare       float64             // per engine, of offered demand; 0: none
	MaxDomainShare float64             // per failure domain; 0: none
	CachePenaltyMs *float64            // nil: the policy's
	Guard          Guard
	Match          Match
}

// Guard is what agents do otherwise for a class than their own settings say;
// zero or nil: nothing. The solver does not look at it.
type Guard struct {
	RetryAttempts    int      // of one request, the first included
	RetryBudgetRatio *float64 // retries per request of the class
	RetryBudgetFloor *float64 // retries/s of the class, of all agents of a cluster
	TTFTTimeoutMs    float64  // first content of a stream, per attempt
	IdleTimeoutMs    float64  // silence of an engine within a response
	TotalTimeoutMs   float64  // up to the first byte of the answer, all attempts
}

// Match is how the agent recognises a class; empty fields match anything.
type Match struct {
	Path     string // prefix
	Methods  []string
	Models   []string // exact, or a prefix ending in "*"
	Identity []string
	Headers  map[string]string
}

// Rule bounds where some sources may go. Empty Cluster or Class means every
// one; exactly one of Engine and Region is set.
type Rule struct {
	Name                           string // "rule 3 (policy.toml:41)"
	Cluster, Class, Engine, Region string
	Forbid                         bool
	MinShare, MaxShare             *float64 // of a source's offered demand
}

// Cap bounds what an engine or a region takes in total.
type Cap struct {
	Name           string // "cap 1 (policy.toml:50)"
	Engine, Region string
	MaxRPS         float64 // reference requests per second
}

// Engine is a GPU serving pool as engines.toml describes it.
type Engine struct {
	Name             string
	Region           string
	Endpoints        []string
	InternalAffinity bool
	Models           []string // none: any
	MaxContextTokens float64  // 0: any
	Capabilities     []string
	Profile          string
	CapacityRPS      float64 // reference requests/s at utilization 1
	Health           float64 // [0, 1]
	MaxUtilization   float64 // 0: the policy's
	TTFTLimitMs      float64 // 0: the policy's
	TBOTLimitMs      float64
	Labels           map[string]string // "region" is implicit
}

// Label returns the engine's value for a label; "region" is implicit.
func (e Engine) Label(key string) string {
	if v, ok := e.Labels[key]; ok {
		return v
	}
	if key == "region" {
		return e.Region
	}
	return ""
}

// Demand is one source: what a cluster offers in a class.
type Demand struct {
	Cluster, Class string
	RPS            float64 // offered
	PromptTokens   float64 // mean, defaults filled in
	OutputTokens   float64 // mean, defaults filled in
	CachedFraction float64 // of the prompt, [0, 1)
	RequestsPerKey float64 // per solve period, default 1
	Origin         string  // "demand.toml:14", for messages
}

// Latency is the round-trip matrix as it was read. RTTMs[i*len(To)+j] is from
// From[i] to To[j] in ms, NaN where not reachable. To holds engine or region
// names.
type Latency struct {
	From, To []string
	RTTMs    []float32
}
