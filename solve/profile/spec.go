package profile

// Spec is a latency profile as its author wrote it: a table or a formula.
// Times are in ms, utilization is a fraction of work capacity.
type Spec struct {
	Name         string
	PromptTokens float64 // the reference request, > 0
	OutputTokens float64

	Utilization []float64 // table; empty for a formula
	TTFTMs      []float64 // one per utilization; a single value for a formula
	TBOTMs      []float64
	Queueing    string // formula: "ps" or "none"; empty for a table

	AcceptErrorAbove25 bool // accept a fit whose worst relative error is above 25 %
}

// Profile is a fitted Spec: TTFT and TBOT are convex and non-decreasing.
type Profile struct {
	Name         string
	PromptTokens float64
	OutputTokens float64
	TTFT         Curve
	TBOT         Curve
	// WorstRelError is the largest |fitted-given|/given over both tables.
	WorstRelError float64
}

// ReferenceMs returns the latency of the reference request at utilization v,
// TTFT(v) + OutputTokens TBOT(v), in ms.
func (p Profile) ReferenceMs(v float64) float64 {
	return p.TTFT.At(v) + p.OutputTokens*p.TBOT.At(v)
}

// LatencyMs returns the latency the profile itself predicts for a request of
// q prompt tokens to compute and o output tokens, TTFT(v) q/p_ref + o TBOT(v).
func (p Profile) LatencyMs(v, q, o float64) float64 {
	return p.TTFT.At(v)*q/p.PromptTokens + o*p.TBOT.At(v)
}
