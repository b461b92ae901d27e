package proxy

import (
	"errors"
	"net/http"
	"time"

	"github.com/irb-project/irb/agent/guard"
	"github.com/irb-project/irb/agent/h1client"
	"github.com/irb-project/irb/agent/lifetime"
	"github.com/irb-project/irb/agent/metrics"
)

// try is one attempt at one endpoint while it lasts.
type try struct {
	at       attempt
	route    *metrics.Route
	now      func() time.Time
	started  time.Time
	ctx      lifetime.Context
	watch    watchdog
	guard    guard.Attempt
	ending   guard.Ending // what the guards will be told at the end
	observer *guard.Endpoint
	ended    bool
}

// attempts tries endpoints until one answers, or nothing more may be tried.
func (x *exchange) attempts() *answer {
	x.startCandidates()
	if !x.pin() {
		return x.stateGone()
	}
	at, ok := x.candidates.next(x.proxy.now())
	if !ok {
		return x.nobody()
	}
	for {
		f := x.tryEndpoint(at)
		if f == nil {
			return nil // answered, or nobody waits for an answer
		}
		next, held, retry := x.mayRetry(f)
		if !retry {
			x.proxy.metrics.RetryHeld(held)
			if f.response != nil {
				return x.relay(f)
			}
			return x.failed(f, held)
		}
		f.discard()
		x.proxy.metrics.Retry(f.reason)
		at = next
	}
}

// tryEndpoint makes one attempt, and a second one if it met a connection that
// the engine had closed while it was idle: that says nothing about the engine.
func (x *exchange) tryEndpoint(at attempt) *failure {
	f := x.send(at)
	if f != nil && f.reason == metrics.Stale {
		if x.replayable() {
			x.proxy.metrics.Retry(metrics.Stale)
			f = x.send(at)
		}
	}
	if f != nil && f.reason == metrics.Stale {
		f.reason = metrics.Reset
	}
	if f != nil {
		at.failed = f.reason
		if f.reason == metrics.Connect {
			at.endpoint.markDown(x.proxy.now())
		}
	} else {
		at.ok = true
	}
	x.tried = append(x.tried, at)
	return f
}

// send makes one attempt. It returns nil if the client was answered or left.
func (x *exchange) send(at attempt) *failure {
	t := x.startTry(at)
	r := x.newRequest(t)
	resp, err := at.endpoint.upstream.RoundTrip(r)
	if !x.proxy.http2 { // the transport of HTTP/2 may be late with it
		clear(r.Header)
		x.proxy.headers.Put(r.Header)
	}
	if err != nil {
		reason, canceled := x.reasonOf(t, err)
		cause := t.ctx.Cause()
		if !canceled {
			t.blame(reason)
		}
		t.end()
		if canceled {
			x.abandoned()
			return nil
		}
		if cause != nil {
			err = cause
		}
		return &failure{reason: reason, err: err, try: t}
	}
	at.endpoint.markUp()
	t.judge(resp, x.proxy.now())
	switch resp.StatusCode {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return &failure{reason: metrics.Gateway, response: resp, try: t}
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return &failure{reason: metrics.Full, response: resp, try: t}
	}
	return x.forward(t, resp)
}

// abandoned ends a request whose client left, or stopped sending its body.
func (x *exchange) abandoned() {
	if !x.clientLeft() {
		x.refuse(bodyTimeout())
	}
	x.outcome = metrics.Canceled
}

func (x *exchange) startTry(at attempt) *try {
	t := &try{at: at, now: x.proxy.now, started: x.proxy.now(), route: x.plan.route(x.proxy.metrics, x.class, at.engine)}
	x.route = t.route
	t.ctx.Follow(x.request.Context())
	limit, cause := x.deadline, &errDeadline
	if x.facts.Stream {
		if l := t.started.Add(x.limits.ttft); l.Before(limit) {
			limit, cause = l, &errTTFT
		}
	}
	t.watch.start(x.proxy.now, limit, cause, &t.ctx)
	t.route.InFlight.Inc()
	x.watchTry(t)
	return t
}

// end lets go of the attempt, on every path exactly once.
func (t *try) end() {
	if t.ended {
		return
	}
	t.ended = true
	t.watch.stop()
	t.ctx.End(nil)
	t.route.InFlight.Dec()
	t.guard.End(t.ending, t.now())
}

// once says whether the body is too large to keep for a retry.
func (x *exchange) once() bool { return len(x.body.data) > int(x.plan.config.Body.Replay) }

// replayable says whether the body can be sent another time.
func (x *exchange) replayable() bool {
	switch {
	case x.upload != nil:
		return !x.upload.touched.Load()
	case x.body != nil:
		return !x.body.gone.Load() && !x.body.once.Load()
	}
	return true
}

// reasonOf says why an attempt failed; canceled means that the client left or
// failed us, also by sending its body until the time was over.
func (x *exchange) reasonOf(t *try, err error) (reason metrics.Reason, canceled bool) {
	if x.clientLeft() || x.upload != nil && x.upload.broken.Load() {
		return 0, true
	}
	var dial *dialError
	switch cause := t.ctx.Cause(); {
	case errors.Is(cause, errTTFT) || errors.Is(cause, errDeadline) || errors.Is(cause, errIdle):
		// The time may be over because the client was waited for.
		return metrics.Timeout, x.upload != nil && x.upload.body.waiting.Load()
	case errors.As(err, &dial):
		return metrics.Connect, false
	case errors.Is(err, h1client.ErrStale):
		return metrics.Stale, false
	}
	return metrics.Reset, false
}

// mayRetry says whether a failed attempt may be followed by another, where, and
// if not why.
func (x *exchange) mayRetry(f *failure) (next attempt, held metrics.Reason, ok bool) {
	now := x.proxy.now()
	switch {
	case x.reached() >= x.limits.attempts || f.reason != metrics.Connect && len(x.tried) >= x.limits.attempts:
		return next, metrics.HeldAttempts, false
	case !now.Before(x.deadline):
		return next, metrics.HeldDeadline, false
	case !x.replayable():
		return next, metrics.HeldBody, false
	case x.facts.Stateful:
		return next, metrics.HeldStateful, false
	}
	if next, ok = x.candidates.next(now); !ok {
		return next, metrics.HeldNobody, false
	}
	if len(x.tried) >= x.limits.attempts && x.candidates.round == unreachable {
		return next, metrics.HeldAttempts, false // more only of those that may be there
	}
	// Nothing was sent to an endpoint that could not be reached, so trying the
	// next one cannot overload anybody.
	if f.reason != metrics.Connect && !x.guard.Withdraw() {
		return next, metrics.HeldBudget, false
	}
	return next, 0, true
}

// reached returns how many endpoints were reached. Those that were not have got
// nothing of the request, and as many may be gone at once as a rack holds.
func (x *exchange) reached() (n int) {
	for i := range x.tried {
		if x.tried[i].ok || x.tried[i].failed != metrics.Connect {
			n++
		}
	}
	return n
}

// relay forwards the answer of an engine that refused, as it is.
func (x *exchange) relay(f *failure) *answer {
	if broken := x.forward(f.try, f.response); broken != nil {
		return x.failed(broken, metrics.HeldAttempts)
	}
	return nil
}
