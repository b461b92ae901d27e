package simulate

import (
	"context"
	"math"

	"github.com/irb-project/irb/solve/simulate/engine"
	"github.com/irb-project/irb/solve/simulate/policy"
	"github.com/irb-project/irb/solve/simulate/report"
	"github.com/irb-project/irb/solve/simulate/scenario"
	"github.com/irb-project/irb/solve/simulate/traffic"
)

// world is one simulation under way: the engines, what is in flight, and the
// policy. One goroutine runs it; the same inputs give the same run.
type world struct {
	layout   *layout
	scenario *scenario.Scenario
	stream   traffic.Stream
	policy   policy.Policy
	collect  *report.Collector

	now      float64
	agenda   agenda
	engines  []*engine.Engine // by endpoint
	ailments []ailment        // by endpoint
	dues     *dues
	flights  []*flight
	free     []int32
	live     int
	ticks    int
}

// ailment is what scripted events have done to an endpoint.
type ailment struct {
	down           int // events that hold it down
	slow, capacity float64
}

// flight is a request and where it is.
type flight struct {
	policy.Flight
	backS float64 // network time from the endpoint to the gateway
	begun bool    // its first token has left the engine
}

// Load implements policy.Signals.
func (w *world) Load(e int32) policy.Load {
	x := w.engines[e]
	return policy.Load{
		Running: x.Running(), Waiting: x.Waiting(), KVUsage: x.Usage(),
		Utilization: x.Utilization(), LatencyS: x.LatencyS(), Up: w.ailments[e].down == 0,
	}
}

// checkEvery is how many events pass between two looks at the context.
const checkEvery = 1 << 16

// run lets everything happen until the last request is done.
func (w *world) run(ctx context.Context) error {
	var next traffic.Request
	more := w.stream.Next(&next)
	if every := w.policy.Interval(); !math.IsInf(every, 1) {
		w.agenda.add(0, tick, 0)
	}
	for i := range w.scenario.Events {
		w.agenda.add(w.scenario.Events[i].AtS, begin, int32(i))
	}
	for n := 1; more || w.live > 0; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		endpoint, due := w.dues.next()
		soonest := math.Inf(1)
		if len(w.agenda.list) > 0 {
			soonest = w.agenda.list[0].at
		}
		switch {
		case due <= soonest && (!more || due <= next.AtS):
			w.now = due
			w.step(endpoint)
		case soonest <= due && (!more || soonest <= next.AtS):
			e := w.agenda.next()
			w.now = e.at
			if err := w.handle(e); err != nil {
				return err
			}
		default:
			w.now = next.AtS
			w.arrive(&next)
			more = w.stream.Next(&next)
		}
	}
	return nil
}

// step lets the next thing happen at an endpoint.
func (w *world) step(endpoint int32) {
	e := w.engines[endpoint].Step()
	f := w.flights[e.ID]
	k := lastToken
	if e.First {
		k, f.begun, f.CachedTokens = firstToken, true, e.CachedTokens
	}
	w.agenda.add(w.now+f.backS, k, e.ID)
	w.dues.set(endpoint, w.engines[endpoint].Due())
}

func (w *world) handle(e event) error {
	switch e.kind {
	case tick:
		if err := w.policy.Tick(w.now); err != nil {
			return err
		}
		w.ticks++
		w.agenda.add(float64(w.ticks)*w.policy.Interval(), tick, 0)
	case begin, end:
		w.script(e)
	case arriveEngine:
		w.deliver(w.flights[e.id])
	case firstToken:
		f := w.flights[e.id]
		f.FirstS = w.now
		w.policy.First(&f.Flight, w.now)
	case lastToken:
		f := w.flights[e.id]
		f.Tokens = f.Request.OutputTokens
		w.policy.Done(&f.Flight, policy.Success, w.now)
		w.collect.Answered(&f.Flight, w.now)
		w.release(f)
	case pushback:
		w.failed(w.flights[e.id], policy.Pushback)
	case fault:
		w.failed(w.flights[e.id], policy.Fault)
	case refused:
		w.failed(w.flights[e.id], policy.Refused)
	}
	return nil
}

// arrive takes in a new request. Conversations stay with one gateway, as
// clients that keep their connection do.
func (w *world) arrive(r *traffic.Request) {
	var f *flight
	if last := len(w.free) - 1; last >= 0 {
		f = w.flights[w.free[last]]
		w.free = w.free[:last]
	} else {
		f = &flight{}
		f.ID = int32(len(w.flights))
		w.flights = append(w.flights, f)
	}
	key := r.Conversation
	if key == 0 {
		key = math.Float64bits(r.AtS)
	}
	agents := uint64(w.scenario.Agents)
	agent := int32(uint64(w.layout.cluster[r.Source])*agents + (key*0x9E3779B97F4A7C15>>33)%agents)
	*f = flight{Flight: policy.Flight{ID: f.ID, Agent: agent, Request: *r}}
	w.live++
	w.collect.Offered(&f.Flight)
	w.send(f)
}

// send makes the next attempt of a request.
func (w *world) send(f *flight) {
	endpoint, verdict := w.policy.Route(&f.Flight, w.now)
	if verdict != policy.Send {
		w.collect.Refused(&f.Flight, verdict)
		w.release(f)
		return
	}
	f.Endpoint, f.SentS = endpoint, w.now
	f.Tried[f.Attempts] = endpoint
	f.Attempts++
	f.backS = w.layout.sources[f.Request.Source].NetS[endpoint] / 2
	w.collect.Sent(&f.Flight, w.now)
	w.agenda.add(w.now+f.backS, arriveEngine, f.ID)
}

// deliver hands a request to its endpoint.
func (w *world) deliver(f *flight) {
	e := f.Endpoint
	if w.ailments[e].down > 0 {
		w.agenda.add(w.now+f.backS, refused, f.ID)
		return
	}
	if f.Request.HeldTokens > 0 && f.Attempts == 1 {
		w.engines[e].Hold(&f.Request.Prefix, f.Request.HeldTokens)
	}
	job := engine.Job{ID: f.ID, PromptTokens: f.Request.PromptTokens, OutputTokens: f.Request.OutputTokens, Prefix: &f.Request.Prefix}
	if !w.engines[e].Submit(job, w.now) {
		w.agenda.add(w.now+f.backS, pushback, f.ID)
		return
	}
	w.dues.set(e, w.engines[e].Due())
}

// failed ends an attempt without an answer; what the client has seen a part of
// cannot be tried again.
func (w *world) failed(f *flight, o policy.Outcome) {
	w.policy.Done(&f.Flight, o, w.now)
	if f.begun || f.Attempts >= policy.MaxAttempts {
		w.collect.Refused(&f.Flight, policy.Fail)
		w.release(f)
		return
	}
	w.send(f)
}

func (w *world) release(f *flight) {
	w.live--
	w.free = append(w.free, f.ID)
}

// script begins or ends a scripted event.
func (w *world) script(e event) {
	x := &w.scenario.Events[e.id]
	if e.kind == begin && x.ForS > 0 {
		w.agenda.add(x.AtS+x.ForS, end, e.id)
	}
	list := w.layout.numbers[x.Engine]
	if x.Endpoints > 0 {
		list = list[:min(x.Endpoints, len(list))]
	}
	for _, n := range list {
		at := &w.ailments[n]
		factor, delta := x.Factor, 1
		if e.kind == end {
			factor, delta = 1/x.Factor, -1
		}
		switch x.Kind {
		case scenario.Fail:
			at.down += delta
			if e.kind == begin {
				w.engines[n].Fail(w.now, func(id int32) { w.agenda.add(w.now+w.flights[id].backS, fault, id) })
			}
		case scenario.Slow:
			at.slow *= factor
			w.engines[n].Degrade(at.slow, at.capacity, w.now)
		case scenario.Capacity:
			at.capacity *= factor
			w.engines[n].Degrade(at.slow, at.capacity, w.now)
		}
		w.dues.set(n, w.engines[n].Due())
	}
}
