// Package soak runs real irb-agents under mixed traffic while endpoints restart
// and weights are replaced, and looks for requests that were lost and for
// goroutines, descriptors, memory and counts that were left behind.
package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/irb-project/irb/agent/bench/rig"
)

// Options say how long and how hard.
type Options struct {
	Program      string // the irb-agent binary
	Folder       string // for settings and logs
	Requests     int
	MaxBodyBytes int // must stay below body.replay of the agent, to be served through a restart
	ReloadEvery  time.Duration
	Seed         uint64 // of bodies and kinds
}

const (
	agentCount         = 3
	engineCount        = 4
	endpointsPerEngine = 2
	callers            = 24

	// restartEvery and awayFor: one endpoint at a time is away, so that every
	// request can be served.
	restartEvery = 700 * time.Millisecond
	awayFor      = 250 * time.Millisecond

	// engineIdle is short, so that the end need not wait long for idle
	// connections to close.
	engineIdle = time.Second
	// requestTimeout is far beyond any answer: what takes that long hangs.
	requestTimeout = 30 * time.Second
)

// soak is a run.
type soak struct {
	Options
	plan      *rig.Plan
	endpoints []*endpoint
	agents    []*rig.Agent
	sequence  atomic.Int64 // published last
	report    *Report
}

// Run runs the soak. The report is there once traffic has begun; the error says
// what was lost or left behind.
func Run(ctx context.Context, o Options) (*Report, error) {
	s := &soak{Options: o, report: &Report{}}
	defer s.close()
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	before, err := s.settle(ctx, nil)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := s.traffic(ctx); err != nil {
		return s.report, err
	}
	s.report.Took = time.Since(began)
	after, err := s.settle(ctx, before)
	if err != nil {
		return s.report, err
	}
	s.report.Before, s.report.After = before, after
	err = errors.Join(s.verdict(), s.end(ctx))
	s.explainLosses()
	return s.report, err
}

// end asks the agents to end, which they must do by themselves and soon: they
// have nothing to do.
func (s *soak) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	var errs []error
	for _, a := range s.agents {
		if err := a.Stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s ended with: %w", a.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (s *soak) start(ctx context.Context) error {
	var engines []rig.Engine
	for i := range engineCount {
		e := rig.Engine{Name: fmt.Sprint("e", i)}
		for range endpointsPerEngine {
			at, err := newEndpoint()
			if err != nil {
				return err
			}
			s.endpoints = append(s.endpoints, at)
			e.Endpoints = append(e.Endpoints, "http://"+at.address)
		}
		engines = append(engines, e)
	}
	var err error
	if s.plan, err = rig.NewPlan(s.Folder, engines); err != nil {
		return err
	}
	if err := s.publish(); err != nil {
		return err
	}
	for i := range agentCount {
		a, err := rig.StartAgent(ctx, s.plan, fmt.Sprint("agent-", i), rig.AgentOptions{
			Program: s.Program, Agents: agentCount, EngineIdle: engineIdle, Sample: 1,
		})
		if err != nil {
			return err
		}
		s.agents = append(s.agents, a)
	}
	return nil
}

func (s *soak) close() {
	for _, a := range s.agents {
		a.Kill()
	}
	for _, e := range s.endpoints {
		e.stop()
	}
}

// publish gives every engine a random weight.
func (s *soak) publish() error {
	shares := make([]float64, engineCount)
	for i := range shares {
		shares[i] = 0.5 + rand.Float64()
	}
	sequence, err := s.plan.Publish(shares, time.Now())
	s.sequence.Store(sequence)
	return err
}

// traffic sends all requests while weights are replaced and endpoints restart.
func (s *soak) traffic(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var disturbance sync.WaitGroup
	disturb := func(every time.Duration, do func() error) {
		disturbance.Go(func() {
			tick := time.NewTicker(every)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					if err := do(); err != nil {
						stop(err)
					}
				}
			}
		})
	}
	disturb(s.ReloadEvery, func() error {
		s.report.Reloads++
		return s.publish()
	})
	disturb(restartEvery, func() error {
		s.report.Restarts++
		return s.endpoints[rand.IntN(len(s.endpoints))].restart(awayFor)
	})
	err := s.callAll(ctx)
	stop(errors.New("all requests are done"))
	disturbance.Wait()
	return err
}

func (s *soak) callAll(ctx context.Context) error {
	transport := &http.Transport{MaxIdleConnsPerHost: callers, DisableCompression: true}
	client := &http.Client{Transport: transport, Timeout: requestTimeout}
	defer transport.CloseIdleConnections()
	var next atomic.Int64
	var all sync.WaitGroup
	for caller := range callers {
		random := rand.New(rand.NewPCG(s.Seed, uint64(caller)))
		all.Go(func() {
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if n >= s.Requests {
					return
				}
				a := newAsk(n, random, s.MaxBodyBytes)
				s.count(&a, a.do(ctx, client, s.agents[n%agentCount].Address))
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// count notes how a request ended.
func (s *soak) count(a *ask, err error) {
	r := s.report
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.Served[a.kind]++
	case errors.Is(err, errLeft):
		r.Left++
	case errors.Is(err, errAltered), errors.Is(err, errCleanEnd):
		r.lose(a, err)
	case s.wasCut(a.id):
		// Its stream had begun when the engine went away, so nobody could have
		// gone on with it; the caller saw that it broke.
		r.Cut++
	default:
		r.lose(a, err)
	}
}

func (s *soak) wasCut(id string) bool {
	for _, e := range s.endpoints {
		if e.wasCut(id) {
			return true
		}
	}
	return false
}
