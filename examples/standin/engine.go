// Package standin is a GPU engine that computes nothing: it speaks the OpenAI
// API and takes the time that a latency profile says an engine would take at
// the load it really has, so that demos and tests need no GPU.
//
// It serves POST /v1/chat/completions and /v1/completions (streaming or not),
// GET /v1/models, /health, /metrics in vLLM's names, ORCA load reports to who
// asks for them, and POST /fault to misbehave on command. Every answer names
// the engine and its address in the headers x-standin-engine and -endpoint.
package standin

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/irb-project/irb/solve/profile"
)

// The response headers that name the engine and its address.
const (
	NameHeader     = "x-standin-engine"
	EndpointHeader = "x-standin-endpoint"
)

// prefixCacheFactor is how many times as many tokens the prefix cache holds as
// fit into the KV cache, as with host memory behind that of the GPUs.
const prefixCacheFactor = 8

// Config describes an engine.
type Config struct {
	Name        string
	Models      []string        // served; none: any
	Profile     profile.Profile // latencies at each utilization
	CapacityRPS float64         // reference requests/s at utilization 1

	// Speedup makes everything that many times faster than the profile and
	// the capacity say. Default 1.
	Speedup float64
	// MaxRunning is how many requests are in service at most; the others
	// wait. Default: as many as are in progress where the profile ends.
	MaxRunning int
	// MaxWaiting bounds the queue; beyond it a request is answered 503.
	// Default: as many as may run.
	MaxWaiting int
}

// Engine is an http.Handler. Close it when its server is shut down.
type Engine struct {
	cfg      Config
	mux      *http.ServeMux
	metrics  *metrics
	kvTokens float64 // what fits into the KV cache while requests run
	start    time.Time
	quit     chan struct{}
	closing  sync.Once

	mu      sync.Mutex // guards all below
	station station
	timer   *time.Timer
	cache   *prefixCache
	served  Served
	fault   Fault
	faulted chan struct{} // closed when the fault changes
}

// New returns an engine that is ready to serve.
func New(cfg Config) (*Engine, error) {
	if cfg.Speedup == 0 {
		cfg.Speedup = 1
	}
	if !positive(cfg.CapacityRPS) || !positive(cfg.Speedup) {
		return nil, fmt.Errorf("standin %q: capacity is %v req/s, speedup is %v, want finite numbers > 0",
			cfg.Name, cfg.CapacityRPS, cfg.Speedup)
	}
	if !positive(cfg.Profile.PromptTokens) || !positive(cfg.Profile.OutputTokens) || !positive(cfg.Profile.ReferenceMs(0)) {
		return nil, fmt.Errorf("standin %q: profile %q has no reference request or takes no time", cfg.Name, cfg.Profile.Name)
	}
	if cfg.MaxRunning == 0 {
		cfg.MaxRunning = saturation(cfg.Profile, cfg.CapacityRPS)
	}
	if cfg.MaxWaiting == 0 {
		cfg.MaxWaiting = cfg.MaxRunning
	}
	e := &Engine{
		cfg:      cfg,
		kvTokens: float64(cfg.MaxRunning) * (cfg.Profile.PromptTokens + cfg.Profile.OutputTokens),
		start:    time.Now(),
		quit:     make(chan struct{}),
		faulted:  make(chan struct{}),
		fault:    Fault{Kind: FaultOff},
	}
	e.cache = newPrefixCache(prefixCacheFactor * e.kvTokens)
	e.station = station{
		curve:      newLoadCurve(cfg.Profile, cfg.CapacityRPS, cfg.MaxRunning),
		slow:       1,
		maxRunning: cfg.MaxRunning,
		maxWaiting: cfg.MaxWaiting,
	}
	e.timer = time.AfterFunc(math.MaxInt64, e.tick)
	e.metrics = newMetrics(e)
	e.routes()
	return e, nil
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }

func (e *Engine) routes() {
	e.mux = http.NewServeMux()
	e.mux.HandleFunc("POST /v1/chat/completions", e.serveCompletion)
	e.mux.HandleFunc("POST /v1/completions", e.serveCompletion)
	e.mux.HandleFunc("GET /v1/models", e.serveModels)
	e.mux.HandleFunc("GET /health", e.serveHealth)
	e.mux.Handle("GET /metrics", e.metrics.handler)
	e.mux.HandleFunc("POST /fault", e.serveFault)
}

// Name returns the name of the engine.
func (e *Engine) Name() string { return e.cfg.Name }

// ServeHTTP serves the engine's API.
func (e *Engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(NameHeader, e.cfg.Name)
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		w.Header().Set(EndpointHeader, addr.String())
	}
	e.mux.ServeHTTP(w, r)
}

// Close ends all requests in progress and refuses new ones.
func (e *Engine) Close() {
	e.closing.Do(func() {
		close(e.quit)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.timer.Stop()
	})
}

func (e *Engine) closed() bool {
	select {
	case <-e.quit:
		return true
	default:
		return false
	}
}

func (e *Engine) serveHealth(w http.ResponseWriter, _ *http.Request) {
	if e.closed() {
		writeError(w, http.StatusServiceUnavailable, "engine_closed", "the engine is shutting down")
	}
}

// change brings the station to the present, runs f on it, and sets the timer
// to what is due next.
func (e *Engine) change(f func(*station)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.station.advance(time.Since(e.start).Seconds() * e.cfg.Speedup)
	f(&e.station)
	at, ok := e.station.next()
	if !ok || e.closed() {
		e.timer.Stop()
		return
	}
	// Rounded up, so that what is due has happened when the timer fires.
	left := time.Duration(math.Ceil(at / e.cfg.Speedup * 1e9))
	e.timer.Reset(left - time.Since(e.start))
}

func (e *Engine) tick() { e.change(func(*station) {}) }

// load is what the engine reports of itself.
type load struct {
	running, waiting     int
	kvUsage, utilization float64 // 0 to 1
}

func (e *Engine) load() (l load) {
	e.change(func(s *station) {
		l.running, l.waiting, l.utilization = s.running(), len(s.waiting), s.utilization()
		for _, h := range []jobHeap{s.inPrefill, s.inDecode} {
			for _, j := range h {
				l.kvUsage += j.kvTokens / e.kvTokens
			}
		}
	})
	l.kvUsage = min(1, l.kvUsage)
	return l
}

// InProgress returns how many requests are running or waiting.
func (e *Engine) InProgress() int {
	l := e.load()
	return l.running + l.waiting
}

// Served sums up the complete answers of an engine.
type Served struct {
	Requests int
	Seconds  float64 // from arrival to the end of the answer, by the engine's own clock
}

// Served returns what the engine has served so far.
func (e *Engine) Served() Served {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.served
}
