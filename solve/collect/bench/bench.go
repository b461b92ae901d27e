// Package bench turns the results of load tests into engine profiles: it reads
// what the usual tools write, turns their loads into utilizations, has
// solve/profile fit the curves, and proposes capacity and max utilization.
//
// Notation:
//
//	N   requests that a closed loop keeps in flight
//	R   latency of a request, first to last token, in s
//	X   completed requests per second; in a closed loop N/R by Little's law
//	λ   rate at which an open loop has the latency R, in req/s; see Run.Rate
//	C   capacity, the highest X, in req/s
//	v   utilization, λ/C
package bench

import (
	"fmt"
	"math"

	"github.com/irb-project/irb/solve/figure"
	"github.com/irb-project/irb/solve/input"
)

// Label is one fact that names a configuration: gpu = h100.
type Label struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Run is one load test at one level of load. A number that was not measured is
// 0: none of them can be.
type Run struct {
	File   string
	Line   int    // of a CSV row or of a JSON document; 0: the file as a whole
	Part   string // where inside: "benchmarks[2]", "" if nowhere special
	Labels []Label

	PromptTokens float64 // means of the requests
	OutputTokens float64
	Concurrency  float64 // N of a closed loop; 0: open loop
	OfferedRPS   float64 // what an open loop sent, or was meant to
	CompletedRPS float64 // X
	TTFTMs       float64
	TBOTMs       float64
	E2EMs        float64 // R; if 0 it follows from TTFT, TBOT and the output tokens
	Completed    float64 // requests
	Failed       float64

	Fault string // why the run cannot be used, "" if it can
	Doubt string // what else is to be said of it
}

// LatencyS returns R in seconds. The first token ends the TTFT, so that the
// others make one gap less than there are tokens.
func (r *Run) LatencyS() float64 {
	if r.E2EMs > 0 {
		return r.E2EMs / 1000
	}
	return (r.TTFTMs + max(0, r.OutputTokens-1)*r.TBOTMs) / 1000
}

// Throughput returns X in req/s.
func (r *Run) Throughput() float64 {
	switch {
	case r.CompletedRPS > 0:
		return r.CompletedRPS
	case r.Concurrency > 0:
		return r.Concurrency / r.LatencyS()
	}
	return r.OfferedRPS
}

// Rate returns λ in req/s.
//
// A request that a closed loop sends finds N-1 others in flight (the arrival
// theorem: Sevcik and Mitrani, 1981; Reiser and Lavenberg, 1980). An open loop
// in which a request finds N-1 others has, by Little's law, the rate
//
//	λ = (N-1)/R = X - 1/R
//
// so that N = 1 is the engine without load, and a server that is shared evenly
// (R = N S) gives its open loop's curve R = S/(1-λS) exactly. In an open loop
// λ is X.
func (r *Run) Rate() float64 {
	x := r.Throughput()
	if r.Concurrency == 0 {
		return x
	}
	return max(0, x-1/r.LatencyS())
}

// load names the level of load of a run.
func (r *Run) load() string {
	switch {
	case r.Concurrency > 0:
		return "concurrency " + figure.Rate(r.Concurrency)
	case r.OfferedRPS > 0:
		return figure.Rate(r.OfferedRPS) + " req/s"
	}
	return figure.Rate(r.CompletedRPS) + " req/s"
}

// seenFrom names a run in a sentence about another one.
func (r *Run) seenFrom(other *Run) string {
	switch {
	case r.File != other.File && r.Part != "":
		return r.File + " " + r.Part
	case r.File != other.File && r.Line > 1:
		return fmt.Sprintf("%s:%d", r.File, r.Line)
	case r.File != other.File:
		return r.File // the only result in it
	case r.Part != "":
		return r.Part
	}
	return fmt.Sprintf("line %d", r.Line)
}

// Note is what is to be said of a run or a file.
type Note struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// String returns "sweep.csv:5: left out: TTFT is missing or 0".
func (n Note) String() string { return input.Problem(n).String() }

// remark says something of a run.
func (r *Run) remark(format string, args ...any) Note {
	message := fmt.Sprintf(format, args...)
	if r.Part != "" {
		message = r.Part + ": " + message
	}
	return Note{File: r.File, Line: r.Line, Message: message}
}

// Values outside are slips of the unit: no engine sends a first token within
// 1 ms, and none takes 5 s per token.
const (
	minTTFTMs = 1
	minTBOTMs = 0.05
	maxTBOTMs = 5000
	maxTTFTMs = 3.6e6
	maxE2EMs  = 1e8
	maxTokens = 1e8
	minLoad   = 1e-5 // req/s
	maxLoad   = 1e7  // req/s, or requests in flight
)

const (
	// maxFailed is the share of failed requests above which a run measured
	// something else than the engine at that load.
	maxFailed = 0.05
	// Little's law N = X R holds within the ramps at both ends of a run. Above
	// maxInFlight of N, or below minInFlight, a number or a unit is wrong.
	maxInFlight  = 1.25
	minInFlight  = 0.02
	rampInFlight = 0.75 // below: mostly ramp
)

// faults returns why a run cannot be used; what is NaN was reported already.
func (r *Run) faults() []string {
	var faults []string
	add := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for _, x := range []struct {
		name   string
		v      float64
		lo, hi float64
		unit   string
		needed bool
	}{
		{"TTFT", r.TTFTMs, minTTFTMs, maxTTFTMs, "ms", true},
		{"TBOT", r.TBOTMs, minTBOTMs, maxTBOTMs, "ms", true},
		{"request latency", r.E2EMs, minTTFTMs, maxE2EMs, "ms", false},
		{"prompt tokens", r.PromptTokens, 1, maxTokens, "tokens", true},
		{"output tokens", r.OutputTokens, 1, maxTokens, "tokens", true},
		{"concurrency", r.Concurrency, 1, maxLoad, "requests", false},
		{"offered rate", r.OfferedRPS, minLoad, maxLoad, "req/s", false},
		{"completed rate", r.CompletedRPS, minLoad, maxLoad, "req/s", false},
	} {
		switch {
		case math.IsNaN(x.v) || x.v == 0 && !x.needed:
		case x.v == 0:
			add("%s is missing or 0, want a number of %s", x.name, x.unit)
		case !(x.v >= x.lo && x.v <= x.hi):
			add("%s is %s %s, want %s to %s; is the unit right?", x.name, figure.Number(x.v, 4), x.unit, figure.Number(x.lo, 4), figure.Number(x.hi, 4))
		}
	}
	if r.Concurrency == 0 && r.OfferedRPS == 0 && r.CompletedRPS == 0 {
		add("no load is stated, want a concurrency or a request rate")
	}
	if total := r.Completed + r.Failed; r.Failed > maxFailed*total {
		add("%v of %v requests failed, want at most %s", r.Failed, total, figure.Percent(maxFailed))
	}
	if len(faults) == 0 && r.Concurrency > 0 {
		n := r.Throughput() * r.LatencyS()
		if n > maxInFlight*r.Concurrency || n < minInFlight*r.Concurrency {
			add("%s req/s of %s s each keep %s requests in flight, the test kept %v (Little's law); is a unit wrong?",
				figure.Rate(r.Throughput()), figure.Rate(r.LatencyS()), figure.Rate(n), r.Concurrency)
		}
	}
	return faults
}
