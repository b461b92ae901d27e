package main

import (
	"fmt"
	"io"
	"time"

	"github.com/irb-project/irb/examples/standin"
)

// scenario is one thing that happens to a fleet.
type scenario struct {
	name, what string
	play       func(w io.Writer, t *traffic, rps float64, second time.Duration) error
}

func scenarios() []scenario {
	return []scenario{
		{"slow", "one of five engines slows tenfold, then recovers", playSlow},
		{"dead", "one engine resets every connection", playDead},
		{"midstream", "one engine dies in the middle of its answers", playMidstream},
		{"storm", "all engines refuse: queue full", playStorm},
		{"overload", "five times the capacity is asked for; gold alone would fit", playOverload},
		{"sick", "all engines slow down alike", playSick},
	}
}

// show plays the scenario on a fresh rig.
func (s scenario) show(w io.Writer, agents int, rps float64, second time.Duration) error {
	r, err := newRig(agents, rps)
	if err != nil {
		return err
	}
	defer r.close()
	fmt.Fprintf(w, "%s: %s (%d agents, %g req/s planned, capacity %.0f)\n", s.name, s.what, agents, rps, r.capacity)
	t := newTraffic(r)
	defer t.client.CloseIdleConnections()
	defer t.wait.Wait()
	t.run(rps/2, rps/2, 5*second)
	return s.play(w, t, rps, second)
}

// fault makes all of these engines misbehave.
func (t *traffic) fault(f standin.Fault, engines ...*standin.Engine) error {
	for _, e := range engines {
		if err := e.SetFault(f); err != nil {
			return err
		}
	}
	return nil
}

func playSlow(w io.Writer, t *traffic, rps float64, second time.Duration) error {
	e := t.rig.engines[2]
	if err := t.fault(standin.Fault{Kind: standin.FaultSlow, Factor: 10}, e); err != nil {
		return err
	}
	t.run(rps/2, rps/2, 2*second)
	during := t.run(rps/2, rps/2, 3*second)
	if err := t.fault(standin.Fault{Kind: standin.FaultOff}, e); err != nil {
		return err
	}
	t.run(rps/2, rps/2, 30*second)
	after := t.run(rps/2, rps/2, 5*second).done()
	its, others := during.done().movedFrom(e.Name())
	fmt.Fprintf(w, "  2 s after it slowed: %.1f %% of its requests are elsewhere, %.1f %% of the others\n", 100*its, 100*others)
	its, others = after.movedFrom(e.Name())
	fmt.Fprintf(w, "  30 s after it recovered: %.1f %% of its requests are elsewhere, %.1f %% of the others\n", 100*its, 100*others)
	return nil
}

func playDead(w io.Writer, t *traffic, rps float64, second time.Duration) error {
	e := t.rig.engines[1]
	if err := t.fault(standin.Fault{Kind: standin.FaultReset}, e); err != nil {
		return err
	}
	during := t.run(rps/2, rps/2, 10*second).done()
	its, others := during.movedFrom(e.Name())
	fmt.Fprintf(w, "  of %d requests %d failed; %.1f %% of its own were served elsewhere, %.1f %% of the others\n",
		during.sent, during.failed+during.refused, 100*its, 100*others)
	return nil
}

func playMidstream(w io.Writer, t *traffic, rps float64, second time.Duration) error {
	die := time.AfterFunc(second, func() { t.rig.servers[1].Close() })
	defer die.Stop()
	d := t.run(rps/2, rps/2, 5*second).done()
	fmt.Fprintf(w, "  of %d requests %d were under way there and ended visibly; %d others were lost, want 0; %d were sent again after they had begun, want 0\n",
		d.sent, d.broken, d.failed+d.refused-d.broken, t.rig.twice.Load())
	return nil
}

func playStorm(w io.Writer, t *traffic, rps float64, second time.Duration) error {
	if err := t.fault(standin.Fault{Kind: standin.FaultQueueFull}, t.rig.engines...); err != nil {
		return err
	}
	t.run(rps/2, rps/2, 5*second)
	if err := t.fault(standin.Fault{Kind: standin.FaultOff}, t.rig.engines...); err != nil {
		return err
	}
	t.run(rps/2, rps/2, 5*second)
	after := t.run(rps/2, rps/2, 5*second).done()
	fmt.Fprintf(w, "  5 s after the end: of %d requests %d failed, %d were refused\n", after.sent, after.failed, after.refused)
	return nil
}

func playOverload(w io.Writer, t *traffic, rps float64, second time.Duration) error {
	gold := t.rig.capacity / 2
	t.run(gold, 5*t.rig.capacity-gold, 5*second)
	before := t.served()
	during := t.run(gold, 5*t.rig.capacity-gold, 10*second)
	goodput := float64(t.served()-before) / during.tally.seconds / t.rig.capacity
	t.run(rps/2, rps/2, 5*second)
	after := t.run(rps/2, rps/2, 5*second).done()
	d := during.done()
	fmt.Fprintf(w, "  goodput %.0f %% of capacity; gold lost %d of %d; %d refused, %d failed of %d\n",
		100*goodput, d.goldLost, d.goldSent, d.refused, d.failed, d.sent)
	fmt.Fprintf(w, "  5 s after the end: of %d requests %d failed, %d were refused\n", after.sent, after.failed, after.refused)
	return nil
}

// served returns how many requests all engines have served.
func (t *traffic) served() (n int) {
	for _, e := range t.rig.engines {
		n += e.Served().Requests
	}
	return n
}

func playSick(w io.Writer, t *traffic, rps float64, second time.Duration) error {
	if err := t.fault(standin.Fault{Kind: standin.FaultSlow, Factor: 1.5}, t.rig.engines...); err != nil {
		return err
	}
	t.run(rps/2, rps/2, 3*second)
	during := t.run(rps/2, rps/2, 5*second).done()
	its, others := during.movedFrom(t.rig.engines[0].Name())
	fmt.Fprintf(w, "  %.1f %% of one engine's requests are elsewhere, %.1f %% of the others; %d of %d lost\n",
		100*its, 100*others, during.failed+during.refused, during.sent)
	return nil
}
