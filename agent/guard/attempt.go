package guard

import "time"

// Outcome is how an attempt ended, as far as its endpoint is concerned.
type Outcome uint8

// The outcomes.
const (
	Neutral Outcome = iota // the request itself was refused (4xx), or the client left
	Success
	Pushback // the endpoint is full: 429 or 503
	Fault    // 5xx, no connection, no answer in time, broken off
)

// Work is what a request asks for, as far as it is known.
type Work struct {
	PromptTokens float64 // 0: the mean of the source
	Stream       bool    // the first sign of an answer is its first token
	Untimed      bool    // no generation: how long it takes says nothing
}

// Attempt is one request at one endpoint, from Begin to End. It is a value; it
// takes no lock and allocates nothing.
type Attempt struct {
	endpoint *Endpoint
	class    *Class
	began    time.Time
	first    time.Time // zero: nothing has come
	netUs    int64
	expected int64 // us to the first sign
	ended    bool
}

// Begin counts a request that is about to be sent.
func (c *Class) Begin(engine, i int, w Work, now time.Time) Attempt {
	e := c.plan.endpoints[engine][i]
	prompt := c.uncached(w.PromptTokens)
	ns := float64(e.ttftPerTokenNs.Load())*prompt + float64(e.queueNs.Load())
	if !w.Stream {
		ns += float64(e.tbotNs.Load()) * c.outputTokens
	}
	if w.Untimed {
		ns = 0
	}
	a := Attempt{
		endpoint: e, class: c, began: now, netUs: c.netUs[engine], expected: int64(ns / 1000)}
	e.inFlight.Add(1)
	e.work.Add(int64(1000 * c.plan.engines[engine].referenceRequests(prompt, c.outputTokens)))
	if a.expected > 0 {
		e.waiting.Add(1)
		e.waitingStartUs.Add(now.UnixMicro() + a.netUs)
		e.waitingExpectedUs.Add(a.expected)
	}
	return a
}

// First tells that the first sign of a good answer has come: the first content
// of a stream, or a whole answer.
func (a *Attempt) First(now time.Time) {
	if a.ended || !a.first.IsZero() {
		return
	}
	a.first = now
	a.settle()
	a.sample(now.Sub(a.began).Microseconds()-a.netUs, a.expected)
	a.class.served.Add(1)
}

// settle takes the attempt out of those that nothing has come back for.
func (a *Attempt) settle() {
	if a.expected <= 0 {
		return
	}
	e := a.endpoint
	e.waiting.Add(-1)
	e.waitingStartUs.Add(-a.began.UnixMicro() - a.netUs)
	e.waitingExpectedUs.Add(-a.expected)
}

// sample adds an observed latency and what it was expected to be.
func (a *Attempt) sample(observedUs, expectedUs int64) {
	if expectedUs <= 0 || a.began.UnixNano() < a.endpoint.countFrom.Load() {
		return // no profile, or from before it recovered
	}
	a.endpoint.observedUs.Add(max(0, observedUs))
	a.endpoint.expectedUs.Add(expectedUs)
	a.endpoint.samples.Add(1)
}

// Ending is what is known at the end of an attempt.
type Ending struct {
	Outcome    Outcome
	RetryAfter time.Duration // of a Pushback; 0: none said
	// Tokens is how many tokens came after the first, LastToken when the last
	// did; 0: not known.
	Tokens    int
	LastToken time.Time
}

// End counts the end of the attempt; a second call does nothing.
func (a *Attempt) End(end Ending, now time.Time) {
	if a.ended || a.endpoint == nil {
		return
	}
	e := a.endpoint
	if a.first.IsZero() {
		a.settle()
		// What ends without an answer, later than one was due, is a sample of at
		// least this latency: else clients that give up hide a slow engine.
		if waited := now.Sub(a.began).Microseconds() - a.netUs; waited > a.expected && end.Outcome != Pushback {
			a.sample(waited, a.expected)
		}
	} else if end.Tokens > 0 && end.LastToken.After(a.first) {
		a.sample(end.LastToken.Sub(a.first).Microseconds(), int64(end.Tokens)*e.tbotNs.Load()/1000)
	}
	a.ended = true
	decrement(&e.inFlight)
	s := &a.class.plan.guard.settings
	switch end.Outcome {
	case Success:
		e.successes.Add(1)
		e.breaker.success(a.began, now)
		e.busy.success()
	case Pushback:
		e.pushbacks.Add(1)
		e.busy.pushback(now, end.RetryAfter)
	case Fault:
		e.faults.Add(1)
		e.breaker.fault(a.began, now, s.Load())
	}
}
