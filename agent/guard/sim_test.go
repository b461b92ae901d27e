package guard

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"

	"github.com/irb-project/irb/agent/signal"
	"github.com/irb-project/irb/agent/snapshot"
)

// sim is agents and engines in virtual time: what the guards do to traffic can
// be seen in milliseconds, and is the same on every run.
type sim struct {
	now     time.Time
	rng     *rand.Rand
	agents  []*simAgent
	engines []*simEngine
	queue   events

	keys    uint64                  // number of conversations
	rps     func(t float64) float64 // offered, at t seconds after the start
	peak    float64                 // the most that rps is
	class   func(r *rand.Rand) int  // of a request; nil: 0
	retries bool                    // without a budget
	owners  int                     // engines that own keys, all but one or two; 0: all. The others are fallbacks
	shares  []float64               // of a rival's weights: how it picks engines, whatever guards say; nil: guards do

	// What came of it.
	offered, answered, shed, failed int // of all classes
	upstream                        int // requests that engines got
	byClass                         map[int]*tally
	moved                           map[int]int // by owner: requests that another engine got
	owned                           map[int]int
	got                             map[int]int // by engine
}

type tally struct{ offered, answered, shed, failed int }

type simAgent struct {
	guard *Guard
	plan  *Plan
	views []Change
}

// simEngine serves by its profile: the more are in service, the slower, up to
// as many as it can do at utilization 1; the others wait, up to as many again.
type simEngine struct {
	profile  curve
	capacity float64
	slots    int
	running  int
	waiting  []*simRequest
	slow     float64 // times are this many times as long
	pushback float64 // part of the requests that is answered 503
	dead     bool
	served   int
}

type simRequest struct {
	sim     *sim
	agent   *simAgent
	class   *Class
	number  int // of the class
	key     uint64
	tries   int
	engine  int
	tried   []bool
	attempt Attempt
}

type event struct {
	at time.Time
	do func()
}

type events []event

func (q events) Len() int           { return len(q) }
func (q events) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q events) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)        { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

func (s *sim) after(d time.Duration, do func()) { heap.Push(&s.queue, event{s.now.Add(d), do}) }

// newSim has agents of one cluster whose true engines have the profile, times
// what they are wrong by.
func newSim(snap *snapshot.Snapshot, agents int, settings Settings, wrong ...float64) *sim {
	s := &sim{now: start, rng: rand.New(rand.NewPCG(1, 2)), keys: 5000, byClass: map[int]*tally{}, moved: map[int]int{}, owned: map[int]int{}, got: map[int]int{}}
	for i := range snap.Engines {
		e := &snap.Engines[i]
		p := profile()
		c := curve{&p}
		s.engines = append(s.engines, &simEngine{
			profile: c, capacity: e.CapacityRPS, slow: 1,
			slots: int(math.Ceil(e.CapacityRPS * c.latencyMs(1, p.PromptTokens, p.OutputTokens) / 1000)),
		})
		if len(wrong) > 0 {
			f := wrong[i%len(wrong)]
			for j := range e.Profile.TTFTMs {
				e.Profile.TTFTMs = append([]float64(nil), e.Profile.TTFTMs...)
				e.Profile.TBOTMs = append([]float64(nil), e.Profile.TBOTMs...)
				e.Profile.TTFTMs[j] /= f
				e.Profile.TBOTMs[j] /= f
			}
		}
	}
	for range agents {
		a := &simAgent{}
		a.guard = New(settings, func(c Change) { a.views = append(a.views, c) })
		a.plan = a.guard.NewPlan(spec(snap), start)
		s.agents = append(s.agents, a)
	}
	for i, a := range s.agents {
		s.every(TickInterval, time.Duration(i)*7*time.Millisecond, func() { a.guard.Tick(s.now) })
		for n := range s.engines {
			s.every(time.Second, time.Duration(s.rng.IntN(1000))*time.Millisecond, func() { s.poll(a, n) })
		}
	}
	return s
}

func (s *sim) every(d, phase time.Duration, do func()) {
	var again func()
	again = func() {
		do()
		s.after(d, again)
	}
	s.after(phase, again)
}

func (s *sim) poll(a *simAgent, n int) {
	e := s.engines[n]
	if !e.dead {
		a.plan.Endpoint(n, 0).Observe(signal.Report{Running: float64(e.running), Waiting: float64(len(e.waiting)), KVUsage: signal.Unknown()}, s.now)
	}
}

// run sends traffic for a while: a Poisson process at the rate of then.
func (s *sim) run(d time.Duration) {
	end := s.now.Add(d)
	over := false
	var arrive func()
	arrive = func() {
		if over {
			return
		}
		if t := s.now.Sub(start).Seconds(); s.rng.Float64()*s.peak < s.rps(t) {
			s.request()
		}
		s.after(time.Duration(s.rng.ExpFloat64()/s.peak*1e9), arrive)
	}
	arrive()
	for s.queue[0].at.Before(end) {
		e := heap.Pop(&s.queue).(event)
		s.now = e.at
		e.do()
	}
	s.now = end
	over = true
}

// reset forgets what was counted.
func (s *sim) reset() {
	s.offered, s.answered, s.shed, s.failed, s.upstream = 0, 0, 0, 0, 0
	s.byClass, s.moved, s.owned, s.got = map[int]*tally{}, map[int]int{}, map[int]int{}, map[int]int{}
	for _, e := range s.engines {
		e.served = 0
	}
}

func (s *sim) tally(class int) *tally {
	if s.byClass[class] == nil {
		s.byClass[class] = &tally{}
	}
	return s.byClass[class]
}

func (s *sim) request() {
	a := s.agents[s.rng.IntN(len(s.agents))]
	r := &simRequest{sim: s, agent: a, key: mix(s.rng.Uint64N(s.keys) + 1), tried: make([]bool, len(s.engines))}
	if s.class != nil {
		r.number = s.class(s.rng)
	}
	r.class = a.plan.Class(r.number)
	t := s.tally(r.number)
	s.offered++
	t.offered++
	if _, ok := r.class.Admit(r.key, false, s.now); !ok {
		s.shed++
		t.shed++
		return
	}
	r.class.Deposit()
	r.send()
}

func (s *sim) owner(key uint64) int {
	n := s.owners
	if n == 0 {
		n = len(s.engines)
	}
	return int(part(key, uint64(n)))
}

// rival picks by its weights.
func (s *sim) rival() int {
	x := s.rng.Float64()
	for n, share := range s.shares {
		if x -= share; x < 0 {
			return n
		}
	}
	return len(s.shares) - 1
}

// reweigh is what a rival does each time that it reads the metrics: weights in
// proportion to the room that each engine reports.
func (s *sim) reweigh() {
	sum := 0.0
	for n, e := range s.engines {
		s.shares[n] = max(0.01, 1-float64(e.running+len(e.waiting))/float64(e.slots))
		sum += s.shares[n]
	}
	for n := range s.shares {
		s.shares[n] /= sum
	}
}

// next walks as the proxy does: engines in the order of the key, best grade
// first.
func (r *simRequest) next() (n int, ok bool) {
	s := r.sim
	if s.shares != nil {
		return s.rival(), true
	}
	count := len(s.engines)
	owner := s.owner(r.key)
	stay := r.class.Stay()
	for grade := Clear; grade <= Out; grade++ {
		for i := range count {
			n := owner
			if i > 0 { // the others in an order of the key
				n = (owner + 1 + (int(mix(r.key)%uint64(count))+i-1)%(count-1)) % count
			}
			if n == owner && i > 0 || r.tried[n] {
				continue
			}
			g := Clear
			switch {
			case stay[n] != stayAll && mix(r.key^r.agent.plan.engines[n].hash) >= stay[n]:
				g = Spared
				if stay[n] == 1 {
					g = Out
				}
			default:
				g = r.class.Grade(n, 0, r.key, s.now)
				if g == Clear && grade == Clear && r.tries == 0 && s.owners > 0 && n >= s.owners && !r.class.Absorb(n) {
					g = Spared
				}
			}
			if g == grade {
				return n, true
			}
		}
	}
	return 0, false
}

func (r *simRequest) send() {
	s := r.sim
	n, ok := r.next()
	if !ok {
		r.fail()
		return
	}
	owner := s.owner(r.key)
	if r.tries == 0 {
		s.owned[owner]++
		if n != owner {
			s.moved[owner]++
		}
	}
	r.tries++
	r.tried[n], r.engine = true, n
	s.upstream++
	s.got[n]++
	r.attempt = r.class.Begin(n, 0, Work{Stream: true}, s.now)
	s.after(time.Millisecond, func() { s.engines[n].take(r) })
}

func (r *simRequest) fail() {
	r.sim.failed++
	r.sim.tally(r.number).failed++
}

// end ends an attempt without an answer.
func (r *simRequest) end(o Outcome) {
	s := r.sim
	r.attempt.End(Ending{Outcome: o}, s.now)
	if r.tries < 3 && (s.retries || r.class.Withdraw()) {
		r.send()
		return
	}
	r.fail()
}

func (e *simEngine) take(r *simRequest) {
	s := r.sim
	switch {
	case e.dead:
		r.end(Fault)
	case e.pushback > 0 && s.rng.Float64() < e.pushback, len(e.waiting) >= e.slots:
		r.end(Pushback)
	case e.running >= e.slots:
		e.waiting = append(e.waiting, r)
	default:
		e.start(r)
	}
}

func (e *simEngine) start(r *simRequest) {
	s := r.sim
	v := e.profile.utilizationOf(float64(e.running), e.capacity)
	e.running++
	ttft := time.Duration(e.profile.ttftMs(v) * e.slow * 1e6)
	decode := time.Duration(e.profile.tbotMs(v) * e.slow * 64 * 1e6)
	s.after(ttft, func() { r.attempt.First(s.now) })
	s.after(ttft+decode, func() {
		e.running--
		e.served++
		s.answered++
		s.tally(r.number).answered++
		r.attempt.End(Ending{Outcome: Success, Tokens: 64, LastToken: s.now}, s.now)
		if len(e.waiting) > 0 {
			next := e.waiting[0]
			e.waiting = e.waiting[1:]
			e.start(next)
		}
	})
}
