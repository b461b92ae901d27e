package standin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics is what /metrics tells, in the names of vLLM. Times are as a client
// sees them, so Speedup is in them.
type metrics struct {
	handler               http.Handler
	queries, hits         prometheus.Counter // tokens
	ttft, itl, queue, e2e prometheus.Histogram
}

// vLLM's buckets, in s; the short ones matter under Speedup.
var (
	secondsBuckets = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	tokenBuckets   = []float64{.001, .0025, .005, .01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5}
)

func newMetrics(e *Engine) *metrics {
	model := ""
	if len(e.cfg.Models) > 0 {
		model = e.cfg.Models[0]
	}
	registry := prometheus.NewRegistry()
	register := prometheus.WrapRegistererWith(prometheus.Labels{"model_name": model, "engine": "0"}, registry)
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		register.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
		register.MustRegister(h)
		return h
	}
	gauge := func(name, help string, f func(load) float64) {
		register.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return f(e.load()) }))
	}
	gauge("vllm:num_requests_running", "Requests in service.", func(l load) float64 { return float64(l.running) })
	gauge("vllm:num_requests_waiting", "Requests in the queue.", func(l load) float64 { return float64(l.waiting) })
	gauge("vllm:kv_cache_usage_perc", "KV cache in use, 0 to 1.", func(l load) float64 { return l.kvUsage })
	return &metrics{
		handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		queries: counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache."),
		hits:    counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache."),
		ttft:    histogram("vllm:time_to_first_token_seconds", "Time to first token, queueing included.", secondsBuckets),
		itl:     histogram("vllm:inter_token_latency_seconds", "Time between output tokens; the mean of an answer, once per gap.", tokenBuckets),
		queue:   histogram("vllm:request_queue_time_seconds", "Time in the queue.", secondsBuckets),
		e2e:     histogram("vllm:e2e_request_latency_seconds", "Time from arrival to the last byte.", secondsBuckets),
	}
}

func (m *metrics) queried(promptTokens, cachedTokens float64) {
	m.queries.Add(promptTokens)
	m.hits.Add(cachedTokens)
}

// finished counts a complete answer. The job is no longer the station's.
func (m *metrics) finished(c *call, speedup float64) {
	j := &c.job
	m.ttft.Observe((j.firstToken - j.arrived) / speedup)
	m.queue.Observe((j.started - j.arrived) / speedup)
	m.e2e.Observe((j.ended - j.arrived) / speedup)
	gap := (j.ended - j.firstToken) / float64(j.tokens) / speedup
	for range j.tokens {
		m.itl.Observe(gap)
	}
}

// reportLoad adds an ORCA load report to an answer whose request asked for it.
func (e *Engine) reportLoad(w http.ResponseWriter, r *http.Request) {
	format := strings.ToUpper(r.Header.Get("endpoint-load-metrics-format"))
	if format != "TEXT" && format != "JSON" {
		return
	}
	l := e.load()
	report := ""
	if format == "TEXT" {
		report = fmt.Sprintf("TEXT application_utilization=%g, named_metrics.kv_cache_usage_perc=%g, "+
			"named_metrics.num_requests_running=%d, named_metrics.num_requests_waiting=%d",
			l.utilization, l.kvUsage, l.running, l.waiting)
	} else {
		b, err := json.Marshal(map[string]any{
			"application_utilization": l.utilization,
			"named_metrics": map[string]float64{
				"kv_cache_usage_perc":  l.kvUsage,
				"num_requests_running": float64(l.running),
				"num_requests_waiting": float64(l.waiting),
			},
		})
		if err != nil {
			panic(err) // finite numbers always encode
		}
		report = "JSON " + string(b)
	}
	w.Header().Set("endpoint-load-metrics", report)
}
