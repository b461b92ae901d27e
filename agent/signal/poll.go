package signal

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/prometheus/client_golang/prometheus"
)

// Target is an endpoint whose metrics are polled.
type Target struct {
	ID        string // decides on the phase of its polls
	URL       string // of its metrics
	Host      string // of the Host header; "": that of the URL
	Transport http.RoundTripper
	// Report gets what was read; it must not block.
	Report func(Report)
}

const (
	pollTimeout  = 2 * time.Second
	maxPollBytes = 4 << 20 // a vLLM engine with many models has some 200 kB
	maxPolls     = 16      // at once
	maxBackoff   = 5       // doublings of the interval for an endpoint without metrics
)

// Poller polls the metrics of endpoints, each once per interval. The polls of
// the endpoints are spread evenly over the interval by a hash of their ids, so
// neither the agent nor a fleet of agents polls in bursts, and their cost is
// bounded in time, bytes and number at once. An endpoint that cannot be read is
// polled less and less often, down to once in 32 intervals.
type Poller struct {
	interval time.Duration
	reader   *reader
	slots    chan struct{}
	polls    *prometheus.CounterVec
	missing  *prometheus.CounterVec

	mu      sync.Mutex
	targets []Target
	running context.Context // nil: not yet
	stop    context.CancelFunc
	wait    sync.WaitGroup
}

// NewPoller returns a Poller whose counters are registered at r.
func NewPoller(interval time.Duration, r prometheus.Registerer) *Poller {
	p := &Poller{
		interval: interval, reader: newReader(), slots: make(chan struct{}, maxPolls),
		polls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "irb_engine_polls_total", Help: "Polls of the metrics of engines, by result.",
		}, []string{"result"}),
		missing: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "irb_engine_series_missing_total", Help: "Polls in which an expected series was absent: renamed, or switched off.",
		}, []string{"engine_software", "signal"}),
	}
	r.MustRegister(p.polls, p.missing)
	return p
}

// Set replaces the targets.
func (p *Poller) Set(targets []Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.targets = targets
	if p.running != nil {
		p.restart()
	}
}

// Run polls until ctx ends.
func (p *Poller) Run(ctx context.Context) {
	p.mu.Lock()
	p.running = ctx
	p.restart()
	p.mu.Unlock()
	<-ctx.Done()
	p.mu.Lock()
	p.running = nil
	p.mu.Unlock()
	p.wait.Wait()
}

// restart is called with the lock.
func (p *Poller) restart() {
	if p.stop != nil {
		p.stop()
	}
	var ctx context.Context
	ctx, p.stop = context.WithCancel(p.running)
	for _, t := range p.targets {
		p.wait.Go(func() { p.follow(ctx, t) })
	}
}

// follow polls one target. A second poll of it never begins before the first
// has ended.
func (p *Poller) follow(ctx context.Context, t Target) {
	phase := time.Duration(xxhash.Sum64String(t.ID) % uint64(p.interval))
	failures := 0
	for {
		skip := time.Duration(1<<min(failures, maxBackoff) - 1)
		if !sleep(ctx, untilPhase(time.Now(), p.interval, phase)+skip*p.interval) {
			return
		}
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		err := p.poll(ctx, t)
		<-p.slots
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			failures = 0
		} else {
			failures++
		}
	}
}

// untilPhase returns the time to the next multiple of interval plus phase,
// counted from the epoch, above 0 and at most an interval.
func untilPhase(now time.Time, interval, phase time.Duration) time.Duration {
	return interval - time.Duration((now.UnixNano()-int64(phase))%int64(interval)+int64(interval))%interval
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// poll reads the metrics once. Nothing is reported for a poll that failed: what
// was known before grows stale by itself.
func (p *Poller) poll(ctx context.Context, t Target) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	s, err := p.fetch(ctx, t)
	if err != nil {
		p.polls.WithLabelValues("error").Inc()
		return err
	}
	p.polls.WithLabelValues("ok").Inc()
	for _, m := range s.Missing {
		p.missing.WithLabelValues(m.Family, m.Quantity.String()).Inc()
	}
	t.Report(s.Report)
	return nil
}

func (p *Poller) fetch(ctx context.Context, t Target) (Scrape, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.URL, nil)
	if err != nil {
		return Scrape{}, err
	}
	if t.Host != "" {
		r.Host = t.Host
	}
	r.Header.Set("Accept", "text/plain;version=0.0.4")
	resp, err := t.Transport.RoundTrip(r)
	if err != nil {
		return Scrape{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return Scrape{}, fmt.Errorf("metrics: status %d, want 200", resp.StatusCode)
	}
	return p.reader.readMetrics(resp.Body, maxPollBytes)
}
