package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/irb-project/irb/agent/bench/rig"
)

const (
	// otherClasses with four weights each make a file of 10,000 weights.
	otherClasses = 2500
	// reloadEvery leaves the 99.9th percentile to requests beside a reload as
	// well as during one.
	reloadEvery = 500 * time.Millisecond
)

// reloads prints the latencies of the open loop with and without a new weight
// file each reloadEvery, and how long the agent took to serve by each file:
// medians of rounds that take turns, so that a slow spell of the machine meets
// both.
func reloads(ctx context.Context, o options, folder string, out io.Writer) error {
	b, err := newBench(o, folder)
	if err != nil {
		return err
	}
	defer b.close()
	a, plan, err := b.startAgent(ctx, otherClasses)
	if err != nil {
		return err
	}
	defer a.Kill()
	files, err := signFiles(plan, o.rounds*int(o.duration/reloadEvery))
	if err != nil {
		return err
	}
	if _, err := openLoop(a.Address, warmUp); err != nil {
		return err
	}
	quiet, busy := latencies{name: "without reloads"}, latencies{name: "with reloads"}
	var accepted []time.Duration
	share := newShare(a.Process)
	for round := range slices.Chunk(files, len(files)/o.rounds) {
		share.start()
		l, err := openLoop(a.Address, b.duration)
		if err != nil {
			return err
		}
		quiet.rounds = append(quiet.rounds, l)
		ended := make(chan error, 1)
		go func() {
			took, err := follow(ctx, a, plan, round)
			accepted = append(accepted, took...)
			ended <- err
		}()
		l, err = openLoop(a.Address, b.duration)
		if err := errors.Join(err, <-ended, ctx.Err()); err != nil {
			return err
		}
		busy.rounds = append(busy.rounds, l)
		share.stop()
	}
	fmt.Fprintf(out, "%d requests/s through irb-agent; a new file of %d weights (%.1f MB) each %v; medians of %d rounds of %v each\n",
		openRPS, enginesBehind*(otherClasses+1), float64(len(files[0].text))/1e6, reloadEvery, o.rounds, o.duration)
	for _, l := range []latencies{quiet, busy} {
		fmt.Fprintf(out, "%-16s p50 %.3f ms, p99 %.3f ms, p99.9 %.3f ms, max %.3f ms\n",
			l.name, l.median(0.5), l.median(0.99), l.median(0.999), l.median(1))
	}
	fmt.Fprintf(out, "in service after median %.0f ms, at most %.0f ms (%d files)\n",
		ms(quantile(accepted, 0.5)), ms(quantile(accepted, 1)), len(accepted))
	share.print(out)
	return nil
}

// latencies are those of several rounds.
type latencies struct {
	name   string
	rounds [][]time.Duration
}

// median returns the median of the rounds' q-quantiles, in ms.
func (l latencies) median(q float64) float64 {
	of := make([]time.Duration, len(l.rounds))
	for i, round := range l.rounds {
		of[i] = quantile(round, q)
	}
	return ms(quantile(of, 0.5))
}

// signedFile is a weight file.
type signedFile struct {
	text     []byte
	sequence int64
}

// signFiles makes so many weight files. They are signed before anything is
// measured, since signing takes the processors that are.
func signFiles(plan *rig.Plan, n int) ([]signedFile, error) {
	files := make([]signedFile, n)
	for i := range files {
		shares := evenShares
		shares[i%len(shares)]++
		text, sequence, err := plan.Sign(shares[:], time.Now())
		if err != nil {
			return nil, err
		}
		files[i] = signedFile{text, sequence}
	}
	return files, nil
}

// follow writes a file each reloadEvery and waits until the agent serves by it.
func follow(ctx context.Context, a *rig.Agent, plan *rig.Plan, files []signedFile) (took []time.Duration, err error) {
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	for _, file := range files {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return took, ctx.Err()
		}
		begin := time.Now()
		if err := plan.Write(file.text); err != nil {
			return took, err
		}
		if err := a.Serves(ctx, file.sequence); err != nil {
			return took, err
		}
		took = append(took, time.Since(begin))
	}
	return took, nil
}
