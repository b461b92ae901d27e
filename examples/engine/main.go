// Engine runs stand-in GPU engines for all endpoints of a fleet:
//
//	go run ./examples/engine examples/two-regions
//
// They speak the OpenAI API, take the time that the fleet's profiles say, and
// misbehave on command:
//
//	curl -d '{"kind": "slow", "factor": 3}' http://127.0.0.1:8001/fault
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/irb-project/irb/examples/standin"
	"github.com/irb-project/irb/solve/input"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("engine", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: engine [-speedup N] FLEET [ENGINE...]")
		flags.PrintDefaults()
	}
	speedup := flags.Float64("speedup", 1, "run that many times faster than the profiles say")
	if err := flags.Parse(args); err != nil || flags.NArg() == 0 {
		if err == nil {
			flags.Usage()
		}
		return 2
	}
	fleet, err := input.Read(input.Paths{Folder: flags.Arg(0)})
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	servers, err := standin.StartFleet(fleet, *speedup, flags.Args()[1:]...)
	if err != nil {
		fmt.Fprintln(stderr, "engine:", err)
		return 1
	}
	for _, s := range servers {
		defer s.Close()
		fmt.Fprintf(stdout, "%s serves %s\n", s.Name(), s.URL)
	}
	<-ctx.Done()
	return 0
}
