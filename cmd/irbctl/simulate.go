package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/irb-project/irb/solve/input"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/simulate"
	"github.com/irb-project/irb/solve/simulate/report"
	"github.com/irb-project/irb/solve/simulate/scenario"
	"github.com/irb-project/irb/solve/simulate/traffic"
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
	return cmd
}

func (a *app) simulate(ctx context.Context, f simulateFlags) error {
	if f.parallel < 1 {
		return usageError("--parallel is %d, want at least 1", f.parallel)
	}
	in, err := a.loadSimulation(f)
	if err != nil {
		return err
	}
	start := a.now()
	results, err := simulate.RunAll(ctx, in, f.parallel, func(r *report.Result) {
		fmt.Fprintf(a.stderr, "%s %s: %d requests, %s\n", r.Policy, r.Note, r.Offered, a.now().Sub(start).Round(10*time.Millisecond))
	})
	if err != nil {
		return err
	}
	if f.json {
		return a.printJSON(results)
	}
	return report.Table(a.stdout, results)
}

// loadSimulation reads the fleet, the scenario, its demand files and its trace.
func (a *app) loadSimulation(f simulateFlags) (in simulate.Input, err error) {
	badInput := func(err error) error { return &exitError{code: exitUsage, err: err} }
	if in.Fleet, err = input.Read(f.paths); err != nil {
		return in, badInput(err)
	}
	a.warn(in.Fleet.Warnings)
	s := scenario.Default()
	in.Scenario = &s
	folder := ""
	if f.scenario != "" {
		folder = filepath.Dir(f.scenario)
		text, err := a.readFile(f.scenario)
		if err != nil {
			return in, err
		}
		if in.Scenario, err = scenario.Parse(filepath.Base(f.scenario), text, in.Fleet); err != nil {
			return in, badInput(err)
		}
	}
	if f.policies != nil {
		in.Scenario.Policies = f.policies
	}
	for _, name := range in.Scenario.Policies {
		if err := simulate.CheckName(name); err != nil {
			return in, badInput(err)
		}
	}
	if f.hasSeed {
		in.Scenario.Seed = f.seed
	}
	for _, step := range in.Scenario.Steps {
		paths := f.paths
		paths.Demand = beside(folder, step.File)
		fleet, err := input.Read(paths)
		if err != nil {
			return in, badInput(err)
		}
		in.Steps = append(in.Steps, simulate.Step{AtS: step.AtS, Demand: fleet.Demand})
	}
	path := f.trace
	if path == "" {
		path = beside(folder, in.Scenario.Traffic.Trace)
	}
	if path == "" {
		return in, nil
	}
	if in.Trace, err = a.loadTrace(path, in.Fleet, in.Scenario.Seed); err != nil {
		return in, badInput(err)
	}
	return in, nil
}

// beside returns the path of a file that another one in a folder names.
func beside(folder, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

func (a *app) loadTrace(path string, fleet *model.Fleet, seed uint64) (*traffic.Trace, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	t, err := traffic.ReadTrace(filepath.Base(path), file)
	if err != nil {
		return nil, err
	}
	if t.Skipped > 0 {
		a.warn([]string{fmt.Sprintf("%s: %d rows without a prompt are left out", filepath.Base(path), t.Skipped)})
	}
	simulate.Assign(t, fleet, seed)
	return t, nil
}
