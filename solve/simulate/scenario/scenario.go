// Package scenario is what happens in a simulation beside the fleet: traffic,
// events, and the settings of the policies that are compared.
package scenario

import (
	"github.com/irb-project/irb/solve/simulate/irb"
	"github.com/irb-project/irb/solve/simulate/policy"
)

// Scenario is one simulation. Times are in s from the start.
type Scenario struct {
	Name      string
	DurationS float64
	WarmupS   float64 // not counted
	Seed      uint64
	Agents    int // gateways per cluster
	Traffic   Traffic
	// CacheTokens is what the KV cache of an endpoint holds; 0: eight times what
	// can run there.
	CacheTokens float64
	SLO         SLO
	Policies    []string
	IRB         irb.Options
	Legacy      []policy.Gains // tried; the best and the best that is stable are shown
	Steps       []Step
	Events      []Event
}

// Traffic says what requests there are.
type Traffic struct {
	Trace string  // path of a trace; "": made from the fleet's demand
	Speed float64 // of a trace: times as fast as recorded
	Scale float64 // of synthetic traffic: times the fleet's demand

	Turns        float64 // mean requests per conversation; 0: requests_per_key of the demand
	ThinkS       float64 // mean time from an answer to the next turn
	LengthCV     float64 // coefficient of variation of prompts and answers
	SharedTokens float64 // opening that all conversations of a source share
	BlockTokens  int     // of a KV block
}

// SLO is what makes an answer good: both must hold. 0: no limit.
type SLO struct {
	TTFTMs float64 // from the client's request to its first token
	TBOTMs float64 // mean of the answer
}

// Step is the demand file that holds from a time on, linear in between.
type Step struct {
	AtS  float64
	File string // demand.csv or demand.toml
}

// Kind is what an event does.
type Kind string

// The kinds of events.
const (
	Fail     Kind = "fail"     // endpoints refuse connections and lose all they had
	Slow     Kind = "slow"     // all times are Factor times as long
	Capacity Kind = "capacity" // Factor of the capacity is left
	Demand   Kind = "demand"   // Factor times the demand
)

// Event is something that happens for a while.
type Event struct {
	Kind      Kind
	AtS, ForS float64 // ForS 0: to the end
	Engine    string  // of fail, slow, capacity
	Endpoints int     // how many of the engine's, from the first; 0: all
	Cluster   string  // of demand; "": all
	Class     string  // of demand; "": all
	Factor    float64
}

// Default returns the settings that a scenario file does not name.
func Default() Scenario {
	s := Scenario{
		DurationS: 1800, WarmupS: 300, Seed: 1, Agents: 2,
		Traffic: Traffic{Speed: 1, Scale: 1, ThinkS: 30, LengthCV: 1, BlockTokens: 64},
		// MLPerf Inference, Llama 2 70B in the server scenario.
		SLO:      SLO{TTFTMs: 2000, TBOTMs: 200},
		Policies: []string{"nearest", "round-robin", "least-requests", "prequal", "sglang", "llm-d", "legacy", "irb"},
		IRB:      irb.Options{EveryS: 300, StaleS: 15, Noise: 0.05},
	}
	for _, gain := range []float64{0.1, 0.4, 1} {
		for _, smoothing := range []float64{0.3, 1} {
			s.Legacy = append(s.Legacy, policy.Gains{Gain: gain, Smoothing: smoothing, IntervalS: 15})
		}
	}
	return s
}
