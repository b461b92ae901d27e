package soak

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Report is what a soak saw.
type Report struct {
	Took     time.Duration
	Reloads  int
	Restarts int
	Retries  float64 // attempts that agents made after a first one

	mu     sync.Mutex
	Served [3]int // by kind, whole and intact
	Left   int    // canceled by their callers
	Cut    int    // broke off, visibly, with the engine that was answering them
	Lost   int    // everything else
	losses []loss // the first of them

	Before, After []Remains // per agent, at rest
}

// Remains is what an agent holds while it has nothing to do.
type Remains struct {
	Agent      string
	Goroutines float64
	Files      int
	InFlight   float64 // requests at engines
	BodyBytes  float64
	PeakBytes  int64
}

const maxLosses = 20

func (r *Report) lose(a *ask, err error) {
	r.Lost++
	if len(r.losses) < maxLosses {
		r.losses = append(r.losses, loss{a.id, fmt.Sprintf("%s (%v, %d bytes): %v", a.id, a.kind, len(a.body), err), ""})
	}
}

// loss is a request that was lost.
type loss struct {
	id, text string
	decision string // what its agent says of it
}

// explainLosses looks the losses up in the decision logs of the agents, which
// must have ended.
func (s *soak) explainLosses() {
	for i := range s.report.losses {
		l := &s.report.losses[i]
		for _, a := range s.agents {
			l.decision += strings.TrimSpace(a.Decision(l.id) + "\n" + a.Logged(l.id))
		}
	}
}

// String tells the report in lines.
func (r *Report) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "soak of %.0f s with %d reloads and %d restarts of endpoints:\n", r.Took.Seconds(), r.Reloads, r.Restarts)
	fmt.Fprintf(&b, "  served whole      %d answers, %d streams\n", r.Served[whole], r.Served[streamed]+r.Served[canceled])
	fmt.Fprintf(&b, "  canceled          %d by their callers\n", r.Left)
	fmt.Fprintf(&b, "  cut               %d streams, visibly, by the end of the engine that sent them\n", r.Cut)
	fmt.Fprintf(&b, "  retried           %.0f attempts\n", r.Retries)
	fmt.Fprintf(&b, "  lost              %d\n", r.Lost)
	for _, l := range r.losses {
		fmt.Fprintf(&b, "    %s\n    %s\n", l.text, l.decision)
	}
	for i, after := range r.After {
		before := r.Before[i]
		fmt.Fprintf(&b, "  %s at rest   %.0f goroutines (%.0f before), %d descriptors (%d), %.0f in flight, %.0f body bytes; peak %d MiB\n",
			after.Agent, after.Goroutines, before.Goroutines, after.Files, before.Files, after.InFlight, after.BodyBytes, after.PeakBytes>>20)
	}
	return b.String()
}

// verdict says what is wrong.
func (s *soak) verdict() error {
	var errs []error
	if s.report.Lost > 0 {
		errs = append(errs, fmt.Errorf("%d requests were lost, want 0", s.report.Lost))
	}
	for _, e := range s.endpoints {
		if n := e.inFlight.Load(); n != 0 {
			errs = append(errs, fmt.Errorf("endpoint %s still answers %d requests, want 0", e.address, n))
		}
	}
	for i, after := range s.report.After {
		if err := after.leak(s.report.Before[i]); err != nil {
			errs = append(errs, fmt.Errorf("%w\n%s", err, s.agents[i].Stacks()))
		}
	}
	return errors.Join(errs...)
}

// slack is how many goroutines or descriptors more than before are no leak: one
// poll of an endpoint may be under way, and the runtime starts a few of its own
// with the first work. A leak per reload, restart or request is far above.
const slack = 4

func (r Remains) leak(before Remains) error {
	var errs []error
	if r.InFlight != 0 {
		errs = append(errs, fmt.Errorf("%s: irb_requests_in_flight is %.0f, want 0", r.Agent, r.InFlight))
	}
	if r.BodyBytes != 0 {
		errs = append(errs, fmt.Errorf("%s: irb_request_body_bytes is %.0f, want 0", r.Agent, r.BodyBytes))
	}
	if r.Goroutines > before.Goroutines+slack {
		errs = append(errs, fmt.Errorf("%s: %.0f goroutines, %.0f before", r.Agent, r.Goroutines, before.Goroutines))
	}
	if r.Files > before.Files+slack {
		errs = append(errs, fmt.Errorf("%s: %d descriptors, %d before", r.Agent, r.Files, before.Files))
	}
	return errors.Join(errs...)
}

// settleWithin is how long agents may take to come to rest: idle connections
// close after engineIdle, or a few times that on a busy machine.
const settleWithin = 15 * time.Second

// settle waits until the agents serve the newest weights and hold no more than
// before, or too long; it returns what they hold.
func (s *soak) settle(ctx context.Context, before []Remains) ([]Remains, error) {
	deadline := time.Now().Add(settleWithin)
	for {
		remains, sequences, err := s.remains()
		if err != nil {
			return nil, err
		}
		var errs []error
		for i, sequence := range sequences {
			if want := s.sequence.Load(); sequence != want {
				errs = append(errs, fmt.Errorf("%s serves snapshot %d, want %d", s.agents[i].Name, sequence, want))
			}
		}
		stale := errors.Join(errs...)
		var leaks []error
		for i := range before {
			leaks = append(leaks, remains[i].leak(before[i]))
		}
		switch late := time.Now().After(deadline); {
		case stale == nil && (errors.Join(leaks...) == nil || late):
			return remains, nil
		case late:
			return nil, stale
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// remains asks each agent what it holds and which snapshot it serves.
func (s *soak) remains() (remains []Remains, sequences []int64, err error) {
	s.report.Retries = 0
	for _, a := range s.agents {
		m, err := a.Metrics()
		if err != nil {
			return nil, nil, err
		}
		u, err := a.Usage()
		if err != nil {
			return nil, nil, fmt.Errorf("%w\n%s", err, a.LastLines())
		}
		remains = append(remains, Remains{
			Agent: a.Name, Goroutines: m.Sum("go_goroutines"), Files: u.Files,
			InFlight: m.Sum("irb_requests_in_flight"), BodyBytes: m.Sum("irb_request_body_bytes"),
			PeakBytes: u.PeakBytes,
		})
		sequences = append(sequences, int64(m.Sum("irb_snapshot_sequence")))
		s.report.Retries += m.Sum("irb_retries_total")
	}
	return remains, sequences, nil
}
