// Package snapshot is the signed weight file: its types, its text form, its
// signatures, and the rules by which an agent accepts one.
//
// A file is a body and its signatures. The body is TOML in a strict subset
// (see Decode); each signature is four comment lines, the lines of a minisign
// signature file after "# minisign: ". Any tool can take them apart:
//
//	grep -v '^# minisign: ' weights.toml > body
//	sed -n 's/^# minisign: //p' weights.toml > body.minisig
//	minisign -Vm body -P KEY
package snapshot

import "time"

// Format is the format that this code writes; it reads Format and Format-1.
const Format = 1

// QuotaSum is what the quotas of a source sum to: the size of the hash space.
const QuotaSum = 1 << 32

// Snapshot is the body of a weight file. A table (a struct, or a slice of them)
// comes after the plain keys of its parent, but for those marked inline, so
// that fields are written in the order they have here. Engines are in order of name, sources
// in order of cluster then class, weights in order of engine.
type Snapshot struct {
	Format   int       `toml:"format"`
	Fleet    string    `toml:"fleet"`
	Sequence int64     `toml:"sequence"` // max(previous + 1, unix ms)
	Created  time.Time `toml:"created"`
	Expires  time.Time `toml:"expires"`
	Author   string    `toml:"author,omitempty"` // free text
	Reason   string    `toml:"reason,omitempty"` // free text

	// Part is the cluster that this file is for, where a plan was split into one
	// file per cluster; "" for a whole plan. A part has the engines that its
	// sources name, and no proof.
	Part string `toml:"part,omitempty"`

	Inputs  []Input  `toml:"input"`
	Solver  Solver   `toml:"solver"`
	Policy  Policy   `toml:"policy"`
	Classes []Class  `toml:"class"`
	Engines []Engine `toml:"engine"`
	Groups  []Group  `toml:"group,omitempty"` // only binding ones: part of the proof
	Caps    []Cap    `toml:"cap,omitempty"`
	Cuts    []Cut    `toml:"cut,omitempty"`
	Sources []Source `toml:"source"`
}

// Input is the digest of the exact bytes that one part of the input had.
type Input struct {
	Role   string `toml:"role"` // demand, latency, engines, policy, previous
	File   string `toml:"file"` // base name
	SHA256 string `toml:"sha256"`
}

// Solver is what was solved and how well. Objective, Bound in ms x req/s.
type Solver struct {
	Method     string   `toml:"method"`
	Work       string   `toml:"work"`             // single or split
	Objective  float64  `toml:"objective_ms_rps"` // latency + churn cost
	Bound      float64  `toml:"bound_ms_rps"`
	Gap        float64  `toml:"gap"`             // relative
	LatencyMs  float64  `toml:"mean_latency_ms"` // over served requests
	ChurnCost  float64  `toml:"churn_cost_ms_rps"`
	OfferedRPS float64  `toml:"offered_rps"`
	ServedRPS  float64  `toml:"served_rps"`
	MovedShare float64  `toml:"moved_share"`                 // share of traffic that left its previous engine
	Coverage   string   `toml:"fallback_coverage,omitempty"` // which losses of engines the fallbacks were solved for
	Notes      []string `toml:"notes,omitempty"`
}

// Policy repeats the knobs that give the numbers their meaning.
type Policy struct {
	MaxUtilization  float64 `toml:"max_utilization"`
	OutputTokenWork float64 `toml:"output_token_work"`
	RoundTrips      float64 `toml:"round_trips"`
	Shed            string  `toml:"shed"`
	FailureDomain   string  `toml:"failure_domain"`
}

// Class is a traffic class with the rule by which an agent recognises it.
type Class struct {
	Name             string              `toml:"name"`
	Model            string              `toml:"model,omitempty"`
	Priority         int                 `toml:"priority"`
	Residency        map[string][]string `toml:"residency,omitempty"`
	Requires         []string            `toml:"requires,omitempty"`
	MaxContextTokens float64             `toml:"max_context_tokens,omitempty"`
	Guard            Guard               `toml:"guard,omitempty,inline"`
	Match            Match               `toml:"match"`
}

// Guard is what agents do otherwise for one class than their agent.toml says; a
// zero or nil field leaves it at that.
type Guard struct {
	RetryAttempts    int      `toml:"retry_attempts,omitempty"`     // of one request, the first included
	RetryBudgetRatio *float64 `toml:"retry_budget_ratio,omitempty"` // retries per request of the class
	RetryBudgetFloor *float64 `toml:"retry_budget_floor,omitempty"` // retries/s of the class, of all agents of a cluster
	TTFTTimeoutMs    float64  `toml:"ttft_timeout_ms,omitempty"`    // first content of a stream, per attempt
	IdleTimeoutMs    float64  `toml:"idle_timeout_ms,omitempty"`    // silence of an engine within a response
	TotalTimeoutMs   float64  `toml:"total_timeout_ms,omitempty"`   // up to the first byte of the answer, all attempts
}

// The bounds of Guard, those of the settings in agent.toml.
const (
	MaxRetryAttempts    = 10
	MaxRetryBudgetFloor = 1000
	MinTimeoutMs        = 10
	MaxTimeoutMs        = 3600e3
	MaxTotalTimeoutMs   = 24 * 3600e3
)

// Match: an empty field matches anything; all fields must match.
type Match struct {
	Path     string            `toml:"path,omitempty"` // prefix
	Methods  []string          `toml:"method,omitempty"`
	Models   []string          `toml:"model,omitempty"`    // exact, or a prefix ending in "*"
	Identity []string          `toml:"identity,omitempty"` // listener, client certificate or trusted proxy
	Headers  map[string]string `toml:"headers,omitempty"`  // only headers that agent.toml trusts
}

// Engine is a GPU serving pool with its plan and its prices.
type Engine struct {
	Name             string            `toml:"name"`
	Region           string            `toml:"region"`
	Domain           string            `toml:"domain"` // failure domain
	Endpoints        []string          `toml:"endpoints"`
	InternalAffinity bool              `toml:"internal_affinity,omitempty"`
	Models           []string          `toml:"models,omitempty"`
	MaxContextTokens float64           `toml:"max_context_tokens,omitempty"`
	Capabilities     []string          `toml:"capabilities,omitempty"`
	Labels           map[string]string `toml:"labels,omitempty"`
	CapacityRPS      float64           `toml:"capacity_rps"`          // reference requests/s at utilization 1, health applied
	LimitRPS         float64           `toml:"limit_rps"`             // the most that may be planned, reference requests/s
	PlannedRPS       float64           `toml:"planned_rps"`           // requests/s
	PlannedRefRPS    float64           `toml:"planned_reference_rps"` // the same work in reference requests/s
	Utilization      float64           `toml:"utilization"`
	LatencyMs        float64           `toml:"latency_ms"` // of the reference request at plan, without network
	PriceMs          float64           `toml:"price_ms"`   // marginal delay + limit, ms per reference request
	LimitPriceMs     float64           `toml:"limit_price_ms"`
	Price            float64           `toml:"price"`                   // ms per unit of work; with prefill and output prices when split
	PrefillPrice     float64           `toml:"prefill_price,omitempty"` // ms per prompt token
	OutputPrice      float64           `toml:"output_price,omitempty"`  // ms per output token
	Profile          Profile           `toml:"profile"`
}

// Profile is the fitted latency profile; a formula has one value and Queueing.
type Profile struct {
	Name         string    `toml:"name"`
	PromptTokens float64   `toml:"prompt_tokens"` // the reference request
	OutputTokens float64   `toml:"output_tokens"`
	TTFTV        []float64 `toml:"ttft_utilization"`
	TTFTMs       []float64 `toml:"ttft_ms"`
	TBOTV        []float64 `toml:"tbot_utilization"`
	TBOTMs       []float64 `toml:"tbot_ms"`
	Queueing     string    `toml:"queueing,omitempty"` // "ps" or "none": a formula
	FitError     float64   `toml:"fit_error"`          // worst relative error of the fit
}

// Group is a binding bound of one source over a set of engines.
type Group struct {
	Name    string  `toml:"name"`
	Cluster string  `toml:"cluster"`
	Class   string  `toml:"class"`
	PriceMs float64 `toml:"price_ms"` // > 0 a binding maximum, < 0 a binding minimum
}

// Cap is a binding cap over engines. Price in ms per unit of work.
type Cap struct {
	Name  string  `toml:"name"`
	Price float64 `toml:"price"`
}

// Cut proves a shed: no more work of this priority and above can be served.
type Cut struct {
	Priority int      `toml:"priority"`
	Sources  []string `toml:"sources"` // "cluster/class"
	Engines  []string `toml:"engines"`
	Caps     []string `toml:"caps,omitempty"`
	Groups   []string `toml:"groups,omitempty"` // "cluster/class name"
}

// Source is what one cluster does with one class.
type Source struct {
	Cluster        string  `toml:"cluster"`
	Class          string  `toml:"class"`
	OfferedRPS     float64 `toml:"offered_rps"`
	ServedRPS      float64 `toml:"served_rps"`
	ShedRPS        float64 `toml:"shed_rps,omitempty"`
	PromptTokens   float64 `toml:"prompt_tokens"` // mean, before the cache
	OutputTokens   float64 `toml:"output_tokens"`
	CachedFraction float64 `toml:"cached_fraction,omitempty"`
	RequestsPerKey float64 `toml:"requests_per_key,omitempty"`
	PriceMs        float64 `toml:"price_ms"`           // cost of one more request
	LatencyMs      float64 `toml:"latency_ms"`         // mean, by the model
	ProfileMs      float64 `toml:"profile_latency_ms"` // mean, by the profiles themselves

	// Layout: keys whose hash is in [LayoutFrom[i], LayoutFrom[i+1]) belong to
	// the engine LayoutTo[i]; LayoutFrom[0] = 0, the last range ends at 2^32.
	LayoutFrom []uint32 `toml:"layout_from"`
	LayoutTo   []string `toml:"layout_to"`

	Weights      []Weight      `toml:"weight"`
	Alternatives []Alternative `toml:"alternative,omitempty"`
	Fallbacks    []Fallback    `toml:"fallback,omitempty"`
}

// Weight is the part of a source's requests that one engine serves.
type Weight struct {
	Engine   string  `toml:"engine"`
	Quota    int64   `toml:"quota"` // of 2^32; exactly the measure of its ranges
	Fraction float64 `toml:"fraction"`
	RPS      float64 `toml:"rps"`
	RTTMs    float64 `toml:"rtt_ms"`
	Cost     Cost    `toml:"cost_ms,inline"`
	Code     string  `toml:"code"`   // stable reason code
	Text     string  `toml:"reason"` // the sentence
}

// Cost is the marginal cost of one more request in ms, by component; they sum
// to Total, none is a remainder.
type Cost struct {
	Net         float64 `toml:"net"`
	Base        float64 `toml:"base"`
	Delay       float64 `toml:"delay"`       // its own delay at plan
	Externality float64 `toml:"externality"` // delay it adds to others
	Kink        float64 `toml:"kink,omitempty"`
	Limit       float64 `toml:"limit,omitempty"` // capacity
	Share       float64 `toml:"share,omitempty"` // shares and caps
	Cache       float64 `toml:"cache,omitempty"`
	Total       float64 `toml:"total"`

	// Where the price is an interval (a kink, a limit, a share, a cache that
	// just stays): what one request less here would save and one more would
	// cost, without the price of shares. OneLess is left out where a rule lets
	// none go or none is there, OneMore where no more fits.
	OneLess float64 `toml:"one_less,omitempty"`
	OneMore float64 `toml:"one_more,omitempty"`
}

// Alternative is an eligible engine that was not chosen.
type Alternative struct {
	Engine    string  `toml:"engine"`
	LosesByMs float64 `toml:"loses_by_ms"`
	Cost      Cost    `toml:"cost_ms,inline"`
	Code      string  `toml:"code"`
	Text      string  `toml:"reason"`
}

// Fallback is an engine that takes over when a used one is lost.
type Fallback struct {
	Engine    string  `toml:"engine"`
	AbsorbRPS float64 `toml:"absorb_rps"` // what it may take beyond plan, req/s of this source
	Text      string  `toml:"reason"`
}
