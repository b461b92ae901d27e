// Package report is what came of a simulation: figures per policy, curves over
// time, and their presentation.
package report

import (
	"math"
	"slices"

	"github.com/irb-project/irb/solve/simulate/irb"
	"github.com/irb-project/irb/solve/simulate/policy"
)

// BinS is the width of the bins of the curves in s.
const BinS = 10

// Result is what one policy did with the traffic after the warm-up.
type Result struct {
	Policy string `json:"policy"`
	Note   string `json:"note,omitempty"` // its settings

	Offered  int `json:"offered"`
	Answered int `json:"answered"`
	Shed     int `json:"shed"`   // refused by the gateway
	Failed   int `json:"failed"` // not answered otherwise
	Retries  int `json:"retries"`

	TTFTMs    Quantiles `json:"ttft_ms"`    // as clients see it
	LatencyMs Quantiles `json:"latency_ms"` // to the last token
	// Goodput is the share of offered requests that were answered within the SLO.
	Goodput float64 `json:"goodput"`
	// HitRate is the share of prompt tokens that came from a KV cache.
	HitRate float64 `json:"prefix_hit_rate"`
	// MovedShare is the share of the further turns of conversations that came to
	// another endpoint than the turn before.
	MovedShare  float64     `json:"moved_share"`
	Classes     []Class     `json:"classes"`
	Oscillation Oscillation `json:"oscillation"`
	Engines     []string    `json:"engines"`
	Bins        []Bin       `json:"bins"`
	Periods     []Period    `json:"periods,omitempty"`
}

// Class is what became of one class.
type Class struct {
	Name     string `json:"name"`
	Priority int    `json:"priority"`
	Offered  int    `json:"offered"`
	Answered int    `json:"answered"`
	Good     int    `json:"good"` // within the SLO
}

// Lost returns the share of the requests of the highest priority that were not
// answered.
func (r *Result) Lost() float64 {
	top, offered, answered := math.MinInt, 0, 0
	for _, c := range r.Classes {
		if c.Priority > top {
			top, offered, answered = c.Priority, 0, 0
		}
		if c.Priority == top {
			offered += c.Offered
			answered += c.Answered
		}
	}
	return ratio(float64(offered-answered), float64(offered))
}

// Quantiles are of answered requests.
type Quantiles struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
}

// Bin is BinS seconds, by the arrival of requests.
type Bin struct {
	Offered   int     `json:"offered"`
	Shed      int     `json:"shed"`
	Failed    int     `json:"failed"`
	Answered  int     `json:"answered"`
	TTFTMs    float64 `json:"ttft_ms"`    // mean
	LatencyMs float64 `json:"latency_ms"` // mean
	Sent      []int   `json:"sent"`       // attempts, by engine
}

// Period is one plan of irb beside what happened until the next.
type Period struct {
	irb.Period
	// Moved is the share of further turns that came to another endpoint.
	Moved float64 `json:"happened_moved_share"`
	// RecomputeMsPerS is the time in ms that it took, per second, to compute
	// again what the endpoint before had in its cache.
	RecomputeMsPerS float64 `json:"happened_recompute_ms_per_s"`
	// SeenMs is the mean latency of the requests of the period.
	SeenMs float64 `json:"happened_latency_ms"`
}

// Collector counts. It allocates only while its slices grow.
type Collector struct {
	config   Config
	result   Result
	ttft     []float32 // ms
	latency  []float32
	good     int
	prompt   float64 // tokens answered
	cached   float64
	turns    int // further turns that began service
	moved    int
	last     map[uint64]place
	recent   []span // by period of irb
	binTTFT  []float64
	binTotal []float64
}

// place is where a conversation was served last, and how much of it was there.
type place struct {
	endpoint int32
	tokens   float32
}

type span struct{ turns, moved, recomputeMs, latencyMs, answered float64 }

// Config is what a Collector must know.
type Config struct {
	DurationS, WarmupS float64
	TTFTMs, TBOTMs     float64 // of the SLO; 0: none
	PeriodS            float64 // of irb; 0: none
	Engines            []string
	EngineOf           []int32   // by endpoint
	Classes            []Class   // names and priorities
	ClassOf            []int     // by source
	PrefillMs          []float64 // by endpoint: time of one prompt token without load
}

// NewCollector starts counting.
func NewCollector(c Config) *Collector {
	n := int(math.Ceil(c.DurationS / BinS))
	k := &Collector{config: c, last: map[uint64]place{}, binTTFT: make([]float64, n), binTotal: make([]float64, n)}
	k.result.Bins = make([]Bin, n)
	k.result.Engines = c.Engines
	k.result.Classes = slices.Clone(c.Classes)
	for i := range k.result.Bins {
		k.result.Bins[i].Sent = make([]int, len(c.Engines))
	}
	if c.PeriodS > 0 {
		k.recent = make([]span, int(math.Ceil(c.DurationS/c.PeriodS)))
	}
	return k
}

func (k *Collector) counts(f *policy.Flight) bool { return f.Request.AtS >= k.config.WarmupS }

func (k *Collector) bin(f *policy.Flight) int {
	return min(len(k.result.Bins)-1, int(f.Request.AtS/BinS))
}

// Offered counts a request that came.
func (k *Collector) Offered(f *policy.Flight) {
	k.result.Bins[k.bin(f)].Offered++
	if k.counts(f) {
		k.result.Offered++
		k.class(f).Offered++
	}
}

func (k *Collector) class(f *policy.Flight) *Class {
	return &k.result.Classes[k.config.ClassOf[f.Request.Source]]
}

// Sent counts an attempt.
func (k *Collector) Sent(f *policy.Flight, now float64) {
	b := int(now / BinS)
	if b < len(k.result.Bins) {
		k.result.Bins[b].Sent[k.config.EngineOf[f.Endpoint]]++
	}
	if f.Attempts > 1 && k.counts(f) {
		k.result.Retries++
	}
}

// Refused counts a request that the gateway refused, or that was not answered.
func (k *Collector) Refused(f *policy.Flight, v policy.Verdict) {
	b := &k.result.Bins[k.bin(f)]
	if v == policy.Shed {
		b.Shed++
	} else {
		b.Failed++
	}
	if !k.counts(f) {
		return
	}
	if v == policy.Shed {
		k.result.Shed++
	} else {
		k.result.Failed++
	}
}

// Answered counts a request whose last token has come.
func (k *Collector) Answered(f *policy.Flight, now float64) {
	ttft, latency := 1000*(f.FirstS-f.Request.AtS), 1000*(now-f.Request.AtS)
	b := k.bin(f)
	k.result.Bins[b].Answered++
	k.binTTFT[b] += ttft
	k.binTotal[b] += latency
	lost, moved := k.place(f)
	if p := int(f.Request.AtS / max(1, k.config.PeriodS)); k.recent != nil && p < len(k.recent) {
		s := &k.recent[p]
		s.answered++
		s.latencyMs += latency
		if f.Request.Turn > 0 {
			s.turns++
		}
		if moved {
			s.moved++
			s.recomputeMs += lost * k.config.PrefillMs[f.Endpoint]
		}
	}
	if !k.counts(f) {
		return
	}
	k.result.Answered++
	k.class(f).Answered++
	k.ttft, k.latency = append(k.ttft, float32(ttft)), append(k.latency, float32(latency))
	k.prompt += f.Request.PromptTokens
	k.cached += f.CachedTokens
	tbot := (latency - ttft) / max(1, f.Request.OutputTokens)
	if (k.config.TTFTMs == 0 || ttft <= k.config.TTFTMs) && (k.config.TBOTMs == 0 || tbot <= k.config.TBOTMs) {
		k.good++
		k.class(f).Good++
	}
	if f.Request.Turn > 0 {
		k.turns++
		if moved {
			k.moved++
		}
	}
}

// place notes where a conversation is now, and tells whether it has moved and
// how many tokens of it were left behind.
func (k *Collector) place(f *policy.Flight) (lost float64, moved bool) {
	r := &f.Request
	if r.Conversation == 0 {
		return 0, false
	}
	was, known := k.last[r.Conversation]
	k.last[r.Conversation] = place{f.Endpoint, float32(r.PromptTokens + r.OutputTokens)}
	if !known || was.endpoint == f.Endpoint {
		return 0, false
	}
	return max(0, min(r.PromptTokens, float64(was.tokens))-f.CachedTokens), true
}

// Result returns the figures.
func (k *Collector) Result(name, note string, periods []irb.Period) *Result {
	r := &k.result
	r.Policy, r.Note = name, note
	r.TTFTMs, r.LatencyMs = quantiles(k.ttft), quantiles(k.latency)
	r.Goodput = ratio(float64(k.good), float64(r.Offered))
	r.HitRate = ratio(k.cached, k.prompt)
	r.MovedShare = ratio(float64(k.moved), float64(k.turns))
	for i := range r.Bins {
		n := float64(r.Bins[i].Answered)
		r.Bins[i].TTFTMs, r.Bins[i].LatencyMs = ratio(k.binTTFT[i], n), ratio(k.binTotal[i], n)
	}
	r.Oscillation = oscillation(r.Bins[min(len(r.Bins), int(k.config.WarmupS/BinS)):], r.Engines)
	for i, p := range periods {
		out := Period{Period: p}
		if i < len(k.recent) {
			s := k.recent[i]
			seconds := min(k.config.PeriodS, k.config.DurationS-p.AtS)
			out.Moved, out.RecomputeMsPerS, out.SeenMs = ratio(s.moved, s.turns), ratio(s.recomputeMs, seconds), ratio(s.latencyMs, s.answered)
		}
		r.Periods = append(r.Periods, out)
	}
	return r
}

// ratio is 0 where nothing was counted.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// quantiles sorts the list. A quantile is the smallest value that at least that
// part of all does not exceed.
func quantiles(list []float32) Quantiles {
	if len(list) == 0 {
		return Quantiles{}
	}
	slices.Sort(list)
	sum := 0.0
	for _, x := range list {
		sum += float64(x)
	}
	at := func(q float64) float64 { return float64(list[int(math.Ceil(q*float64(len(list))))-1]) }
	return Quantiles{Mean: sum / float64(len(list)), P50: at(0.5), P99: at(0.99)}
}
