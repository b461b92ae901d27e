package metrics

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Demand is what the solver must know of the traffic that a cluster offers: how
// many requests, how long, and how many of one conversation. Fleet and cluster
// are labels of these series, under names that no scrape configuration is
// likely to use for its targets: Prometheus would rename a "cluster" of ours.
//
// It collects its series itself: there may be thousands of classes, and a
// prometheus.Counter takes some 20 objects for its labels, which every garbage
// collection would visit.
type Demand struct {
	keys *keyCollector

	mu      sync.Mutex // never taken by a request
	classes map[string]*ClassDemand
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
		keys:    &keyCollector{now: now, classes: map[string]*keyWindows{}},
		classes: map[string]*ClassDemand{},
	}
	s.inCluster(fleet, cluster).MustRegister(d, d.keys)
	return d
}

var (
	descOffered = prometheus.NewDesc("irb_requests_offered_total",
		"POST requests of a class, shed ones included, retries of ours excluded; client_retry: the client says that it sent the request before.",
		[]string{"class", "attempt"}, nil)
	descTokens = prometheus.NewDesc("irb_tokens_total",
		"Tokens of answered requests of which the number is known.", []string{"class", "kind", "source"}, nil)
	descReports = prometheus.NewDesc("irb_token_reports_total",
		"Answered requests that irb_tokens_total has the tokens of.", []string{"class", "kind", "source"}, nil)
)

// Describe is for the registry.
func (d *Demand) Describe(ch chan<- *prometheus.Desc) {
	ch <- descOffered
	ch <- descTokens
	ch <- descReports
}

// Collect is for the registry. A class that is forgotten meanwhile is told once
// more.
func (d *Demand) Collect(ch chan<- prometheus.Metric) {
	d.mu.Lock()
	classes := maps.Clone(d.classes)
	d.mu.Unlock()
	for name, c := range classes {
		c.collect(name, ch)
	}
}

// inCluster registers series under the labels of an agent's fleet and cluster.
func (s *Set) inCluster(fleet, cluster string) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{"irb_fleet": fleet, "irb_cluster": cluster}, s.registry)
}

// ClassDemand counts the demand of one class, looked up once: a request pays
// for atomic operations only.
type ClassDemand struct {
	first, again atomic.Int64
	tokens       [tokenKinds][tokenSources]atomic.Int64
	reports      [tokenKinds][tokenSources]atomic.Int64
	keys         *keyWindows
}

func (c *ClassDemand) collect(class string, ch chan<- prometheus.Metric) {
	tell := func(desc *prometheus.Desc, n *atomic.Int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n.Load()), labels...)
	}
	tell(descOffered, &c.first, class, "first")
	tell(descOffered, &c.again, class, "client_retry")
	for kind := range tokenKinds {
		for source := range tokenSources {
			if kind == CachedTokens && source == FromEstimate {
				continue // nobody can guess what a cache holds
			}
			tell(descTokens, &c.tokens[kind][source], class, tokenKindNames[kind], tokenSourceNames[source])
			tell(descReports, &c.reports[kind][source], class, tokenKindNames[kind], tokenSourceNames[source])
		}
	}
}

// Class returns the counters of a class. They exist from then on, at 0: a
// counter that is born with its first request hides that request from rates.
func (d *Demand) Class(class string) *ClassDemand {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.classes[class]
	if c == nil {
		c = &ClassDemand{keys: d.keys.class(class)}
		d.classes[class] = c
	}
	return c
}

// Offered counts a request before anything else becomes of it.
func (c *ClassDemand) Offered(key uint64, clientRetry bool) {
	if clientRetry {
		c.again.Add(1)
		return
	}
	c.first.Add(1)
	c.keys.add(key)
}

// Tokens counts the tokens of an answered request.
func (c *ClassDemand) Tokens(kind TokenKind, source TokenSource, n int64) {
	c.tokens[kind][source].Add(n)
	c.reports[kind][source].Add(1)
}

// Forget drops the series of a class that no snapshot names any more.
func (d *Demand) Forget(class string) {
	d.mu.Lock()
	delete(d.classes, class)
	d.mu.Unlock()
	d.keys.forget(class)
}
