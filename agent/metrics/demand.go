package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Demand is what the solver must know of the traffic that a cluster offers: how
// many requests, how long, and how many of one conversation. Fleet and cluster
// are labels of these series, under names that no scrape configuration is
// likely to use for its targets: Prometheus would rename a "cluster" of ours.
type Demand struct {
	offered *prometheus.CounterVec
	tokens  *prometheus.CounterVec
	reports *prometheus.CounterVec
	keys    *keyCollector
}

// TokenKind is what is counted in tokens.
type TokenKind uint8

// The kinds of tokens.
const (
	PromptTokens TokenKind = iota // all of the prompt
	CachedTokens                  // those of the prompt that came from a KV cache
	OutputTokens
	tokenKinds
)

var tokenKindNames = [tokenKinds]string{"prompt", "cached", "output"}

// TokenSource is how a number of tokens is known.
type TokenSource uint8

// The sources of token counts.
const (
	FromUsage    TokenSource = iota // the usage object of the engine's answer
	FromEstimate                    // bytes of the prompt / 4, events of a stream
	tokenSources
)

var tokenSourceNames = [tokenSources]string{"usage", "estimate"}

// NewDemand registers the series of demand for an agent of a cluster; now is
// the clock of the windows in which keys are counted.
func (s *Set) NewDemand(fleet, cluster string, now func() time.Time) *Demand {
	d := &Demand{
		offered: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "irb_requests_offered_total",
			Help: "POST requests of a class, shed ones included, retries of ours excluded; client_retry: the client says that it sent the request before.",
		}, []string{"class", "attempt"}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "irb_tokens_total", Help: "Tokens of answered requests of which the number is known.",
		}, []string{"class", "kind", "source"}),
		reports: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "irb_token_reports_total", Help: "Answered requests that irb_tokens_total has the tokens of.",
		}, []string{"class", "kind", "source"}),
		keys: &keyCollector{now: now, classes: map[string]*keyWindows{}},
	}
	s.inCluster(fleet, cluster).MustRegister(d.offered, d.tokens, d.reports, d.keys)
	return d
}

// inCluster registers series under the labels of an agent's fleet and cluster.
func (s *Set) inCluster(fleet, cluster string) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{"irb_fleet": fleet, "irb_cluster": cluster}, s.registry)
}

// ClassDemand counts the demand of one class, looked up once: a request pays
// for atomic operations only.
type ClassDemand struct {
	first, again prometheus.Counter
	tokens       [tokenKinds][tokenSources]prometheus.Counter
	reports      [tokenKinds][tokenSources]prometheus.Counter
	keys         *keyWindows
}

// Class returns the counters of a class. They exist from then on, at 0: a
// counter that is born with its first request hides that request from rates.
func (d *Demand) Class(class string) *ClassDemand {
	c := &ClassDemand{
		first: d.offered.WithLabelValues(class, "first"),
		again: d.offered.WithLabelValues(class, "client_retry"),
		keys:  d.keys.class(class),
	}
	for kind := range tokenKinds {
		for source := range tokenSources {
			if kind == CachedTokens && source == FromEstimate {
				continue // nobody can guess what a cache holds
			}
			c.tokens[kind][source] = d.tokens.WithLabelValues(class, tokenKindNames[kind], tokenSourceNames[source])
			c.reports[kind][source] = d.reports.WithLabelValues(class, tokenKindNames[kind], tokenSourceNames[source])
		}
	}
	return c
}

// Offered counts a request before anything else becomes of it.
func (c *ClassDemand) Offered(key uint64, clientRetry bool) {
	if clientRetry {
		c.again.Inc()
		return
	}
	c.first.Inc()
	c.keys.add(key)
}

// Tokens counts the tokens of an answered request.
func (c *ClassDemand) Tokens(kind TokenKind, source TokenSource, n int64) {
	c.tokens[kind][source].Add(float64(n))
	c.reports[kind][source].Inc()
}

// Forget drops the series of a class that no snapshot names any more.
func (d *Demand) Forget(class string) {
	labels := prometheus.Labels{"class": class}
	d.offered.DeletePartialMatch(labels)
	d.tokens.DeletePartialMatch(labels)
	d.reports.DeletePartialMatch(labels)
	d.keys.forget(class)
}
