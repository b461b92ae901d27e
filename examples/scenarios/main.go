// Command scenarios shows what agents do when engines slow down, die, refuse or
// are asked for too much, and what they should do.
//
//	go run ./examples/scenarios [-only slow,dead] [-seed 1]
//
// plays each scenario in virtual time with 2 and 8 agents, 20 and 500 req/s,
// five engines and one, true profiles and wrong ones, and prints a table of the
// figures measured beside those wanted. The exit code is 1 if one is missed.
//
//	go run ./examples/scenarios -real [-agents 2] [-rps 100] [-only slow,overload]
//
// plays them once in real time, with real agents and stand-in engines over
// loopback.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/irb-project/irb/examples/scenarios/virtual"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("scenarios", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "names of scenarios, with commas; default all")
	seed := flags.Uint64("seed", 1, "of the traffic, in virtual time")
	real := flags.Bool("real", false, "in real time, over loopback")
	agents := flags.Int("agents", 2, "with -real: agents that share the traffic, 1 to 16")
	rps := flags.Float64("rps", 100, "with -real: requests/s of all agents where not overloaded, 1 to 1000")
	unit := flags.Duration("unit", time.Second, "with -real: length of a second; shorter runs show less")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *agents < 1 || *agents > 16 || !(*rps >= 1 && *rps <= 1000) || *unit <= 0 {
		fmt.Fprintln(stderr, "scenarios: want -agents 1 to 16, -rps 1 to 1000, -unit above 0")
		return 2
	}
	if *real {
		list, ok := chosen(scenarios(), func(s scenario) string { return s.name }, *only, stderr)
		if !ok {
			return 2
		}
		for _, s := range list {
			if err := s.show(stdout, *agents, *rps, *unit); err != nil {
				fmt.Fprintf(stderr, "scenarios: %s: %v\n", s.name, err)
				return 1
			}
		}
		return 0
	}
	list, ok := chosen(virtual.Scenarios(), func(s virtual.Scenario) string { return s.Name }, *only, stderr)
	if !ok {
		return 2
	}
	if missed := printTable(stdout, list, *seed); missed > 0 {
		fmt.Fprintf(stderr, "scenarios: %d figures are not as wanted\n", missed)
		return 1
	}
	return 0
}

// chosen returns the scenarios that only names, all if it is empty.
func chosen[S any](all []S, name func(S) string, only string, stderr io.Writer) (list []S, ok bool) {
	if only == "" {
		return all, true
	}
	for _, want := range strings.Split(only, ",") {
		i := slices.IndexFunc(all, func(s S) bool { return name(s) == want })
		if i < 0 {
			fmt.Fprintf(stderr, "scenarios: no scenario %q\n", want)
			return nil, false
		}
		list = append(list, all[i])
	}
	return list, true
}
