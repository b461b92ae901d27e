package metrics

import "github.com/prometheus/client_golang/prometheus"

// Outcome is how a request ended.
type Outcome uint8

// The outcomes of a request.
const (
	OK           Outcome = iota // answered in full
	Neutral                     // the engine refused the request itself: 4xx
	Backpressure                // the engine was full: 429 or 503
	Fault                       // the engine failed, before the first byte
	Broken                      // the engine failed in the middle of its answer
	Canceled                    // the client left
	Rejected                    // refused by the agent, no engine was asked
	outcomes
)

var outcomeNames = [outcomes]string{"ok", "neutral", "backpressure", "fault", "broken", "canceled", "rejected"}

// String returns the label value.
func (o Outcome) String() string { return outcomeNames[o] }

// Reason is why an attempt failed or why it was not repeated.
type Reason uint8

// Reasons of retries, then reasons of retries that were not sent.
const (
	Connect   Reason = iota // no connection: nothing was sent
	Stale                   // a kept connection that the engine had closed
	Reset                   // the connection broke before the answer
	Timeout                 // no answer in time
	Gateway                 // 500, 502 or 504
	Full                    // 429 or 503
	Truncated               // a short answer broke off before it was forwarded

	HeldAttempts  // the request has had its attempts
	HeldBudget    // the retry budget is spent
	HeldDeadline  // the deadline is over
	HeldBody      // the body was too large to keep
	HeldStateful  // the request depends on what one engine holds
	HeldNobody    // no other endpoint is left
	HeldForwarded // part of the answer was forwarded
	reasons
)

var reasonNames = [reasons]string{
	"connect", "stale", "reset", "timeout", "gateway", "full", "truncated",
	"attempts", "budget", "deadline", "body", "stateful", "nobody", "forwarded",
}

// String returns the label value.
func (r Reason) String() string { return reasonNames[r] }

// Retry counts an attempt after the first.
func (s *Set) Retry(r Reason) { s.retries.WithLabelValues(r.String()).Inc() }

// RetryHeld counts a retry that was not sent.
func (s *Set) RetryHeld(r Reason) { s.retriesHeld.WithLabelValues(r.String()).Inc() }

// Route holds the metrics of one class on one engine, looked up once so that a
// request pays for atomic additions only.
type Route struct {
	InFlight prometheus.Gauge
	Latency  prometheus.Observer
	TTFT     prometheus.Observer
	TBOT     prometheus.Observer
	requests [outcomes]prometheus.Counter
}

// Route returns the metrics of a class on an engine.
func (s *Set) Route(class, engine string) *Route {
	r := &Route{
		InFlight: s.inFlight.WithLabelValues(class, engine),
		Latency:  s.latency.WithLabelValues(class, engine),
		TTFT:     s.ttft.WithLabelValues(class, engine),
		TBOT:     s.tbot.WithLabelValues(class, engine),
	}
	for o := range outcomes {
		r.requests[o] = s.requests.WithLabelValues(class, engine, o.String())
	}
	return r
}

// Done counts a request by its outcome.
func (r *Route) Done(o Outcome) { r.requests[o].Inc() }

// Forget drops the series of an engine that the snapshot no longer names.
func (s *Set) Forget(engine string) { s.forget(prometheus.Labels{"engine": engine}) }

// ForgetClass drops those of a class.
func (s *Set) ForgetClass(class string) { s.forget(prometheus.Labels{"class": class}) }

func (s *Set) forget(labels prometheus.Labels) {
	s.requests.DeletePartialMatch(labels)
	s.inFlight.DeletePartialMatch(labels)
	s.latency.DeletePartialMatch(labels)
	s.ttft.DeletePartialMatch(labels)
	s.tbot.DeletePartialMatch(labels)
}
