// Package engine is a GPU engine in virtual time: continuous batching, a queue,
// and a KV cache of blocks that later prompts reuse.
//
// It reads no clock and starts no goroutine; its caller asks when something is
// due and lets it happen. A step allocates nothing once its slices have grown.
package engine

import (
	"fmt"
	"math"

	"github.com/irb-project/irb/solve/profile"
	"github.com/irb-project/irb/solve/simulate/kv"
)

// DefaultCacheFactor is how many times the tokens of all running requests a KV
// cache holds by default: GPU memory and host memory behind it, as examples/
// standin assumes.
const DefaultCacheFactor = 8

// Config describes one endpoint.
type Config struct {
	Profile         profile.Profile
	CapacityRPS     float64 // reference requests/s at utilization 1
	OutputTokenWork float64 // r, work of an output token in prompt tokens
	BlockTokens     int     // size of a KV block
	CacheTokens     float64 // of the KV cache; 0: DefaultCacheFactor times what can run
}

// Job is one request at an engine.
type Job struct {
	ID           int32 // the caller's
	PromptTokens float64
	OutputTokens float64
	Prefix       *kv.Prefix // must not change before the job is done
}

// Event is something that happened to a job.
type Event struct {
	ID    int32
	First bool // its first token; else its end
	// CachedTokens of the prompt needed no computing; told with the first token.
	CachedTokens float64
}

// Engine serves jobs. All in one phase get on at one speed, so each phase has
// one clock of progress: prefill counts reference prompts, decode counts
// tokens. A job ends its phase when the clock has moved on by its size; who
// comes and goes changes the speed from now on.
type Engine struct {
	config     Config
	curve      curve
	slots      float64 // reference requests in progress beyond which jobs wait
	maxWaiting int
	slow       float64 // factor on all times

	now             float64 // s
	prefill, decode float64 // clocks
	inPrefill       heap
	inDecode        heap
	weight          float64 // of all that run, in reference requests
	waiting         ring
	cache           *kv.Cache
	jobs            []job
	free            []int32
}

// job is a Job in progress.
type job struct {
	Job
	weight float64 // share of the engine's work, see weigh
	cached float64 // tokens
	named  int     // blocks of the prompt with names
	blocks int     // of prompt and answer
}

// New returns an idle engine.
func New(c Config) (*Engine, error) {
	if !(c.CapacityRPS > 0) || math.IsInf(c.CapacityRPS, 0) || !(c.Profile.PromptTokens > 0) || c.BlockTokens < 1 {
		return nil, fmt.Errorf("engine with profile %q: capacity is %v req/s, the reference request has %v prompt tokens, blocks have %d tokens, want all above 0",
			c.Profile.Name, c.CapacityRPS, c.Profile.PromptTokens, c.BlockTokens)
	}
	if !(c.Profile.ReferenceMs(0) > 0) {
		return nil, fmt.Errorf("engine with profile %q: the reference request takes %v ms, want above 0", c.Profile.Name, c.Profile.ReferenceMs(0))
	}
	slots := saturation(c.Profile, c.CapacityRPS)
	if c.CacheTokens == 0 {
		c.CacheTokens = DefaultCacheFactor * float64(slots) * (c.Profile.PromptTokens + c.Profile.OutputTokens)
	}
	e := &Engine{config: c, slow: 1, maxWaiting: slots, cache: kv.NewCache(max(1, int(c.CacheTokens)/c.BlockTokens))}
	e.setCapacity(1)
	return e, nil
}

func (e *Engine) setCapacity(factor float64) {
	capacity := e.config.CapacityRPS * factor
	slots := roomFactor * saturation(e.config.Profile, capacity)
	e.slots = float64(slots)
	e.curve = newCurve(e.config.Profile, capacity, slots)
	e.curve.calibrate(e.config.Profile, capacity)
}

// Degrade makes all times slow times as long and leaves that part of the
// capacity, from now on; 1 and 1 is as new.
func (e *Engine) Degrade(slow, capacity float64, now float64) {
	e.moveTo(now)
	e.slow = slow
	e.setCapacity(capacity)
	e.refill()
}

// Fail drops everything, the cache too, and tells whose jobs are lost.
func (e *Engine) Fail(now float64, lost func(id int32)) {
	e.moveTo(now)
	for _, h := range []*heap{&e.inPrefill, &e.inDecode} {
		for _, x := range h.list {
			j := &e.jobs[x.job]
			e.cache.Unpin(j.Prefix, j.named, j.named, j.blocks)
			lost(j.ID)
			e.free = append(e.free, x.job)
		}
		h.list = h.list[:0]
	}
	for e.waiting.len() > 0 {
		n := e.waiting.pop()
		lost(e.jobs[n].ID)
		e.free = append(e.free, n)
	}
	e.cache.Clear()
	e.weight, e.prefill, e.decode = 0, 0, 0
}

// Running returns the number of jobs in service.
func (e *Engine) Running() int { return len(e.inPrefill.list) + len(e.inDecode.list) }

// Waiting returns the number of jobs in the queue.
func (e *Engine) Waiting() int { return e.waiting.len() }

// Usage returns the part of the KV cache that running jobs hold.
func (e *Engine) Usage() float64 { return e.cache.Usage() }

// CacheBlocks returns what the KV cache holds.
func (e *Engine) CacheBlocks() int { return e.cache.Capacity() }

// LatencyS returns how long a reference request would take at the present load.
func (e *Engine) LatencyS() float64 {
	ttft, tbot := e.curve.at(e.weight)
	return e.slow * (ttft + e.config.Profile.OutputTokens*tbot)
}

// Utilization returns the work rate in progress over capacity, 1 when jobs wait.
func (e *Engine) Utilization() float64 {
	if e.Waiting() > 0 {
		return 1
	}
	return min(1, e.weight/(e.config.CapacityRPS*e.LatencyS()))
}

// Submit takes a job; false if the queue is full.
func (e *Engine) Submit(j Job, now float64) bool {
	e.moveTo(now)
	if e.waiting.len() >= e.maxWaiting {
		return false
	}
	var n int32
	if last := len(e.free) - 1; last >= 0 {
		n, e.free = e.free[last], e.free[:last]
	} else {
		n = int32(len(e.jobs))
		e.jobs = append(e.jobs, job{})
	}
	e.jobs[n] = job{Job: j}
	e.waiting.push(n)
	e.refill()
	return true
}

// Hold puts that many tokens of a text into the cache, as if the engine had
// served it.
func (e *Engine) Hold(p *kv.Prefix, tokens float64) {
	e.cache.Touch(p, int(tokens)/e.config.BlockTokens)
}

// refill starts what waits, first come first served, while there is room for
// one more reference request and in the KV cache.
func (e *Engine) refill() {
	for e.waiting.len() > 0 && (e.Running() == 0 || e.weight+1 <= e.slots) {
		n := e.waiting.peek()
		if !e.start(n) {
			return
		}
		e.waiting.pop()
	}
}

// start begins a job if its blocks fit.
func (e *Engine) start(n int32) bool {
	j := &e.jobs[n]
	size := float64(e.config.BlockTokens)
	// Whole blocks only are shared, and one token at least is computed: it
	// gives the first output token.
	j.named = j.Prefix.Len(int(j.PromptTokens / size))
	j.blocks = max(j.named, int(math.Ceil((j.PromptTokens+j.OutputTokens)/size)))
	hit, ok := e.cache.Pin(j.Prefix, j.named, j.blocks)
	if !ok {
		return false
	}
	j.cached = max(0, min(float64(hit)*size, j.PromptTokens-1))
	q := j.PromptTokens - j.cached
	j.weight = e.weigh(q, j.OutputTokens)
	e.weight += j.weight
	e.inPrefill.push(entry{e.prefill + q/e.config.Profile.PromptTokens, n})
	return true
}

// weigh returns how much of the engine a job in progress takes, in reference
// requests: its work over its latency, both against the reference's. By
// Little's law the weights in progress then sum to N(v) at v = work rate over
// capacity, whatever the mix; a prompt that is cached frees capacity in
// proportion to the work that it saves.
func (e *Engine) weigh(q, o float64) float64 {
	p := e.config.Profile
	r := e.config.OutputTokenWork
	work := (q + r*o) / (p.PromptTokens + r*p.OutputTokens)
	latency := p.LatencyMs(0, q, o) / p.ReferenceMs(0)
	if !(latency > 0) {
		return 1
	}
	return work / latency
}

// others is the work that one job in progress has beside it, in reference
// requests.
func (e *Engine) others() float64 {
	n := float64(e.Running())
	if n <= 1 {
		return 0
	}
	return max(0, e.weight*(n-1)/n)
}

// speeds returns the progress of the two clocks per second.
func (e *Engine) speeds() (prefill, decode float64) {
	ttft, tbot := e.curve.at(e.others())
	return 1 / (e.slow * ttft), 1 / (e.slow * tbot)
}

func (e *Engine) moveTo(now float64) {
	if now <= e.now {
		return
	}
	if e.Running() > 0 {
		a, b := e.speeds()
		e.prefill += a * (now - e.now)
		e.decode += b * (now - e.now)
	} else {
		e.prefill, e.decode, e.weight = 0, 0, 0 // keeps sums exact
	}
	e.now = now
}

// Due returns when the next event happens if no job comes, +Inf if none runs.
func (e *Engine) Due() float64 {
	at, _ := e.next()
	return at
}

func (e *Engine) next() (at float64, prefill bool) {
	at = math.Inf(1)
	a, b := e.speeds()
	if len(e.inPrefill.list) > 0 {
		at, prefill = e.now+max(0, e.inPrefill.list[0].target-e.prefill)/a, true
	}
	if len(e.inDecode.list) > 0 {
		if t := e.now + max(0, e.inDecode.list[0].target-e.decode)/b; t < at {
			at, prefill = t, false
		}
	}
	return at, prefill
}

// Step moves to the next event, which must be there, and returns it.
func (e *Engine) Step() Event {
	at, prefill := e.next()
	e.moveTo(at)
	if prefill {
		x := e.inPrefill.pop()
		e.prefill = max(e.prefill, x.target)
		j := &e.jobs[x.job]
		e.inDecode.push(entry{e.decode + j.OutputTokens, x.job})
		return Event{ID: j.ID, First: true, CachedTokens: j.cached}
	}
	x := e.inDecode.pop()
	e.decode = max(e.decode, x.target)
	j := &e.jobs[x.job]
	grown := j.named
	if j.Prefix.Conversation != 0 { // the next turn repeats the answer
		grown = max(grown, int((j.PromptTokens+j.OutputTokens)/float64(e.config.BlockTokens)))
	}
	e.cache.Unpin(j.Prefix, j.named, grown, j.blocks)
	e.weight -= j.weight
	e.free = append(e.free, x.job)
	id := j.ID
	e.refill()
	return Event{ID: id}
}
