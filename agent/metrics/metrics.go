// Package metrics is what the agent counts, under bounded label values only:
// classes and engines of snapshots that were served, and words of this code.
package metrics

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// None stands for a class or an engine that a request did not get to.
const None = "none"

// latencyBuckets are in seconds: from an engine next door that answers from its
// cache to a long generation.
var latencyBuckets = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}

// tbotBuckets are in seconds per output token.
var tbotBuckets = []float64{0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1}

// Set holds the agent's metrics in a registry of its own.
type Set struct {
	registry *prometheus.Registry

	requests *prometheus.CounterVec
	inFlight *prometheus.GaugeVec
	latency  *prometheus.HistogramVec
	ttft     *prometheus.HistogramVec
	tbot     *prometheus.HistogramVec

	retries     *prometheus.CounterVec
	retriesHeld *prometheus.CounterVec
	reloads     *prometheus.CounterVec
	configs     *prometheus.CounterVec

	// DecisionsDropped counts decision records that the log was too slow for.
	DecisionsDropped prometheus.Counter
	// BodyBytes is the memory of the request bodies held now.
	BodyBytes prometheus.Gauge

	snapshot atomic.Pointer[Snapshot]
}

// Snapshot is what is served now.
type Snapshot struct {
	Sequence         int64
	Created, Expires time.Time
}

// New returns a Set; now is the clock of the ages.
func New(now func() time.Time) *Set {
	perRoute := []string{"class", "engine"}
	s := &Set{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "irb_requests_total", Help: "Requests by final outcome; the engine is the one tried last.",
		}, []string{"class", "engine", "outcome"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "irb_requests_in_flight", Help: "Attempts that engines work on.",
		}, perRoute),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "irb_request_duration_seconds", Help: "From the request's header to the end of the answer, retries included.", Buckets: latencyBuckets,
		}, perRoute),
		ttft: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "irb_time_to_first_token_seconds", Help: "From an attempt's start to its first frame with content.", Buckets: latencyBuckets,
		}, perRoute),
		tbot: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "irb_time_between_output_tokens_seconds", Help: "Mean of one stream, first to last token.", Buckets: tbotBuckets,
		}, perRoute),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "irb_retries_total", Help: "Attempts after the first, by what went wrong before.",
		}, []string{"reason"}),
		retriesHeld: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "irb_retries_not_sent_total", Help: "Failed attempts that were not retried, by what forbade it.",
		}, []string{"reason"}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "irb_reloads_total", Help: "New weight files by result.",
		}, []string{"result"}),
		configs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "irb_config_reloads_total", Help: "Readings of agent.toml on SIGHUP by result.",
		}, []string{"result"}),
		DecisionsDropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "irb_decisions_dropped_total", Help: "Sampled decisions that could not be logged.",
		}),
		BodyBytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "irb_request_body_bytes", Help: "Memory of request bodies held now.",
		}),
	}
	s.registry.MustRegister(s.requests, s.inFlight, s.latency, s.ttft, s.tbot, s.retries, s.retriesHeld,
		s.reloads, s.configs, s.DecisionsDropped, s.BodyBytes,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.registerSnapshot(now)
	return s
}

// registerSnapshot adds the gauges that are computed at scrape. They are
// absent until something is served: an age of 0 would be a lie.
func (s *Set) registerSnapshot(now func() time.Time) {
	s.registry.MustRegister(&snapshotCollector{set: s, now: now})
}

type snapshotCollector struct {
	set *Set
	now func() time.Time
}

var (
	descSequence = prometheus.NewDesc("irb_snapshot_sequence", "Sequence of the snapshot in service.", nil, nil)
	descAge      = prometheus.NewDesc("irb_snapshot_age_seconds", "Time since the snapshot in service was made.", nil, nil)
	descExpires  = prometheus.NewDesc("irb_snapshot_expires_in_seconds", "Time until the snapshot in service expires; negative: it has.", nil, nil)
)

func (c *snapshotCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- descSequence
	ch <- descAge
	ch <- descExpires
}

func (c *snapshotCollector) Collect(ch chan<- prometheus.Metric) {
	snap := c.set.snapshot.Load()
	if snap == nil {
		return
	}
	now := c.now()
	gauge := func(d *prometheus.Desc, v float64) { ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	gauge(descSequence, float64(snap.Sequence))
	gauge(descAge, now.Sub(snap.Created).Seconds())
	gauge(descExpires, snap.Expires.Sub(now).Seconds())
}

// Serving tells which snapshot is in service.
func (s *Set) Serving(snap Snapshot) { s.snapshot.Store(&snap) }

// Reload counts a new weight file; result is a word of the reloading code.
func (s *Set) Reload(result string) { s.reloads.WithLabelValues(result).Inc() }

// ConfigReload counts a reading of the settings.
func (s *Set) ConfigReload(accepted bool) {
	result := "refused"
	if accepted {
		result = "accepted"
	}
	s.configs.WithLabelValues(result).Inc()
}

// Handler serves the metrics.
func (s *Set) Handler() http.Handler {
	return promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{Registry: s.registry})
}

// Registry is where further metrics of the agent are registered.
func (s *Set) Registry() *prometheus.Registry { return s.registry }
