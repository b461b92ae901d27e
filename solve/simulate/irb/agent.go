package irb

import (
	"time"

	"github.com/irb-project/irb/agent/guard"
	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/agent/signal"
	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/simulate/policy"
)

// agent is one irb-agent: its picking and its guards are those of production.
type agent struct {
	cluster string
	guard   *guard.Guard
	plan    *agentPlan
	spread  *pick.Spread
	down    []time.Time // by endpoint: until when it is passed over
}

// agentPlan is what an agent routes by; a request keeps the one it began with.
type agentPlan struct {
	table     *pick.Table
	guards    *guard.Plan
	pools     []*pick.Endpoints // by engine of the snapshot
	endpoints [][]int32         // number in the simulation, by engine and index in its pool
}

// downFor is how long the proxy passes over an endpoint that refused a
// connection.
const downFor = time.Second

// follow takes a snapshot into service.
func (a *agent) follow(s *snapshot.Snapshot, numbers map[string][]int32, now time.Time) error {
	table, err := pick.NewTable(s, a.cluster)
	if err != nil {
		return err
	}
	p := &agentPlan{table: table}
	spec := guard.Spec{Snapshot: s, Cluster: a.cluster}
	for i := range s.Engines {
		e := &s.Engines[i]
		p.pools = append(p.pools, pick.NewEndpoints(e.Endpoints))
		p.endpoints = append(p.endpoints, numbers[e.Name])
		spec.Endpoints = append(spec.Endpoints, e.Endpoints)
		spec.Stay = append(spec.Stay, pick.StayAll)
	}
	p.guards = a.guard.NewPlan(spec, now)
	a.plan = p
	return nil
}

// poll reads the metrics of the endpoints that the agent reaches.
func (a *agent) poll(signals policy.Signals, now time.Time) {
	for n, list := range a.plan.endpoints {
		if !a.plan.guards.Reaches(n) {
			continue
		}
		for i, number := range list {
			l := signals.Load(number)
			if !l.Up {
				continue
			}
			a.plan.guards.Endpoint(n, i).Observe(signal.Report{
				Running: float64(l.Running), Waiting: float64(l.Waiting), KVUsage: l.KVUsage,
			}, now)
		}
	}
}

// request is one request in an agent.
type request struct {
	plan    *agentPlan
	class   *pick.Class
	guard   *guard.Class
	pick    pick.Request
	attempt guard.Attempt
	refused bool // the attempt before found no connection

	// Candidates, best first, as package proxy gives them: inside the owner of
	// the key, then inside the engines after it; what is down, ejected or full
	// comes back in further rounds.
	walk   pick.Walk
	step   pick.Step
	inner  pick.EndpointWalk
	left   int  // endpoints that the engine of step may still give
	home   bool // the next endpoint is the home of the key
	away   bool // an endpoint that is there was passed over
	round  guard.Grade
	passed [guard.Out + 1]bool
	given  [policy.MaxAttempts]int32
	n      int
}

// endpointsPerEngine is how many endpoints of one engine a request tries before
// it goes to the next in rank, see package proxy.
const endpointsPerEngine = 2

// candidate is where a request may go: engine, index in its pool, number in the
// simulation; cold unless it is the home of the key.
type candidate struct {
	engine, index int
	number        int32
	cold          bool
}

// next returns the next candidate.
func (r *request) next(a *agent, now time.Time) (c candidate, ok bool) {
	for r.n < len(r.given) {
		if r.left > 0 {
			if i, more := r.inner.Next(); more {
				home := r.home
				r.home = false
				number := r.plan.endpoints[r.step.Engine][i]
				if !r.takes(a, i, number, now) {
					continue
				}
				r.left--
				r.given[r.n] = number
				r.n++
				return candidate{r.step.Engine, i, number, !home}, true
			}
			r.left = 0
		}
		step, more := r.walk.Next()
		if !more {
			if !r.nextRound() {
				break
			}
			continue
		}
		r.step, r.left, r.home = step, endpointsPerEngine, step.Rank == 0
		r.inner = r.plan.pools[step.Engine].Walk(r.pick.Key)
	}
	return candidate{}, false
}

func (r *request) takes(a *agent, i int, number int32, now time.Time) bool {
	for _, given := range r.given[:r.n] {
		if given == number {
			return false
		}
	}
	grade := r.grade(a, i, number, now)
	if grade > r.round {
		r.passed[grade] = true
		return false
	}
	return true
}

func (r *request) grade(a *agent, i int, number int32, now time.Time) guard.Grade {
	if now.Before(a.down[number]) || r.step.Reason == pick.ReasonPenalty {
		return guard.Out
	}
	g := r.guard.Grade(r.step.Engine, i, r.pick.Key, r.away, now)
	r.away = r.away || g != guard.Out
	if g == guard.Clear && r.step.Fallback && r.n == 0 && !r.guard.Absorb(r.step.Engine) {
		return guard.Spared
	}
	return g
}

func (r *request) nextRound() bool {
	for r.round < guard.Out {
		r.round++
		if r.passed[r.round] {
			r.walk, r.away = r.class.Walk(r.pick), false
			return true
		}
	}
	return false
}
