package guard

import (
	"errors"
	"fmt"
	"time"
)

// Settings are the knobs of the guards. Those that are not here follow from
// the snapshot: rates, latencies, limits.
type Settings struct {
	// Agents of this cluster, which share its planned rates. 0: unknown, then
	// only what engines say and how they answer limits anything. 0 to 100,000;
	// default 0.
	Agents int

	// ConsecutiveFaults that eject an endpoint. 1 to 1,000; default 5 (Envoy,
	// gRPC A50).
	ConsecutiveFaults int
	// EjectionBase is how long the first ejection lasts; each further one lasts
	// twice as long, EjectionMax at most. 100ms to 10m; defaults 3s and 30s.
	// Shorter than Envoy's 30s and 300s, because what ends an ejection here is
	// one probe, and a probe that fails is served elsewhere.
	EjectionBase, EjectionMax time.Duration
	// MaxEjectedShare of the capacity that a source reaches may be taken away
	// by ejections and penalties; but one endpoint always may. 0 to 1; default
	// 0.5 (Envoy's panic threshold).
	MaxEjectedShare float64

	// OutlierFactor is how many times the latency ratio of an endpoint must
	// exceed the median of its peers for a penalty. 1.2 to 100; default 2: with
	// profiles that are wrong by 30 % either way, ratios of healthy engines are
	// up to 1.3/0.7 = 1.86 apart.
	OutlierFactor float64
	// MinSamples is how much must have been observed for a judgement: answers,
	// or answers that are overdue. 1 to 1,000; default 5.
	MinSamples int

	// QueueLimit is the number of waiting requests at which an endpoint counts
	// as saturated. 1 to 10,000; default 5 (llm-d).
	QueueLimit float64
	// ConcurrencySlack is how many times the planned concurrency one agent may
	// have in flight at an endpoint before it prefers others. 1.1 to 100;
	// default 2.
	ConcurrencySlack float64
	// SignalTTL is how long what an engine said of itself is believed. 100ms to
	// 10m; default 3s: above the interval of polls, or all would be stale
	// between two of them.
	SignalTTL time.Duration

	// RetryRatio is the share of requests that may be retried while engines
	// have room. 0 to 1; default 0.2 (Envoy, Finagle).
	RetryRatio float64
	// RetryFloor is how many retries per second are allowed however few the
	// requests, while engines have room. 0 to 1,000; default 10 (Finagle).
	RetryFloor float64
}

// Defaults returns the default of every setting.
func Defaults() Settings {
	return Settings{
		ConsecutiveFaults: 5, EjectionBase: 3 * time.Second, EjectionMax: 30 * time.Second, MaxEjectedShare: 0.5,
		OutlierFactor: 2, MinSamples: 5,
		QueueLimit: 5, ConcurrencySlack: 2, SignalTTL: 3 * time.Second,
		RetryRatio: 0.2, RetryFloor: 10,
	}
}

// Check returns every setting that is out of its range.
func (s Settings) Check() error {
	var errs []error
	within := func(name string, x, low, high float64) {
		if !(x >= low && x <= high) {
			errs = append(errs, fmt.Errorf("guard: %s is %v, want %v to %v", name, x, low, high))
		}
	}
	during := func(name string, d time.Duration) {
		if d < 100*time.Millisecond || d > 10*time.Minute {
			errs = append(errs, fmt.Errorf("guard: %s is %v, want 100ms to 10m", name, d))
		}
	}
	within("agents", float64(s.Agents), 0, 1e5)
	within("consecutive faults", float64(s.ConsecutiveFaults), 1, 1000)
	during("ejection base", s.EjectionBase)
	during("ejection max", s.EjectionMax)
	if s.EjectionBase > s.EjectionMax {
		errs = append(errs, fmt.Errorf("guard: ejection base is %v, want at most ejection max, %v", s.EjectionBase, s.EjectionMax))
	}
	within("max ejected share", s.MaxEjectedShare, 0, 1)
	within("outlier factor", s.OutlierFactor, 1.2, 100)
	within("min samples", float64(s.MinSamples), 1, 1000)
	within("queue limit", s.QueueLimit, 1, 1e4)
	within("concurrency slack", s.ConcurrencySlack, 1.1, 100)
	during("signal TTL", s.SignalTTL)
	within("retry ratio", s.RetryRatio, 0, 1)
	within("retry floor", s.RetryFloor, 0, 1000)
	return errors.Join(errs...)
}
