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
// file each reloadEvery, and how long the agent took to serve by each file.
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
	// Signed before, since signing takes the processors that are measured.
	files := make([][]byte, o.duration/reloadEvery)
	sequences := make([]int64, len(files))
	for i := range files {
		shares := evenShares
		shares[i%len(shares)]++
		if files[i], sequences[i], err = plan.Sign(shares[:], time.Now()); err != nil {
			return err
		}
	}
	if _, err := openLoop(a.Address, warmUp); err != nil {
		return err
	}
	quiet, err := openLoop(a.Address, b.duration)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	var accepted []time.Duration
	go func() {
		accepted, err = follow(ctx, a, plan, files, sequences)
		ended <- err
	}()
	busy, err := openLoop(a.Address, b.duration)
	if err := errors.Join(err, <-ended, ctx.Err()); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d requests/s through irb-agent; a new file of %d weights (%.1f MB) each %v\n",
		openRPS, enginesBehind*(otherClasses+1), float64(len(files[0]))/1e6, reloadEvery)
	for _, row := range []struct {
		name      string
		latencies []time.Duration
	}{{"without reloads", quiet}, {"with reloads", busy}} {
		l := row.latencies
		fmt.Fprintf(out, "%-16s p50 %.3f ms, p99 %.3f ms, p99.9 %.3f ms, max %.3f ms\n",
			row.name, ms(quantile(l, 0.5)), ms(quantile(l, 0.99)), ms(quantile(l, 0.999)), ms(quantile(l, 1)))
	}
	slices.Sort(accepted)
	fmt.Fprintf(out, "in service after median %.0f ms, at most %.0f ms (%d files)\n",
		ms(accepted[len(accepted)/2]), ms(accepted[len(accepted)-1]), len(accepted))
	return nil
}

// follow writes a file each reloadEvery and waits until the agent serves by it.
func follow(ctx context.Context, a *rig.Agent, plan *rig.Plan, files [][]byte, sequences []int64) (took []time.Duration, err error) {
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	for i, file := range files {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return took, ctx.Err()
		}
		begin := time.Now()
		if err := plan.Write(file); err != nil {
			return took, err
		}
		if err := a.Serves(ctx, sequences[i]); err != nil {
			return took, err
		}
		took = append(took, time.Since(begin))
	}
	return took, nil
}
