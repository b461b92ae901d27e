package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/examples/standin"
	"github.com/irb-project/irb/solve/input"
)

var clusters = []string{"us-east", "us-west"}

// demo is the stage: everything that has to be taken down at the end.
type demo struct {
	out          io.Writer
	irbctl       string
	agentProgram string
	folder       string
	began        time.Time

	endpoints []string // of a-1 and c-1
	servers   []*standin.Server
	agents    []*agent
	traffic   *traffic
	requests  int // answered so far
}

// close ends all that still runs.
func (d *demo) close() error {
	var errs []error
	if d.traffic != nil {
		d.traffic.close()
	}
	for _, a := range d.agents {
		errs = append(errs, a.kill())
	}
	for _, s := range d.servers {
		s.Close()
	}
	return errors.Join(errs...)
}

func (d *demo) play(ctx context.Context) error {
	d.say("irb demo: two gateway clusters, two engines, %.0f requests per second.", demandRPS["us-east"]+demandRPS["us-west"])
	d.say("Everything runs on this machine; round trips are part of the plan only.")
	before, err := d.plan(ctx)
	if err != nil {
		return err
	}
	if err := d.start(ctx, before); err != nil {
		return err
	}
	if err := d.watchShares(ctx, before); err != nil {
		return err
	}
	after, err := d.loseHalf(ctx, before)
	if err != nil {
		return err
	}
	if err := d.watchMoves(ctx, before, after); err != nil {
		return err
	}
	if err := d.drain(ctx); err != nil {
		return err
	}
	d.say("\nEvery promise was kept: %d requests, none lost.", d.requests)
	return nil
}

// plan makes keys and the first weight file, checks and explains it.
func (d *demo) plan(ctx context.Context) (*snapshot.Snapshot, error) {
	d.heading("1. Plan: solve, sign, verify, explain")
	addresses, err := freeAddresses(2)
	if err != nil {
		return nil, err
	}
	d.endpoints = []string{"http://" + addresses[0], "http://" + addresses[1]}
	if _, err := d.ctl(ctx, "keygen", "-o", d.path("irb")); err != nil {
		return nil, err
	}
	plan, err := d.solve(ctx, 1, "")
	if err != nil {
		return nil, err
	}
	text, err := d.ctl(ctx, "explain", d.path("weights.toml"), "--cluster", "us-east")
	if err != nil {
		return nil, err
	}
	d.indent(text)
	return plan, nil
}

// solve writes and verifies weights.toml for a-1 in the given health. With a
// reason it starts from the file in service, kept as before.toml.
func (d *demo) solve(ctx context.Context, health float64, reason string) (*snapshot.Snapshot, error) {
	fleet, err := d.writeFleet(health)
	if err != nil {
		return nil, err
	}
	weights := d.path("weights.toml")
	solve := []string{"solve", fleet, "-o", weights, "--key", d.path("irb.key")}
	verify := []string{"verify", weights, "--pub", d.path("irb.pub"), "--inputs", fleet}
	if reason != "" {
		served, err := os.ReadFile(weights)
		if err != nil {
			return nil, err
		}
		before := d.path("before.toml")
		if err := os.WriteFile(before, served, 0o644); err != nil {
			return nil, err
		}
		solve = append(solve, "--previous", before, "--reason", reason)
		verify = append(verify, "--previous", before)
	}
	if _, err := d.ctl(ctx, solve...); err != nil {
		return nil, err
	}
	text, err := d.ctl(ctx, verify...)
	if err != nil {
		return nil, err
	}
	d.indent(text)
	return readPlan(weights)
}

// start starts engines and agents.
func (d *demo) start(ctx context.Context, plan *snapshot.Snapshot) error {
	d.heading("2. Start: two stand-in engines, two agents")
	fleet, err := input.Read(input.Paths{Folder: d.path("fleet")})
	if err != nil {
		return err
	}
	if d.servers, err = standin.StartFleet(fleet, 1); err != nil {
		return err
	}
	for _, s := range d.servers {
		d.say("engine %s at %s", s.Name(), s.URL)
	}
	for _, cluster := range clusters {
		a, err := d.startAgent(ctx, cluster)
		if err != nil {
			return err
		}
		if err := a.serves(ctx, plan.Sequence); err != nil {
			return err
		}
		d.say("agent of %s at %s, serving snapshot %d", cluster, a.url, plan.Sequence)
	}
	d.traffic = newTraffic(d.agents)
	return nil
}

// watchShares sends two turns of every conversation and compares the shares
// of the engines with the plan.
func (d *demo) watchShares(ctx context.Context, plan *snapshot.Snapshot) error {
	d.heading("3. Traffic: observed shares beside planned weights")
	d.say("%d conversations, two turns each, at %.0f %% of the planned rates; every %dth is streamed\n",
		len(d.traffic.conversations), 100*pace, streamEvery)
	var turns []turn
	served := d.served()
	for range 2 {
		var err error
		if turns, err = d.pass(ctx); err != nil {
			return err
		}
	}
	if err := d.compareShares(plan, turns); err != nil {
		return err
	}
	d.compareLatency(plan, served)
	moved := 0
	cached, prompt := 0.0, 0.0
	for i, c := range d.traffic.conversations {
		if c.engines[0] != c.engines[1] {
			moved++
		}
		cached += turns[i].cached
		prompt += turns[i].prompt
	}
	d.say("second turns that went to another engine than the first: %d", moved)
	d.say("of their prompts, %.0f %% was in the engine's KV cache", 100*cached/prompt)
	if moved > 0 {
		return fmt.Errorf("broken promise: %d of %d conversations changed their engine although the plan did not change", moved, len(turns))
	}
	return nil
}

// loseHalf takes half of a-1 away under traffic and plans anew.
func (d *demo) loseHalf(ctx context.Context, before *snapshot.Snapshot) (after *snapshot.Snapshot, err error) {
	d.heading("4. Failure: a-1 loses half its capacity")
	if err := d.server("a-1").SetFault(standin.Fault{Kind: standin.FaultCapacity, Factor: 0.5}); err != nil {
		return nil, err
	}
	d.say("traffic goes on; the new plan starts from the one in service, so that few keys move")
	passed := make(chan error, 1)
	go func() {
		var err error
		defer func() { passed <- err }()
		defer recovered(&err)
		_, err = d.pass(ctx)
	}()
	after, err = d.solve(ctx, 0.5, "a-1 lost half its GPUs")
	for _, a := range d.agents {
		if err == nil {
			err = a.serves(ctx, after.Sequence)
		}
	}
	if err == nil {
		d.say("both agents took snapshot %d into service", after.Sequence)
	}
	if lost := <-passed; err == nil {
		err = lost
	}
	if err != nil {
		return nil, err
	}
	d.say("requests lost while the plan changed: none")
	return after, nil
}

// watchMoves sends a further turn and checks that only what had to move did.
func (d *demo) watchMoves(ctx context.Context, before, after *snapshot.Snapshot) error {
	d.heading("5. Only what had to move has moved")
	served := d.served()
	turns, err := d.pass(ctx)
	if err != nil {
		return err
	}
	if err := d.compareShares(after, turns); err != nil {
		return err
	}
	d.compareLatency(after, served)
	d.say("")
	d.say("%-10s %14s %14s %20s", "cluster", "least possible", "keys moved", "conversations moved")
	for _, cluster := range clusters {
		if err := d.compareMoves(cluster, before, after); err != nil {
			return err
		}
	}
	return nil
}

// drain ends the agents while they stream.
func (d *demo) drain(ctx context.Context) error {
	d.heading("6. SIGTERM: the agents drain")
	streams := d.streams(20)
	results := make(chan turn, len(streams))
	before := d.arrived()
	for _, c := range streams {
		go func() {
			var t turn
			defer func() { results <- t }()
			defer recovered(&t.err)
			t = d.traffic.send(ctx, c)
		}()
	}
	allArrived := func() bool { return d.arrived() == before+len(streams) }
	if err := d.agents[0].until(ctx, "streaming", allArrived); err != nil {
		return err
	}
	inFlight := 0
	for _, s := range d.servers {
		inFlight += s.InProgress()
	}
	for _, a := range d.agents {
		if err := a.drain(ctx); err != nil {
			return err
		}
	}
	for range streams {
		if t := <-results; t.err != nil {
			return fmt.Errorf("broken promise: a stream was lost on SIGTERM: %w", t.err)
		}
	}
	d.requests += len(streams)
	d.say("%d streams were in flight; all were finished, then the agents ended by themselves", inFlight)
	return nil
}

// arrived returns how many requests the engines have got so far.
func (d *demo) arrived() (n int) {
	for _, s := range d.servers {
		n += s.Served().Requests + s.InProgress()
	}
	return n
}

// streams returns n conversations of each cluster that stream.
func (d *demo) streams(n int) (all []*conversation) {
	taken := map[string]int{}
	for _, c := range d.traffic.conversations {
		if c.stream && taken[c.cluster] < n {
			taken[c.cluster]++
			all = append(all, c)
		}
	}
	return all
}

// pass sends one turn of every conversation; a lost request breaks a promise.
func (d *demo) pass(ctx context.Context) ([]turn, error) {
	turns, err := d.traffic.pass(ctx)
	if err != nil {
		return nil, err
	}
	lost := slices.Collect(func(yield func(error) bool) {
		for _, t := range turns {
			if t.err != nil && !yield(t.err) {
				return
			}
		}
	})
	if len(lost) > 0 {
		return nil, fmt.Errorf("broken promise: %d of %d requests were lost; the first: %w", len(lost), len(turns), lost[0])
	}
	d.requests += len(turns)
	return turns, nil
}

func (d *demo) server(name string) *standin.Server {
	i := slices.IndexFunc(d.servers, func(s *standin.Server) bool { return s.Name() == name })
	return d.servers[i]
}
