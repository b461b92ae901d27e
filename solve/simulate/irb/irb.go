// Package irb is irb itself in a simulation: the picking and the guards of its
// agents, and the solve that gives them a plan from what they saw, every some
// minutes.
package irb

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/irb-project/irb/agent/guard"
	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/simulate/policy"
)

// Options are the choices of irb's control loop.
type Options struct {
	EveryS float64 // between two solves
	// StaleS is how old the inputs of a solve are.
	StaleS float64
	// Noise is the standard deviation of the logarithm of the error of each
	// demand in each solve.
	Noise float64
	// DemandError and ProfileError are wrong by that part, alternately up and
	// down: 0.3 takes every second source's demand times 1.3, the others' by
	// 1.3, and engines for 1.3 times as fast or as slow as they are.
	DemandError, ProfileError float64
}

// Config is what an irb is made for.
type Config struct {
	Context context.Context
	Fleet   *model.Fleet // as its owner describes it, demand as at the start
	Agents  int          // per cluster
	// Clusters by number; agent i is in cluster i / Agents.
	Clusters []string
	// SourceRows are the rows of Fleet.Demand by number of source.
	SourceRows []int
	// Numbers are the endpoints of each engine.
	Numbers map[string][]int32
	Signals policy.Signals
	Seed    uint64
	Options Options
}

// IRB implements policy.Policy.
type IRB struct {
	config  Config
	agents  []*agent
	classes []string // by source
	control *control
	flights []request // by flight
	tick    int
}

// epoch is the time of day at which simulations begin; which one matters to
// nobody.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(s float64) time.Time { return epoch.Add(time.Duration(math.Round(s * 1e9))) }

// New solves for the demand at the start and returns the agents with that plan.
func New(c Config) (*IRB, error) {
	p := &IRB{config: c, control: newControl(c)}
	for _, row := range c.SourceRows {
		p.classes = append(p.classes, c.Fleet.Demand[row].Class)
	}
	endpoints := 0
	for _, list := range c.Numbers {
		for _, n := range list {
			endpoints = max(endpoints, int(n)+1)
		}
	}
	settings := guard.Defaults()
	settings.Agents = c.Agents
	for _, cluster := range c.Clusters {
		for range c.Agents {
			p.agents = append(p.agents, &agent{
				cluster: cluster, guard: guard.New(settings, nil),
				spread: pick.NewSpread(c.Seed + uint64(len(p.agents))*0x9E3779B9), down: make([]time.Time, endpoints),
			})
		}
	}
	if err := p.solve(0); err != nil {
		return nil, fmt.Errorf("the first plan: %w", err)
	}
	if p.control.previous == nil {
		return nil, fmt.Errorf("the first plan: %w", p.control.failed)
	}
	return p, nil
}

// Periods tells what each solve said and what agents saw until the next.
func (p *IRB) Periods() []Period { return p.control.periods }

// solve makes a plan of the inputs that were gathered and gives it to all
// agents. An infeasible one leaves the plan in service.
func (p *IRB) solve(now float64) error {
	s, err := p.control.solve(now)
	if s == nil || err != nil {
		return err
	}
	for _, a := range p.agents {
		if err := a.follow(s, p.config.Numbers, at(now)); err != nil {
			return err
		}
	}
	return nil
}

// Interval implements policy.Policy.
func (p *IRB) Interval() float64 { return guard.TickInterval.Seconds() }

// pollTicks is the agents' interval of polls in ticks.
const pollTicks = 10

// Tick lets the guards look, polls engines, and solves when it is time.
func (p *IRB) Tick(now float64) error {
	t := at(now)
	for i, a := range p.agents {
		if (p.tick+i)%pollTicks == 0 {
			a.poll(p.config.Signals, t)
		}
		a.guard.Tick(t)
	}
	p.tick++
	if p.control.collectDue(now) {
		p.control.collect(now)
	}
	if p.control.solveDue(now) {
		return p.solve(now)
	}
	return nil
}

// Route implements policy.Policy.
func (p *IRB) Route(f *policy.Flight, now float64) (int32, policy.Verdict) {
	for int(f.ID) >= len(p.flights) {
		p.flights = append(p.flights, request{})
	}
	r, a, t := &p.flights[f.ID], p.agents[f.Agent], at(now)
	if f.Attempts == 0 {
		p.control.offered(f)
		p.begin(r, a, f)
		if _, ok := r.guard.Admit(r.pick.Key, f.Request.Turn > 0, t); !ok {
			return 0, policy.Shed
		}
		r.guard.Deposit()
	}
	to, ok := r.next(a, t)
	if !ok {
		return 0, policy.Fail
	}
	// What found no connection overloaded nobody; else a retry takes from the
	// budget.
	if f.Attempts > 0 && !r.refused && !r.guard.Withdraw() {
		return 0, policy.Fail
	}
	r.attempt = r.guard.Begin(to.engine, to.index, guard.Work{PromptTokens: f.Request.PromptTokens, Stream: true, Cold: to.cold}, t)
	return to.number, policy.Send
}

// begin classes and keys a request.
func (p *IRB) begin(r *request, a *agent, f *policy.Flight) {
	name := p.classes[f.Request.Source]
	*r = request{plan: a.plan, class: a.plan.table.Class(name)}
	for i := range a.plan.table.Classes() {
		if &a.plan.table.Classes()[i] == r.class {
			r.guard = a.plan.guards.Class(i)
		}
	}
	key := a.spread.Next()
	if f.Request.Conversation != 0 {
		key = pick.Key(name, "", f.Request.Conversation)
	}
	r.pick = pick.Request{
		Key: key, Stay: r.guard.Stay(),
		Need: r.class.Need("", int64(f.Request.PromptTokens+f.Request.OutputTokens)),
	}
	r.walk = r.class.Walk(r.pick)
}

// First implements policy.Policy.
func (p *IRB) First(f *policy.Flight, now float64) { p.flights[f.ID].attempt.First(at(now)) }

// Done implements policy.Policy.
func (p *IRB) Done(f *policy.Flight, o policy.Outcome, now float64) {
	r, t := &p.flights[f.ID], at(now)
	r.refused = o == policy.Refused
	end := guard.Ending{Outcome: guard.Fault}
	switch o {
	case policy.Success:
		end = guard.Ending{Outcome: guard.Success, Tokens: int(f.Tokens) - 1, LastToken: t}
		p.control.answered(f)
	case policy.Pushback:
		end.Outcome = guard.Pushback
	case policy.Refused:
		p.agents[f.Agent].down[f.Endpoint] = t.Add(downFor)
	}
	r.attempt.End(end, t)
}
