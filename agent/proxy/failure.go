package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/irb-project/irb/agent/metrics"
)

// failure is an attempt that gave nothing to forward.
type failure struct {
	reason   metrics.Reason
	err      error          // why, if the engine did not answer
	response *http.Response // what it answered, if it did; the try is still on
	try      *try
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
		message: fmt.Sprintf("engine %q %s; endpoints tried: %d, %s", engine, f.plainly(), len(x.tried), noMore(held)),
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

// plainly says what the engine did in words for the client. The error itself is
// for the log: it may hold addresses of the fleet and names of our settings.
func (f *failure) plainly() string {
	switch f.reason {
	case metrics.Connect:
		return "could not be reached"
	case metrics.Timeout:
		return "did not answer in time"
	case metrics.Truncated:
		return "broke off its answer"
	}
	var network net.Error
	if errors.As(f.err, &network) || errors.Is(f.err, io.EOF) || errors.Is(f.err, io.ErrUnexpectedEOF) {
		return "broke the connection before it answered"
	}
	return "gave no valid answer"
}

// noMore says in words for the client why no further endpoint was tried.
func noMore(held metrics.Reason) string {
	switch held {
	case metrics.HeldNobody:
		return "no other is left"
	case metrics.HeldBudget:
		return "too many retries are under way to try another"
	case metrics.HeldDeadline:
		return "no time is left to try another"
	case metrics.HeldBody:
		return "the request body is too large to be sent again"
	case metrics.HeldStateful:
		return "no other holds the state of this request"
	}
	return "no more may be tried for one request"
}
