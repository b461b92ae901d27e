// Demo shows irb at work on one machine: it makes keys, solves a small fleet,
// explains the plan, starts stand-in engines and two real agents, sends real
// traffic through them, then takes half of an engine away and solves again. It
// ends by itself within a minute, and with a sentence and exit code 1 if irb
// broke a promise.
//
//	go run ./examples/demo -irbctl bin/irbctl -agent bin/irb-agent
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// limit ends a demo that hangs.
const limit = 2 * time.Minute

func main() {
	irbctl := flag.String("irbctl", "bin/irbctl", "the irbctl program")
	agent := flag.String("agent", "bin/irb-agent", "the irb-agent program")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *irbctl, *agent); err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

// run plays the demo and leaves nothing behind: no file, no process.
func run(ctx context.Context, irbctl, agent string) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %v", limit))
	defer cancel()
	folder, err := os.MkdirTemp("", "irb-demo-")
	if err != nil {
		return err
	}
	d := &demo{out: os.Stdout, irbctl: irbctl, agentProgram: agent, folder: folder, began: time.Now()}
	defer func() {
		err = errors.Join(err, d.close(), os.RemoveAll(folder))
	}()
	err = d.play(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
