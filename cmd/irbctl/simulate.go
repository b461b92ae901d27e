package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/input"
	"github.com/irb-project/irb/solve/simulate"
	"github.com/irb-project/irb/solve/simulate/page"
	"github.com/irb-project/irb/solve/simulate/report"
)

// simulateFlags are the flags of irbctl simulate.
type simulateFlags struct {
	paths    input.Paths
	scenario string
	trace    string
	policies []string
	seed     uint64
	hasSeed  bool
	parallel int
	json     bool
	html     string
}

func (a *app) simulateCommand() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate [FLEET]",
		Short: "Replay traffic in virtual time under irb and under other policies, side by side",
		Long: `simulate makes requests from the demand of a fleet, or reads them from a trace,
and routes them in virtual time: by irb (its agents' picking and guards, and a
solve every some minutes from what they saw), by the feedback loop that it
replaces, and by the usual policies. All meet the same requests at the same
times; the same inputs give the same bytes.

The scenario file says how long, what fails when, how wrong and how old irb's
inputs are. Traces are told by their first line: Azure's and BurstGPT's CSV,
Mooncake's JSON lines, CSV of agents' sessions.

Exit codes: 0 done, 1 failure, 2 usage or bad input.`,
		Example: `  irbctl simulate fleet/
  irbctl simulate fleet/ --scenario outage.toml --only irb --only legacy
  irbctl simulate fleet/ --trace conversation_trace.jsonl --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.paths.Folder = args[0]
			}
			f.hasSeed = cmd.Flags().Changed("seed")
			return a.simulate(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	registerPaths(flags, &f.paths)
	flags.StringVar(&f.scenario, "scenario", "", "scenario file (TOML); none: half an hour of the fleet's demand")
	flags.StringVar(&f.trace, "trace", "", "trace of requests instead of the scenario's")
	flags.StringArrayVar(&f.policies, "only", nil, "simulate only this way of routing (repeatable): "+strings.Join(simulate.Names(), ", "))
	flags.Uint64Var(&f.seed, "seed", 1, "seed of all chance instead of the scenario's")
	flags.IntVar(&f.parallel, "parallel", runtime.GOMAXPROCS(0), "policies simulated at a time")
	flags.BoolVar(&f.json, "json", false, "print figures and curves as JSON")
	flags.StringVar(&f.html, "html", "", "also write the table and curves over time there, as a page that loads nothing")
	return cmd
}

func (a *app) simulate(ctx context.Context, f simulateFlags) error {
	if f.parallel < 1 {
		return usageError("--parallel is %d, want at least 1", f.parallel)
	}
	for i, name := range f.policies {
		if slices.Contains(f.policies[:i], name) {
			return usageError("--only has %q twice", name)
		}
	}
	if err := checkOutput("--html", f.html); err != nil {
		return err
	}
	in, err := a.loadSimulation(f)
	if err != nil {
		return err
	}
	start := a.now()
	results, err := simulate.RunAll(ctx, in, f.parallel, func(r *report.Result) {
		fmt.Fprintf(a.stderr, "%s: %d requests, %s\n", strings.TrimSpace(r.Policy+" "+r.Note), r.Offered, a.now().Sub(start).Round(10*time.Millisecond))
	})
	if err != nil {
		return err
	}
	if f.html != "" {
		var b bytes.Buffer
		if err := page.Write(&b, cmp.Or(in.Scenario.Name, "Simulation"), results); err != nil {
			return err
		}
		if err := snapshot.WriteFile(f.html, b.Bytes()); err != nil {
			return err
		}
	}
	if f.json {
		return a.printJSON(results)
	}
	return report.Table(a.stdout, results)
}

// loadSimulation reads the inputs and lets flags override the scenario.
func (a *app) loadSimulation(f simulateFlags) (simulate.Input, error) {
	badInput := func(err error) error { return &exitError{code: exitUsage, err: err} }
	in, warnings, err := simulate.Load(f.paths, f.scenario)
	a.warn(warnings)
	if err != nil {
		return in, badInput(err)
	}
	for _, name := range f.policies {
		if err := simulate.CheckName(name); err != nil {
			return in, badInput(err)
		}
	}
	if f.policies != nil {
		in.Scenario.Policies = f.policies
	}
	if f.hasSeed {
		in.Scenario.Seed = f.seed
	}
	if f.trace != "" {
		warnings, err := in.LoadTrace(f.trace)
		a.warn(warnings)
		if err != nil {
			return in, badInput(err)
		}
	}
	return in, nil
}
