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
	Cold         bool    // not at the home of its key: no cache is expected to hold the prompt
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
	due      int64 // us to the first sign if no cache holds any of the prompt
	work     int64 // in 1/1000 reference requests
	frames   int   // of the answer, up to sampled
	sampled  time.Time
	ended    bool
}

// Begin counts a request that is about to be sent.
func (c *Class) Begin(engine, i int, w Work, now time.Time) Attempt {
	e := c.plan.endpoints[engine][i]
	prompt := c.uncached(w.PromptTokens)
	if w.Cold {
		prompt = c.prompt(w.PromptTokens)
	}
	perToken := float64(e.ttftPerTokenNs.Load())
	ns := perToken*prompt + float64(e.queueNs.Load())
	if !w.Stream {
		ns += float64(e.tbotNs.Load()) * c.outputTokens
	}
	cachedNs := perToken * (c.prompt(w.PromptTokens) - prompt)
	if w.Untimed {
		ns, cachedNs = 0, 0
	}
	a := Attempt{
		endpoint: e, class: c, began: now, netUs: c.netUs[engine], expected: int64(ns / 1000), due: int64((ns + cachedNs) / 1000),
		work: int64(1000 * c.plan.engines[engine].referenceRequests(prompt, c.outputTokens)),
	}
	e.inFlight.Add(1)
	e.work.Add(a.work)
	if a.expected > 0 {
		e.waiting.Add(1)
		e.waitingStartUs.Add(now.UnixMicro() + a.netUs)
		e.waitingExpectedUs.Add(a.due)
	}
	return a
}

// First tells that the first sign of a good answer has come: the first content
// of a stream, or a whole answer.
func (a *Attempt) First(now time.Time) {
	if a.ended || !a.first.IsZero() {
		return
	}
	a.first, a.sampled = now, now
	a.settle()
	a.sample(now.Sub(a.began).Microseconds()-a.netUs, a.expected)
	a.class.served.Add(1)
}

// progressInterval is the time between two samples of one answer.
const progressInterval = 500 * time.Millisecond

// Progress tells how many frames of a stream came after the first: an engine
// that slows down shows it in all answers under way, long before their ends. How
// many tokens a frame holds is known from answers that ended.
func (a *Attempt) Progress(frames int, now time.Time) {
	if a.first.IsZero() || now.Sub(a.sampled) < progressInterval {
		return
	}
	if perFrame := a.endpoint.frameTokens.Load(); perFrame > 0 {
		a.sampleTokens(int64(frames-a.frames)*perFrame, now)
		a.frames = frames
	}
}

// sampleTokens adds what 1/1000 tokens took since the last sample.
func (a *Attempt) sampleTokens(milliTokens int64, now time.Time) {
	if milliTokens > 0 && now.After(a.sampled) {
		a.sample(now.Sub(a.sampled).Microseconds(), milliTokens*a.endpoint.tbotNs.Load()/1e6)
		a.sampled = now
	}
}

// settle takes the attempt out of those that nothing has come back for.
func (a *Attempt) settle() {
	if a.expected <= 0 {
		return
	}
	e := a.endpoint
	e.waiting.Add(-1)
	e.waitingStartUs.Add(-a.began.UnixMicro() - a.netUs)
	e.waitingExpectedUs.Add(-a.due)
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
	// Tokens is how many tokens came after the first, 0 if not known, Frames in
	// how many frames, 0 if in one each, and LastToken when the last came.
	Tokens, Frames int
	LastToken      time.Time
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
		frames := end.Frames
		if frames <= 0 {
			frames = end.Tokens
		}
		perFrame := 1000 * int64(end.Tokens) / int64(frames)
		a.sampleTokens(int64(frames-a.frames)*perFrame, end.LastToken)
		e.learnFrame(perFrame)
	}
	a.ended = true
	decrement(&e.inFlight)
	s := &a.class.plan.guard.settings
	switch end.Outcome {
	case Success:
		e.successes.Add(1)
		e.done.Add(a.work)
		e.breaker.success(a.began, now)
		e.pushed.success()
	case Pushback:
		e.pushbacks.Add(1)
		e.pushed.pushback(now, end.RetryAfter)
	case Fault:
		e.faults.Add(1)
		e.breaker.fault(a.began, now, s.Load())
	}
}
