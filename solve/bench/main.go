// Command bench measures the solver side by side with what people would pick
// instead, on the same seeded fleets, to the same gap: LEMON, CLP and HiGHS.
//
// All programs run in processes of their own, from the model in memory to the
// answer (ours: to the certified answer), several times in a row; shown is the
// median. A peer is not charged for cutting delays into segments, for building
// its own form of the program, or for knowing when to stop.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are what the flags say.
type options struct {
	sizes, growth  []size
	split          []size
	cases, against []load
	drift          []size
	peers          []string
	seed           uint64
	runs           int
	limit          time.Duration
	periods        int
	one            bool
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	sizes := flags.String("sizes", "20x50,200x500,1000x1000:50,2000x2000,5000x10000:0.5", "fleets as SOURCESxENGINES[:PERCENT of pairs that are eligible]")
	cases := flags.String("cases", "50,50t,75,75t,95,95t,120,120t", "loads in percent of capacity at which ours runs; t: a third of the engines at their limit by residency")
	against := flags.String("against", "75,95t", "loads at which the peers run too")
	peers := flags.String("peers", "lemon,clp,highs", "peers to run, in this order")
	growth := flags.String("growth", "1000x1000,2000x2000", "two fleets of which the times are compared")
	split := flags.String("split", "20x50,200x500", "fleets solved with split work and mixes that differ")
	drift := flags.String("drift", "200x500", "fleets whose demand drifts")
	flags.IntVar(&o.periods, "periods", 50, "periods of drift")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the fleets")
	flags.IntVar(&o.runs, "runs", 5, "runs of which the median is taken; fewer where they take long")
	flags.DurationVar(&o.limit, "limit", 10*time.Second, "time that a peer has for one answer, whole seconds")
	flags.BoolVar(&o.one, "one", false, "solve one fleet, as the benchmark asks itself to: JSON in, JSON out")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var errs [7]error
	o.sizes, errs[0] = parseList(*sizes, parseSize)
	o.cases, errs[1] = parseList(*cases, parseLoad)
	o.against, errs[2] = parseList(*against, parseLoad)
	o.peers, errs[3] = parseList(*peers, parsePeer)
	o.growth, errs[4] = parseList(*growth, parseSize)
	o.drift, errs[5] = parseList(*drift, parseSize)
	o.split, errs[6] = parseList(*split, parseSize)
	for i, name := range []string{"sizes", "cases", "against", "peers", "growth", "drift", "split"} {
		if errs[i] != nil {
			return o, fmt.Errorf("-%s: %w", name, errs[i])
		}
	}
	switch {
	case len(o.growth) != 0 && len(o.growth) != 2:
		return o, fmt.Errorf("-growth: %d fleets, want two or none", len(o.growth))
	case o.periods < 1:
		return o, fmt.Errorf("-periods: %d, want at least 1", o.periods)
	case o.runs < 1:
		return o, fmt.Errorf("-runs: %d, want at least 1", o.runs)
	case o.limit < time.Second:
		return o, fmt.Errorf("-limit: %s, want at least 1s", o.limit)
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return o, nil
}

// parseList parses items between commas; an empty list has none.
func parseList[T any](list string, parse func(string) (T, error)) ([]T, error) {
	var items []T
	for _, word := range strings.Split(list, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		item, err := parse(word)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	if o.one {
		return serveOne(ctx, stdin, stdout)
	}
	b := &bench{options: o, out: stdout, log: stderr}
	fmt.Fprintf(stdout, "%d threads; seed %d; median of %d runs, fewer where they take over %s; peers have %s for an answer; in brackets: not run, as a smaller fleet took longer\n\n",
		runtime.GOMAXPROCS(0), o.seed, o.runs, budget, o.limit)
	for _, part := range []func(context.Context) error{b.ours, b.splitWork, b.compare, b.grow, b.drifts} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	if b.faults > 0 {
		return fmt.Errorf("ours did not solve %d of the fleets", b.faults)
	}
	return nil
}

// bench is one run of the benchmark.
type bench struct {
	options
	out, log io.Writer
	faults   int // fleets that ours did not solve
}
