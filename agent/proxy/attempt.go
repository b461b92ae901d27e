package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/irb-project/irb/agent/guard"
	"github.com/irb-project/irb/agent/h1client"
	"github.com/irb-project/irb/agent/metrics"
)

// try is one attempt at one endpoint while it lasts.
type try struct {
	at       attempt
	route    *metrics.Route
	now      func() time.Time
	started  time.Time
	ctx      context.Context
	cancel   context.CancelCauseFunc
	watch    *watchdog
	guard    guard.Attempt
	ending   guard.Ending // what the guards will be told at the end
	observer *guard.Endpoint
	ended    bool
}

// failure is an attempt that gave nothing to forward.
type failure struct {
	reason   metrics.Reason
	err      error          // why, if the engine did not answer
	response *http.Response // what it answered, if it did; the try is still on
	try      *try
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
	resp, err := at.endpoint.upstream.RoundTrip(x.newRequest(t))
	if err != nil {
		reason, canceled := x.reasonOf(t, err)
		cause := context.Cause(t.ctx)
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
	t.ctx, t.cancel = context.WithCancelCause(x.request.Context())
	limit, cause := x.deadline, &errDeadline
	if x.facts.Stream {
		if l := t.started.Add(x.plan.config.Timeouts.TTFT); l.Before(limit) {
			limit, cause = l, &errTTFT
		}
	}
	t.watch = watch(x.proxy.now, limit, cause, t.cancel)
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
	t.cancel(nil)
	t.route.InFlight.Dec()
	t.guard.End(t.ending, t.now())
}

// discard drops the answer of a failed attempt. A short one is read, so that
// its connection can be used again.
func (f *failure) discard() {
	if f.response != nil {
		_, _ = io.CopyN(io.Discard, f.response.Body, 4<<10) // an error means no reuse
		f.response.Body.Close()
	}
	f.try.end()
}

// once says whether the body is too large to keep for a retry.
func (x *exchange) once() bool { return len(x.body.data) > int(x.plan.config.Body.Replay) }

// replayable says whether the body can be sent another time.
func (x *exchange) replayable() bool {
	switch {
	case x.upload != nil:
		return !x.upload.touched.Load()
	case x.body != nil:
		return !x.body.gone.Load()
	}
	return true
}

// reasonOf says why an attempt failed; canceled means that the client left or
// failed us.
func (x *exchange) reasonOf(t *try, err error) (reason metrics.Reason, canceled bool) {
	if x.clientLeft() || x.upload != nil && x.upload.broken.Load() {
		return 0, true
	}
	var dial *dialError
	switch cause := context.Cause(t.ctx); {
	case errors.Is(cause, errTTFT) || errors.Is(cause, errDeadline) || errors.Is(cause, errIdle):
		return metrics.Timeout, false
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
	case len(x.tried) >= x.plan.config.Retry.Attempts:
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
	// Nothing was sent to an endpoint that could not be reached, so trying the
	// next one cannot overload anybody.
	if f.reason != metrics.Connect && !x.guard.Withdraw() {
		return next, metrics.HeldBudget, false
	}
	return next, 0, true
}

// relay forwards the answer of an engine that refused, as it is.
func (x *exchange) relay(f *failure) *answer {
	if broken := x.forward(f.try, f.response); broken != nil {
		return x.failed(broken, metrics.HeldAttempts)
	}
	return nil
}

// failed is the answer when no engine has given one.
func (x *exchange) failed(f *failure, held metrics.Reason) *answer {
	f.try.end()
	engine := x.plan.engineName(f.try.at.engine)
	x.proxy.log.Warn("request failed", "request_id", x.requestIDValue[0], "class", x.class.Spec.Name,
		"engine", engine, "endpoint", f.try.at.endpoint.id, "reason", f.reason, "no_retry", held,
		"attempts", len(x.tried), "err", f.err)
	x.outcome = metrics.Fault
	a := &answer{
		status: http.StatusBadGateway, kind: "server_error", code: "engine_failed",
		message: fmt.Sprintf("engine %q: %s (attempts: %d; no further one: %s)", engine, publicCause(f.err), len(x.tried), held),
	}
	switch f.reason {
	case metrics.Timeout:
		a.status, a.code, a.dropped = http.StatusGatewayTimeout, "engine_timeout", droppedExpired
	case metrics.Connect:
		a.status, a.code, a.dropped = http.StatusServiceUnavailable, "engine_unreachable", droppedNoEndpoints
		a.retryAfter = time.Second
	}
	if x.facts.Stateful {
		a.status, a.code = http.StatusServiceUnavailable, "stateful_engine_unavailable"
	}
	return a
}

// nobody is the answer when there is no endpoint to ask.
func (x *exchange) nobody() *answer {
	return &answer{
		status: http.StatusServiceUnavailable, kind: "server_error", code: "no_engine", dropped: droppedNoEndpoints,
		message:    fmt.Sprintf("no engine of class %q can serve this request", x.class.Spec.Name),
		retryAfter: time.Second,
	}
}

// stateGone is the answer when what a request depends on is out of reach.
func (x *exchange) stateGone() *answer {
	return &answer{
		status: http.StatusServiceUnavailable, kind: "server_error", code: "stateful_engine_unavailable", dropped: droppedNoEndpoints,
		param: "previous_response_id", message: "the engine that holds the previous response is not in service",
		retryAfter: time.Second,
	}
}

// publicCause tells the client what happened without the addresses of the
// fleet, which the log has.
func publicCause(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Op + ": " + op.Err.Error()
	}
	return err.Error()
}
