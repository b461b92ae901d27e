// Command scenarios shows what an agent does when engines slow down, die,
// refuse or are asked for too much: real agents and stand-in engines in one
// process, over loopback, in real time. It prints figures, a line each.
//
//	go run ./examples/scenarios [-agents 2] [-rps 100] [-only slow,overload]
//
// The same in virtual time, with more agents, faster traffic and wrong
// profiles, are the tests of agent/guard.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("scenarios", flag.ContinueOnError)
	flags.SetOutput(stderr)
	agents := flags.Int("agents", 2, "agents that share the traffic, 1 to 16")
	rps := flags.Float64("rps", 100, "requests/s of all agents where not overloaded, 1 to 1000")
	only := flags.String("only", "", "names of scenarios, with commas; default all")
	unit := flags.Duration("unit", time.Second, "length of a second: shorter runs show less")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *agents < 1 || *agents > 16 || !(*rps >= 1 && *rps <= 1000) || *unit <= 0 {
		fmt.Fprintln(stderr, "scenarios: want -agents 1 to 16, -rps 1 to 1000, -unit above 0")
		return 2
	}
	wanted := map[string]bool{}
	for _, name := range strings.Split(*only, ",") {
		wanted[name] = name != ""
	}
	for _, s := range scenarios() {
		if *only != "" && !wanted[s.name] {
			continue
		}
		delete(wanted, s.name)
		if err := s.show(stdout, *agents, *rps, *unit); err != nil {
			fmt.Fprintf(stderr, "scenarios: %s: %v\n", s.name, err)
			return 1
		}
	}
	for name, asked := range wanted {
		if asked {
			fmt.Fprintf(stderr, "scenarios: no scenario %q\n", name)
			return 2
		}
	}
	return 0
}
