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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, o, stdout)
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, o options, out io.Writer) error {
	folder, err := os.MkdirTemp("", "irb-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if !o.soak {
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

// compare measures all peers in each round, so that a slow spell of the machine
// meets all of them.
func compare(ctx context.Context, o options, folder string, out io.Writer) error {
	b := &bench{agent: o.agent, caddy: o.caddy, folder: folder, began: time.Now(), duration: o.duration, streams: o.streams}
	b.say = func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	for range enginesBehind {
		e, err := startEngine(b.began)
		if err != nil {
			return err
		}
		defer e.listen.Close()
		b.engines = append(b.engines, e)
	}
	var peers []peer
	for _, name := range strings.Split(o.peers, ",") {
		p, ok := peersByName()[name]
		if !ok {
			return fmt.Errorf("-peers: %q is not one of irb, nginx, haproxy, caddy", name)
		}
		peers = append(peers, p)
	}
	b.say("%d requests/s of %d bytes (added latency); %d connections that ask without pause (req/s, CPU per request);",
		openRPS, requestBytes, closedCallers)
	b.say("%d streams of %d tokens/s (CPU per chunk, added latency per token). %d CPUs, %d engines; engines and callers",
		b.streams, int(time.Second/tokenEvery), runtime.NumCPU(), enginesBehind)
	b.say("share the CPUs, so req/s is of all together; CPU is the proxy's own, read from /proc.")
	b.say("irb-agent reads each body for its model and its conversation; the peers do not: they hash the header x-session-id.\n")
	direct := row{name: "no proxy"}
	rows := make([]row, len(peers))
	missing := map[string]bool{}
	for range o.rounds {
		base, err := b.measure(ctx, b.engines[0].address(), nil)
		if err != nil {
			return fmt.Errorf("no proxy: %w", err)
		}
		direct.rounds = append(direct.rounds, base)
		for i, p := range peers {
			rows[i].name = p.name
			if missing[p.name] {
				continue
			}
			r, err := b.proxied(ctx, p)
			if errors.Is(err, errMissing) {
				missing[p.name] = true
				b.say("%s is not installed here: left out", p.name)
				continue
			}
			if err != nil {
				return err
			}
			rows[i].rounds = append(rows[i].rounds, r.minus(base))
		}
	}
	var measured []row
	for _, w := range rows {
		if len(w.rounds) > 0 {
			measured = append(measured, w)
		}
	}
	return printTable(out, direct, measured)
}
