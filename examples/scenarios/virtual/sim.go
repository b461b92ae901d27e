// Package virtual plays what engines and demand may do against the guards of
// agents in virtual time: minutes pass in milliseconds, and a seed gives the same
// figures on every machine. Picking and guards are those of the agent; engines,
// clients and the network are models.
//
//	sim.go        the clock, and requests that arrive
//	engine.go     an engine that serves by its profile, and what may befall it
//	request.go    the way of a request, as the proxy goes it
//	fleet.go      the plan that agents follow
//	setup.go      what each scenario is seen with
//	faults.go, load.go  the scenarios
package virtual

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/irb-project/irb/agent/guard"
	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/agent/signal"
)

// start is when the clock begins; any time does.
var start = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// pollInterval is how often each agent reads the metrics of each engine.
const pollInterval = time.Second

// sim is agents, engines and clients under one clock.
type sim struct {
	now     time.Time
	rng     *rand.Rand
	queue   events
	table   *pick.Table
	agents  []*agent
	engines []*engine

	conversations uint64                  // of each class
	rps           func(s float64) float64 // offered, s seconds after the start
	peak          float64                 // the most that rps is
	classOf       func() int              // of a request
	noBudget      bool                    // retries whatever the budget says
	rival         *rival                  // picks in place of layout and guards

	tally
}

// tally is what became of requests since it was last cleared.
type tally struct {
	offered, answered, shed, failed int
	broken                          int   // streams that ended before their end
	upstream                        int   // attempts
	owned, moved                    []int // by engine that owns the key: requests, those sent elsewhere at first
	first                           []int // by engine: first attempts
	served                          []int // by engine
	byClass                         []outcome
}

type outcome struct{ offered, shed, failed int }

func newTally(engines, classes int) tally {
	return tally{
		owned: make([]int, engines), moved: make([]int, engines), first: make([]int, engines),
		served: make([]int, engines), byClass: make([]outcome, classes),
	}
}

// agent is one agent: its guards, and what it knows of the network.
type agent struct {
	guard *guard.Guard
	plan  *guard.Plan
	down  []time.Time // by engine: until when it is passed over, as it could not be reached
}

type event struct {
	at time.Time
	n  int // of equal times the earlier comes first
	do func()
}

// events is a heap by time.
type events struct {
	list []event
	n    int
}

func (q *events) Len() int      { return len(q.list) }
func (q *events) Swap(i, j int) { q.list[i], q.list[j] = q.list[j], q.list[i] }
func (q *events) Less(i, j int) bool {
	a, b := &q.list[i], &q.list[j]
	return a.at.Before(b.at) || a.at.Equal(b.at) && a.n < b.n
}
func (q *events) Push(x any) { q.list = append(q.list, x.(event)) }
func (q *events) Pop() any {
	last := len(q.list) - 1
	e := q.list[last]
	q.list[last] = event{}
	q.list = q.list[:last]
	return e
}

func (s *sim) after(d time.Duration, do func()) {
	s.queue.n++
	heap.Push(&s.queue, event{s.now.Add(d), s.queue.n, do})
}

// every does something again and again, first after phase.
func (s *sim) every(interval, phase time.Duration, do func()) {
	var again func()
	again = func() {
		do()
		s.after(interval, again)
	}
	s.after(phase, again)
}

// newSim starts the agents of a setup on a fleet.
func newSim(setup Setup, f fleet) *sim {
	settings := guard.Defaults()
	if !f.agentsUnknown {
		settings.Agents = setup.Agents
	}
	snap := f.snapshot()
	table, err := pick.NewTable(snap, cluster)
	if err != nil {
		panic(fmt.Sprintf("virtual: the fleet is no plan: %v", err)) // of our own making
	}
	s := &sim{
		now: start, rng: rand.New(rand.NewPCG(setup.Seed, 2)), table: table,
		conversations: 5000, classOf: func() int { return 0 },
	}
	spec := guard.Spec{Snapshot: snap, Cluster: cluster}
	for i := range snap.Engines {
		s.engines = append(s.engines, newEngine(s, i, f.capacity))
		spec.Endpoints = append(spec.Endpoints, snap.Engines[i].Endpoints)
		spec.Stay = append(spec.Stay, pick.StayAll)
		if setup.WrongProfiles {
			misjudge(&snap.Engines[i].Profile, i)
		}
	}
	for i := range setup.Agents {
		a := &agent{guard: guard.New(settings, nil), down: make([]time.Time, len(s.engines))}
		a.plan = a.guard.NewPlan(spec, start)
		s.agents = append(s.agents, a)
		s.every(guard.TickInterval, time.Duration(i)*7*time.Millisecond, func() { a.guard.Tick(s.now) })
		for _, e := range s.engines { // each agent has its own view: none reads when another does
			s.every(pollInterval, time.Duration(s.rng.Int64N(int64(pollInterval))), func() { e.poll(a) })
		}
	}
	s.clear()
	return s
}

// clear forgets what was counted.
func (s *sim) clear() { s.tally = newTally(len(s.engines), len(s.table.Classes())) }

// run lets time pass, with requests from a Poisson process at the rate of then.
func (s *sim) run(seconds float64) {
	end := s.now.Add(time.Duration(seconds * float64(time.Second)))
	over := false
	var arrive func()
	arrive = func() {
		if over {
			return
		}
		if s.rng.Float64()*s.peak < s.rps(s.now.Sub(start).Seconds()) {
			s.request()
		}
		s.after(time.Duration(s.rng.ExpFloat64()/s.peak*float64(time.Second)), arrive)
	}
	s.after(time.Duration(s.rng.ExpFloat64()/s.peak*float64(time.Second)), arrive)
	for s.queue.list[0].at.Before(end) {
		e := heap.Pop(&s.queue).(event)
		s.now = e.at
		e.do()
	}
	s.now, over = end, true
}

// constant sets a rate that does not change.
func (s *sim) constant(rps float64) {
	s.rps, s.peak = func(float64) float64 { return rps }, rps
}

// poll gives an agent what the engine says of itself; one that is dead says
// nothing.
func (e *engine) poll(a *agent) {
	if !e.dead {
		a.plan.Endpoint(e.number, 0).Observe(
			signal.Report{Running: float64(len(e.running)), Waiting: float64(len(e.waiting)), KVUsage: signal.Unknown()}, e.sim.now)
	}
}
