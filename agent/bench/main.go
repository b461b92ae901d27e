// Command bench compares irb-agent with nginx, HAProxy and Caddy as reverse
// proxies in front of the same engines, side by side in one run through
// loopback; with -soak it looks for what irb-agent loses or leaks instead.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/irb-project/irb/agent/bench/soak"
)

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

type options struct {
	agent, caddy string
	peers        string
	duration     time.Duration
	rounds       int
	streams      int
	quick        bool
	soak         bool
	reload       bool
	requests     int
}

func execute(args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.agent, "agent", "bin/irb-agent", "the irb-agent `binary`")
	flags.StringVar(&o.caddy, "caddy", "bin/caddy", "the Caddy `binary`, built in agent/bench/caddy")
	flags.StringVar(&o.peers, "peers", "irb,nginx,haproxy,caddy", "proxies to compare, the first with each other")
	flags.DurationVar(&o.duration, "duration", 5*time.Second, "of each of the three measurements of a proxy")
	flags.IntVar(&o.rounds, "rounds", 3, "measurements of which the median is told")
	flags.IntVar(&o.streams, "streams", 1000, "SSE streams at once")
	flags.BoolVar(&o.quick, "quick", false, "one round of 2 s")
	flags.BoolVar(&o.soak, "soak", false, "soak three irb-agents instead of comparing")
	flags.BoolVar(&o.reload, "reload", false, "look at latencies of irb-agent while it takes over large weight files")
	flags.IntVar(&o.requests, "requests", 200000, "requests of the soak")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if o.quick {
		o.rounds, o.duration = 1, 2*time.Second
	}
	if flags.NArg() > 0 || o.rounds < 1 || o.streams < 1 || o.requests < 1 || o.duration < time.Second {
		fmt.Fprintln(stderr, "bench: want flags only, -rounds, -streams and -requests of at least 1, -duration of at least 1s")
		return 2
	}
	debug.SetGCPercent(ownGCPercent)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, o, stdout)
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return 0
}

// ownGCPercent keeps this process, in which engines and callers are, from
// collecting garbage so often that its pauses are taken for those of a proxy.
const ownGCPercent = 1000

func run(ctx context.Context, o options, out io.Writer) error {
	folder, err := os.MkdirTemp("", "irb-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	switch {
	case o.reload:
		return reloads(ctx, o, folder, out)
	case !o.soak:
		return compare(ctx, o, folder, out)
	}
	report, err := soak.Run(ctx, soak.Options{
		Program: o.agent, Folder: folder, Requests: o.requests, MaxBodyBytes: 2 << 20, ReloadEvery: time.Second,
	})
	if report != nil {
		fmt.Fprint(out, report)
	}
	return err
}

// compare prints the table of all peers.
func compare(ctx context.Context, o options, folder string, out io.Writer) error {
	peers, err := choosePeers(o.peers)
	if err != nil {
		return err
	}
	b, err := newBench(o, folder)
	if err != nil {
		return err
	}
	defer b.close()
	fmt.Fprintf(out, `%d requests/s of %d bytes (added latency); %d connections that ask without pause (req/s, CPU per request);
%d streams of %d tokens/s (CPU per chunk, added latency per token). %d CPUs, %d engines; engines and callers
share the CPUs, so req/s is of all together; CPU is the proxy's own, read from /proc.
irb-agent reads each body for its model and its conversation; the peers do not: they hash the header x-session-id.

`, openRPS, requestBytes, closedCallers, b.streams, int(time.Second/tokenEvery), runtime.NumCPU(), enginesBehind)
	direct, rows, err := b.rounds(ctx, o.rounds, peers)
	if err != nil {
		return err
	}
	var measured []row
	for _, w := range rows {
		if len(w.rounds) > 0 {
			measured = append(measured, w)
			continue
		}
		fmt.Fprintf(out, "%s is not installed here: left out\n", w.name)
	}
	if err := printTable(out, direct, measured); err != nil {
		return err
	}
	b.share.print(out)
	return nil
}

func choosePeers(names string) (peers []peer, err error) {
	known := peersByName()
	for _, name := range strings.Split(names, ",") {
		p, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("-peers: %q is not one of irb, nginx, haproxy, caddy", name)
		}
		peers = append(peers, p)
	}
	return peers, nil
}

// rounds measures all peers in each round, so that a slow spell of the machine
// meets all of them. A peer that is not installed has no rounds.
func (b *bench) rounds(ctx context.Context, n int, peers []peer) (direct row, rows []row, err error) {
	for _, p := range peers {
		rows = append(rows, row{name: p.name})
	}
	for range n {
		base, err := b.measure(ctx, b.engines[0].address(), nil)
		if err != nil {
			return direct, nil, fmt.Errorf("no proxy: %w", err)
		}
		direct.rounds = append(direct.rounds, base)
		for i, p := range peers {
			r, err := b.proxied(ctx, p)
			if errors.Is(err, errMissing) {
				continue
			}
			if err != nil {
				return direct, nil, err
			}
			rows[i].rounds = append(rows[i].rounds, r.minus(base))
		}
	}
	return direct, rows, nil
}
