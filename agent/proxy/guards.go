package proxy

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/irb-project/irb/agent/config"
	"github.com/irb-project/irb/agent/guard"
	"github.com/irb-project/irb/agent/metrics"
	"github.com/irb-project/irb/agent/signal"
)

// guardSettings are those of the config; what it does not name has its default.
func guardSettings(c *config.Config) guard.Settings {
	s := guard.Defaults()
	s.Agents = c.Agents
	s.RetryRatio, s.RetryFloor = c.Retry.BudgetRatio, c.Retry.BudgetFloor
	g := &c.Guard
	s.ConsecutiveFaults, s.EjectionMax, s.MaxEjectedShare = g.ConsecutiveFaults, g.EjectionMax, g.MaxEjectedShare
	s.OutlierFactor, s.QueueLimit, s.ConcurrencySlack = g.OutlierFactor, g.QueueLimit, g.ConcurrencySlack
	s.SignalTTL = max(s.SignalTTL, 3*g.PollInterval)
	return s
}

// RunGuards ticks the guards and polls the engines' metrics until ctx ends.
func (p *Proxy) RunGuards(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.poller.Run(ctx)
	}()
	p.guard.Run(ctx, p.now)
	<-ended
}

// guardPlan makes the guards of a plan.
func (p *Proxy) guardPlan(next *plan, pause func()) *guard.Plan {
	spec := guard.Spec{Snapshot: next.table.Snapshot(), Cluster: next.table.Cluster(), Stay: next.stay, Pause: pause}
	for n := range next.pools {
		ids := make([]string, len(next.pools[n].endpoints))
		for i, e := range next.pools[n].endpoints {
			ids[i] = e.id
		}
		spec.Endpoints = append(spec.Endpoints, ids)
	}
	return p.guard.NewPlan(spec, p.now())
}

// pollTargets are the metrics of the endpoints of a plan.
func (p *Proxy) pollTargets(next *plan) []signal.Target {
	var targets []signal.Target
	for n := range next.pools {
		if !next.guards.Reaches(n) {
			continue // no request of this cluster goes there
		}
		for i, e := range next.pools[n].endpoints {
			at := next.guards.Endpoint(n, i)
			targets = append(targets, signal.Target{
				ID: next.engineName(n) + " " + e.id, URL: e.url.Scheme + "://" + e.host + e.basePath + "/metrics",
				Host: e.url.Host, Transport: e.upstream,
				Report: func(r signal.Report) { at.Observe(r, p.now()) },
			})
		}
	}
	return targets
}

// logChange tells of endpoints that get less than planned, and of shedding.
func (p *Proxy) logChange(c guard.Change) {
	log := p.log.Warn
	if c.State == guard.Normal || c.State == guard.Recovering {
		log = p.log.Info
	}
	log("guard: "+string(c.State), "class", c.Class, "engine", c.Engine, "endpoint", c.Endpoint, "weight", c.Weight, "why", c.Why)
}

// admit refuses a request when there are more than the engines can serve.
func (x *exchange) admit() *answer {
	retryAfter, ok := x.guard.Admit(x.key, x.facts.UnderWay || x.facts.Stateful, x.start)
	if ok {
		x.guard.Deposit()
		return nil
	}
	return &answer{
		status: http.StatusTooManyRequests, kind: "rate_limit_error", code: "overloaded", dropped: droppedSaturated,
		message:    "all engines of class \"" + x.class.Spec.Name + "\" are at capacity; try again later",
		retryAfter: retryAfter,
	}
}

// watchTry tells the guards of an attempt that begins.
func (x *exchange) watchTry(t *try) {
	work := guard.Work{PromptTokens: float64(x.facts.PromptTokens), Stream: x.facts.Stream, Cold: t.at.cold, Untimed: !x.generates()}
	t.guard = x.guard.Begin(t.at.engine, t.at.index, work, t.started)
	t.observer = x.plan.guards.Endpoint(t.at.engine, t.at.index)
}

// generates says whether the request is one for generated text, of whose
// latency profiles tell.
func (x *exchange) generates() bool {
	if x.facts.PromptTokens <= 0 || isUpgrade(x.request) {
		return false
	}
	path := x.request.URL.Path
	for _, suffix := range generationPaths {
		if strings.HasSuffix(path, suffix) {
			return true
		}
	}
	return false
}

// generationPaths end the paths of OpenAI's and Anthropic's APIs of generation.
var generationPaths = []string{"/completions", "/responses", "/messages"}

// observe takes in the load report of an answer, if the engine made one.
func (t *try) observe(h http.Header, now time.Time) {
	v := h[signal.ReportHeader]
	if len(v) != 1 {
		return
	}
	if r, err := signal.ParseORCA(v[0]); err == nil {
		t.observer.Observe(r, now)
	}
}

// judge says what a status means for the endpoint.
func (t *try) judge(resp *http.Response, now time.Time) {
	t.observe(resp.Header, now)
	switch s := resp.StatusCode; {
	case s == http.StatusTooManyRequests || s == http.StatusServiceUnavailable:
		t.ending.Outcome = guard.Pushback
		t.ending.RetryAfter = retryAfter(resp.Header, now)
	case isFault(s):
		t.ending.Outcome = guard.Fault
	}
}

// retryAfter reads in how long an engine wants to be asked again: seconds or a
// date (RFC 9110, 10.2.3); 0 if it does not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := h.Get("Retry-After")
	if v == "" {
		return 0
	}
	if seconds, err := strconv.Atoi(v); err == nil {
		return time.Duration(min(max(0, seconds), 1<<20)) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// blame says what a failure without an answer means for the endpoint.
func (t *try) blame(r metrics.Reason) {
	if r != metrics.Stale {
		t.ending.Outcome = guard.Fault
	}
}

// well tells the guards that an answer has been forwarded in full.
func (s *answerStream) well(now time.Time) {
	t, x := s.try, s.x
	if s.response.StatusCode >= 400 {
		return // judged by its status
	}
	t.guard.First(now)
	t.ending.Outcome = guard.Success
	if !x.firstToken.IsZero() {
		tokens := x.sse.OutTokens
		if tokens == 0 {
			tokens = x.sse.Content
		}
		t.ending.Tokens, t.ending.Frames, t.ending.LastToken = tokens-1, x.sse.Content-1, x.lastToken
	}
}
