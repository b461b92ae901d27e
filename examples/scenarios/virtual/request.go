package virtual

import (
	"time"

	"github.com/irb-project/irb/agent/guard"
	"github.com/irb-project/irb/agent/pick"
)

const (
	maxAttempts = 3                // retry.attempts of agent.toml
	downFor     = time.Second      // as in agent/proxy
	connectTime = time.Millisecond // to an engine, or to be told that none is there
)

// request goes its way as in agent/proxy: the same walk, the same grades, the
// same rules of retries.
type request struct {
	sim      *sim
	agent    *agent
	pick     *pick.Class
	guard    *guard.Class
	class    int
	key      uint64
	attempts int
	engine   int
	tried    []bool
	round    guard.Grade
	streams  bool // the client has a part of the answer
	over     bool
	away     bool // an endpoint that is there was passed over
	attempt  guard.Attempt
}

func (s *sim) request() {
	number, agent := s.classOf(), s.agents[s.rng.IntN(len(s.agents))]
	class, guards := &s.table.Classes()[number], agent.plan.Class(number)
	key := pick.Key(class.Spec.Name, "", s.rng.Uint64N(s.conversations))
	s.offered++
	s.byClass[number].offered++
	if _, ok := guards.Admit(key, false, s.now); !ok {
		s.shed++
		s.byClass[number].shed++
		return
	}
	guards.Deposit()
	r := &request{sim: s, agent: agent, pick: class, guard: guards, class: number, key: key, tried: make([]bool, len(s.engines))}
	r.send()
}

// next returns the engine to try, the best grade first.
func (r *request) next() (engine int, ok bool) {
	if rival := r.sim.rival; rival != nil {
		return rival.pick(r.sim.rng.Float64()), true
	}
	for ; r.round <= guard.Out; r.round++ {
		r.away = false
		walk := r.pick.Walk(pick.Request{Key: r.key, Stay: r.guard.Stay()})
		for step, more := walk.Next(); more; step, more = walk.Next() {
			if !r.tried[step.Engine] && r.grade(step) <= r.round {
				return step.Engine, true
			}
		}
	}
	return 0, false
}

func (r *request) grade(step pick.Step) guard.Grade {
	now := r.sim.now
	if now.Before(r.agent.down[step.Engine]) || step.Reason == pick.ReasonPenalty {
		return guard.Out
	}
	g := r.guard.Grade(step.Engine, 0, r.key, r.away, now)
	r.away = r.away || g != guard.Out
	if g == guard.Clear && step.Fallback && r.attempts == 0 && !r.guard.Absorb(step.Engine) {
		return guard.Spared
	}
	return g
}

func (r *request) send() {
	s := r.sim
	n, ok := r.next()
	if !ok {
		r.fail()
		return
	}
	if r.attempts == 0 {
		owner := r.pick.Owner(r.key)
		s.owned[owner]++
		s.first[n]++
		if n != owner {
			s.moved[owner]++
		}
	}
	r.attempts++
	r.tried[n], r.engine = true, n
	s.upstream++
	r.attempt = r.guard.Begin(n, 0, guard.Work{Stream: true}, s.now)
	s.after(connectTime, func() { s.engines[n].take(r) })
}

// begins is the first token: from here on there is no other attempt.
func (r *request) begins() {
	r.streams = true
	r.attempt.First(r.sim.now)
}

func (r *request) answered() {
	s := r.sim
	r.over = true
	s.answered++
	s.served[r.engine]++
	r.attempt.End(guard.Ending{Outcome: guard.Success, Tokens: outputTokens, Frames: outputTokens, LastToken: s.now}, s.now)
}

// reset is the end of the connection. The client sees the end of a stream.
func (r *request) reset() {
	if r.streams {
		r.over = true
		r.sim.broken++
		r.attempt.End(guard.Ending{Outcome: guard.Fault}, r.sim.now)
		return
	}
	r.end(guard.Fault)
}

// unreachable is a connection that was refused. Nothing was sent, so another
// attempt costs nobody anything.
func (r *request) unreachable() {
	r.agent.down[r.engine] = r.sim.now.Add(downFor)
	r.attempt.End(guard.Ending{Outcome: guard.Fault}, r.sim.now)
	if r.attempts < maxAttempts {
		r.send()
		return
	}
	r.fail()
}

// end ends an attempt without an answer; another one needs the budget.
func (r *request) end(o guard.Outcome) {
	r.attempt.End(guard.Ending{Outcome: o}, r.sim.now)
	if r.attempts < maxAttempts && (r.sim.noBudget || r.guard.Withdraw()) {
		r.send()
		return
	}
	r.fail()
}

func (r *request) fail() {
	r.over = true
	r.sim.failed++
	r.sim.byClass[r.class].failed++
}
