package guard

import (
	"math"
	"time"

	"github.com/irb-project/irb/agent/signal"
)

// rateMemory is the time constant of rates.
const rateMemory = 2 * time.Second

// expect sets what a request takes at the estimated utilization, or without an
// estimate at utilization 0. A queue that the engine tells of is no surprise
// either: n requests wait for the time in which n are served at capacity.
func (e *Endpoint) expect(spec *engine) {
	if spec.p.PromptTokens <= 0 {
		return // no profile: nothing is expected
	}
	v := e.utilization
	if math.IsNaN(v) {
		v = 0
	}
	e.ttftPerTokenNs.Store(int64(spec.ttftMs(v) * 1e6 / spec.p.PromptTokens))
	e.tbotNs.Store(int64(spec.tbotMs(v) * 1e6))
	queue := 0.0
	if signal.Known(e.queue) && spec.capacity > 0 {
		queue = e.queue / spec.capacity
	}
	e.queueNs.Store(int64(queue * 1e9))
}

// estimate finds the utilization of an endpoint and what follows from it.
//
// By Little's law the engine's rate is lambda = N / L with N requests in
// progress of latency L, and ours is lambda_own = N_own / L; so lambda =
// lambda_own N / N_own, in which L is not needed: an engine that is slow has a
// larger N, but is not taken for one that is busy. Only where hardly anything
// there is ours, N is turned into a utilization by the profile.
func (e *Endpoint) estimate(spec *engine, now time.Time, dt time.Duration, s *Settings) {
	decay := math.Exp(-dt.Seconds() / rateMemory.Seconds())
	rate := func(rate *float64, last *int64, total int64) {
		*rate = *rate*decay + (1-decay)*float64(total-*last)/1000/dt.Seconds()
		*last = total
	}
	rate(&e.rate, &e.lastWork, e.work.Load())
	rate(&e.goodput, &e.lastDone, e.done.Load())

	e.queue = e.said[signal.Waiting].get(now, s.SignalTTL)
	e.running = 0
	if r := e.said[signal.Running].get(now, s.SignalTTL); signal.Known(r) {
		e.running = r
	}
	own := float64(e.inFlight.Load())
	total := e.inProgress(now, s.SignalTTL)
	e.utilization = math.NaN()
	switch {
	case spec.capacity <= 0 || spec.p.PromptTokens <= 0:
	case signal.Known(total):
		share := 1.0
		if total > own {
			share = own / total
		}
		if e.ownShare == 0 {
			e.ownShare = share
		}
		e.ownShare = e.ownShare*decay + (1-decay)*share
		if own >= 1 && e.ownShare > 0.01 {
			e.utilization = min(maxUtilization, e.rate/e.ownShare/spec.capacity)
		} else {
			e.utilization = spec.utilizationOf(max(total, own), spec.capacity)
		}
	default:
		e.ownShare = 0
		e.utilization = min(maxUtilization, e.rate*float64(max(1, s.Agents))/spec.capacity)
	}
	e.expect(spec)
	e.count(dt)
	e.judgeSaturation(now, s)
}

// busyMemory is for how long an endpoint that was saturated may be slow for it:
// what waited there is answered later.
const busyMemory = 5 * time.Second

// busy says whether the endpoint is full of work that it does: it has a queue,
// and what all agents get done there, by our part of it, is more than its
// capacity divided by the factor. Then it is not slow by that factor, however
// long requests take: they wait. A queue that a poll has not seen yet must not
// look like a sick engine.
func (e *Endpoint) busy(spec *engine, now time.Time, s *Settings) bool {
	if now.Sub(e.saturatedAt) >= busyMemory || spec.capacity <= 0 {
		return false
	}
	all := e.goodput * float64(max(1, s.Agents))
	if e.ownShare > 0 {
		all = e.goodput / e.ownShare
	}
	return all >= spec.capacity/s.OutlierFactor
}

// answerMemory is the time constant of the counts of answers.
const answerMemory = time.Second

func (e *Endpoint) count(dt time.Duration) {
	now := answers{float64(e.successes.Load()), float64(e.faults.Load()), float64(e.pushbacks.Load())}
	e.newAnswers = answers{
		now.successes - e.lastAnswers.successes, now.faults - e.lastAnswers.faults, now.pushbacks - e.lastAnswers.pushbacks,
	}
	e.lastAnswers = now
	e.recent.decay(math.Exp(-dt.Seconds() / answerMemory.Seconds()))
	e.recent.add(e.newAnswers)
}

func (a *answers) decay(f float64) {
	a.successes *= f
	a.faults *= f
	a.pushbacks *= f
}

func (a *answers) add(b answers) {
	a.successes += b.successes
	a.faults += b.faults
	a.pushbacks += b.pushbacks
}

const (
	// fullPushbacks is the share of answers that say "full" from which an
	// endpoint is saturated, whatever its queue.
	fullPushbacks = 0.2
	// fullKV is the use of the KV cache from which waiting requests wait for it.
	fullKV = 0.98
)

// judgeSaturation has hysteresis: saturated from the queue limit on, no more
// below half of it. What is not known saturates nothing.
func (e *Endpoint) judgeSaturation(now time.Time, s *Settings) {
	kv := e.said[signal.KVUsage].get(now, s.SignalTTL)
	limit := s.QueueLimit
	if e.saturated {
		limit /= 2
	}
	e.saturated = e.queue >= limit || kv >= fullKV && e.queue > 0 || e.recent.pushbackShare() >= fullPushbacks
	if e.saturated {
		e.saturatedAt = now
	}
}

// pushbackShare returns the part of recent answers that said "full"; of less
// than one it is no share.
func (a answers) pushbackShare() float64 {
	if a.pushbacks < 1 {
		return 0
	}
	return a.pushbacks / (a.pushbacks + a.successes + a.faults)
}

const (
	// bunching is how many standard deviations of a Poisson count a limit allows
	// for above the mean.
	bunching = 3
	// minLimit keeps small endpoints usable.
	minLimit = 4
)

// setLimit sets how many requests this agent may have in flight there before
// it prefers others: by Little's law the planned rate, its fallbacks' part
// included, divided by the agents, times the latency at plan, times the slack.
//
// The engine's own queue scales that: without one there is room, so the limit
// doubles. The agent's own requests in flight are never old news, so agents
// that bound those cannot swing. With an unknown number of agents there is no
// limit but while there is a queue: then the agent's part of what the engine
// runs, so its part of the queue goes elsewhere.
//
// What all endpoints have too much of is no reason to move it, so without a
// queue the limit is raised to reliefFactor times what the median of the peers
// has of theirs.
func (e *Endpoint) setLimit(spec *engine, s *Settings) {
	x := e.queue / s.QueueLimit // NaN if unknown
	limit := spec.planned / float64(max(1, s.Agents)) * spec.latencyMs / 1000 * s.ConcurrencySlack
	switch {
	case s.Agents == 0 && x > 1:
		limit = max(minLimit, e.running*e.ownShare)
	case s.Agents == 0:
		limit = 0
	case x < 1:
		limit *= 2 - x
		fallthrough
	default:
		limit += bunching * math.Sqrt(limit)
	}
	if limit > 0 {
		limit = max(minLimit, limit)
	}
	e.planLimit, e.relief, e.queueing = limit, 1, x > 1
}

// publishLimit makes the limit known to requests.
func (e *Endpoint) publishLimit() { e.limit.Store(int64(math.Ceil(e.planLimit * e.relief))) }

// reliefFactor is how much fuller than its peers an endpoint may be (bounded
// load, 125 to 200 % in the field).
const reliefFactor = 1.5

// relieve raises the limits of members whose peers are as full.
func (p *peers) relieve() {
	fill := func(m *member) float64 {
		if e := m.endpoint; m.away || m.weight == 0 || e.planLimit <= 0 || e.queueing {
			return math.NaN()
		}
		return float64(m.endpoint.inFlight.Load()) / m.endpoint.planLimit
	}
	for i := range p.members {
		p.members[i].fill = fill(&p.members[i])
	}
	fills := newOthers(p.members, func(m *member) float64 { return m.fill })
	for i := range p.members {
		e := p.members[i].endpoint
		if x := fills.median(p.members[i].fill); !e.queueing && x*reliefFactor > e.relief {
			e.relief = x * reliefFactor
		}
	}
}
