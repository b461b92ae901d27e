// Package collect makes the inputs of a solve from what a fleet tells of
// itself: demand, token means and round trips that agents export, and which
// engine replicas are up. It writes a fleet, a folder that irbctl solve takes.
//
//	signals.go             what is measured, whatever it was read from
//	prometheus.go, query.go   signals from a Prometheus server
//	scrape.go, exposition.go  signals from two scrapes of the agents
//	forecast.go, series.go    demand until the next run
//	demand.go, latency.go, health.go   signals to inputs
//	folder.go, swap_*.go   all files, or none
//	report.go              what was found, and what was not
//
// Only names that the operator's own files define get into the inputs, and no
// address ever does: a label value is looked up, never copied.
package collect

import (
	"context"
	"errors"
	"time"

	"github.com/irb-project/irb/solve/model"
)

// Options says how to make inputs of signals.
type Options struct {
	Now   time.Time
	Every time.Duration // until the next run: how far demand is forecast, > 0
	// Quantile of the method's own errors that the margin covers, (0, 1).
	Quantile float64
}

// Source is where signals come from.
type Source interface {
	// Signals reads the signals of the fleet.
	Signals(ctx context.Context, fleet *model.Fleet, o Options) (*Signals, error)
	// String names the source in the files, without secrets.
	String() string
}

// Result is the inputs that were made, and what is to be said of them.
type Result struct {
	Fleet   string         `json:"fleet"`
	Source  string         `json:"source"`
	Created time.Time      `json:"created"`
	Until   time.Time      `json:"until"`
	Sources []SourceDemand `json:"sources"`
	Engines []EngineHealth `json:"engines"`
	Latency LatencyTable   `json:"latency"`
	Notes   []string       `json:"notes"` // everything that an operator should know
}

// ErrNothing is a fleet without any measured demand.
var ErrNothing = errors.New("no demand of the fleet is measured")

// Run reads the signals of a fleet and makes inputs of them. What is not
// measured stays as the fleet has it, and is said.
func Run(ctx context.Context, source Source, fleet *model.Fleet, o Options) (*Result, error) {
	s, err := source.Signals(ctx, fleet, o)
	if err != nil {
		return nil, err
	}
	known := namesOf(fleet)
	s.dropUnknown(known)
	r := &Result{Fleet: fleet.Policy.Fleet, Source: source.String(), Created: o.Now, Until: o.Now.Add(o.Every)}
	if r.Sources, err = demandOf(s, fleet, o); err != nil {
		return nil, err
	}
	if r.Engines, err = healthOf(s, fleet); err != nil {
		return nil, err
	}
	r.Latency = latencyOf(s, fleet)
	r.Notes = append(s.Notes, r.notes()...)
	return r, nil
}
