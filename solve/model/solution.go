package model

// Solution is an answer to a Problem with the prices that prove it. All prices
// are >= 0 but MinPrice parts, which are what a minimum costs.
//
// Single work: a pair is used only if its reduced cost
//
//	CostMs[k] + w EnginePrice[e] + caps w CapPrice + groups GroupPriceMs - SourcePriceMs[s]
//	  (+ the stay term's slope, + bound prices)
//
// is 0. EnginePrice is the marginal delay and the limit price together.
// Split work: q PrefillPrice + o OutputPrice + w EnginePrice, where EnginePrice
// is the price of the joint limit alone.
type Solution struct {
	Method        string // "network simplex", "column generation (CLP)"
	Iterations    int
	Flows         []Flow    // positive flows in order of pair
	ServedRPS     []float64 // per source
	SourcePriceMs []float64 // per source, ms per request: cost of one more request
	EnginePrice   []float64 // per engine, ms per unit of work
	PrefillPrice  []float64 // split work: ms per prompt token
	OutputPrice   []float64 // split work: ms per output token
	GroupPriceMs  []float64 // per group, ms per request: > 0 a binding maximum, < 0 a binding minimum
	CapPrice      []float64 // per cap, ms per unit of work
	ShedCuts      []ShedCut // one per priority level, highest first; nil if nothing is shed
}

// Flow is a positive amount on a pair.
type Flow struct {
	Pair int
	RPS  float64
}

// ShedCut proves that no more work of priority >= Priority can be served: what
// leaves the sources of the cut is bounded by the limits it crosses.
type ShedCut struct {
	Priority int
	Sources  []int // on the saturated side
	Engines  []int
	Caps     []int
	Groups   []int
}
