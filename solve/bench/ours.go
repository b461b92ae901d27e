package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/certify"
)

// timing is what a process found out about some runs.
type timing struct {
	Seconds   float64 // median
	Runs      int
	PeakBytes float64 // of resident memory; < 0: unknown
}

// request asks a process of ours to solve a fleet.
type request struct {
	Fleet fleet
	Runs  int
}

// reply is its answer.
type reply struct {
	timing
	Pairs int
	Gap   float64
}

// budget is after how long no further run of an instance is started; the peers'
// programs have the same.
const budget = 2 * time.Second

// serveOne answers one request.
func serveOne(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	var r request
	if err := json.NewDecoder(stdin).Decode(&r); err != nil {
		return fmt.Errorf("-one: %w", err)
	}
	p := r.Fleet.problem()
	// What making the fleet left behind is not the solver's.
	debug.FreeOSMemory()
	forgetPeak()
	var seconds []float64
	var report certify.Report
	for total := time.Duration(0); len(seconds) < r.Runs && total < budget; {
		runtime.GC()
		start := time.Now()
		_, found, err := solve.Certified(ctx, p, nil)
		elapsed := time.Since(start)
		if err != nil {
			return fmt.Errorf("%s: %w", r.Fleet, err)
		}
		report = found
		total += elapsed
		seconds = append(seconds, elapsed.Seconds())
	}
	slices.Sort(seconds)
	return json.NewEncoder(stdout).Encode(reply{
		timing: timing{Seconds: seconds[len(seconds)/2], Runs: len(seconds), PeakBytes: peakBytes()},
		Pairs:  p.Pairs(), Gap: report.Gap,
	})
}

// time solves a fleet in a process of its own, as the peers do.
func (b *bench) time(ctx context.Context, f fleet) (reply, error) {
	self, err := os.Executable()
	if err != nil {
		return reply{}, err
	}
	in, err := json.Marshal(request{Fleet: f, Runs: b.runs})
	if err != nil {
		return reply{}, err
	}
	limit, cancel := context.WithTimeout(ctx, oursLimit)
	defer cancel()
	cmd := exec.CommandContext(limit, self, "-one")
	var said bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &said
	out, err := cmd.Output()
	if limit.Err() != nil {
		return reply{}, fmt.Errorf("%s: no answer in %s", f, oursLimit)
	}
	if err != nil {
		return reply{}, errors.New(firstLine(said.Bytes(), err))
	}
	var r reply
	err = json.Unmarshal(out, &r)
	return r, err
}

// oursLimit is after how long a process of ours must be at fault.
const oursLimit = 2 * time.Minute

// failed writes down that ours did not solve a fleet, and lets the benchmark go
// on unless it was stopped.
func (b *bench) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	b.faults++
	_, err = fmt.Fprintf(b.out, "FAILED: %v\n\n", err)
	return err
}

// ours times our solver on every size and case.
func (b *bench) ours(ctx context.Context) error {
	return b.own(ctx, "Ours: model to certified answer", b.sizes, b.cases, false)
}

// splitWork does so for split work, which no peer takes.
func (b *bench) splitWork(ctx context.Context) error {
	return b.own(ctx, "Ours: split work", b.split, []load{{Percent: 75}}, true)
}

func (b *bench) own(ctx context.Context, title string, sizes []size, loads []load, split bool) error {
	if len(loads) == 0 || len(sizes) == 0 {
		return nil
	}
	t := newTable(title, "sources x engines", "load", "pairs", "median", "peak memory", "certified gap")
	for _, s := range sizes {
		for _, l := range loads {
			r, err := b.time(ctx, fleet{Size: s, Load: l, Split: split, Seed: b.seed})
			if err != nil {
				if err := b.failed(ctx, err); err != nil {
					return err
				}
				continue
			}
			fmt.Fprintf(b.log, "%s, %s: ours: %s\n", s, l, duration(r.Seconds))
			t.row(s, l, r.Pairs, duration(r.Seconds), memory(r.PeakBytes), fmt.Sprintf("%.0e", r.Gap))
		}
	}
	return t.write(b.out)
}

// grow compares the times of two sizes with their numbers of pairs.
func (b *bench) grow(ctx context.Context) error {
	if len(b.growth) == 0 {
		return nil
	}
	t := newTable("Growth", "sources x engines", "pairs", "median", "pairs grow", "time grows")
	var first reply
	for i, s := range b.growth {
		r, err := b.time(ctx, fleet{Size: s, Load: load{Percent: 75}, Seed: b.seed})
		if err != nil {
			return b.failed(ctx, err)
		}
		if i == 0 {
			first = r
			t.row(s, r.Pairs, duration(r.Seconds), "", "")
			continue
		}
		t.row(s, r.Pairs, duration(r.Seconds), ratio(float64(r.Pairs)/float64(first.Pairs)), ratio(r.Seconds/first.Seconds))
	}
	return t.write(b.out)
}
