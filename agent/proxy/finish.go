package proxy

import (
	"net/http"
	"time"

	"github.com/irb-project/irb/agent/metrics"
)

// isFault says whether a status tells of a failure of the engine. "Not
// implemented" and "version not supported" tell of the request: any client could
// have a healthy engine ejected by asking for what it cannot do.
func isFault(status int) bool {
	return status >= 500 && status != http.StatusNotImplemented && status != http.StatusHTTPVersionNotSupported
}

// finishOutcome says what an answer that was forwarded in full means.
func (x *exchange) finishOutcome(status int) {
	switch {
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		x.outcome = metrics.Backpressure
	case isFault(status):
		x.outcome = metrics.Fault
	case status >= 400:
		x.outcome = metrics.Neutral
	default:
		x.outcome = metrics.OK
	}
}

// finish runs on every exit of a request.
func (x *exchange) finish() {
	if x.body != nil {
		x.body.drop()
	}
	now := x.proxy.now()
	x.route.Done(x.outcome)
	if x.outcome == metrics.OK {
		x.countTokens()
		x.route.Latency.Observe(now.Sub(x.start).Seconds())
		if x.ttft > 0 {
			x.route.TTFT.Observe(x.ttft.Seconds())
		}
		if between, ok := x.betweenTokens(); ok {
			x.route.TBOT.Observe(between.Seconds())
		}
	}
	if d := x.proxy.decisions; d != nil && x.plan != nil && d.sampled(x.plan.config.DecisionLog.Sample) {
		d.write(x, now)
	}
}

// betweenTokens returns the mean time between the tokens of a stream. The usage
// that the engine reports counts tokens; without it each event with content
// counts as one.
func (x *exchange) betweenTokens() (time.Duration, bool) {
	tokens := x.sse.OutTokens
	if tokens == 0 {
		tokens = x.sse.Content
	}
	if tokens < 2 || !x.lastToken.After(x.firstToken) {
		return 0, false
	}
	return x.lastToken.Sub(x.firstToken) / time.Duration(tokens-1), true
}
