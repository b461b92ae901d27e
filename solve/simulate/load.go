package simulate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/irb-project/irb/solve/input"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/simulate/scenario"
	"github.com/irb-project/irb/solve/simulate/traffic"
)

// Load reads a fleet, a scenario file and what that names: demand files and a
// trace, relative to its folder. Without a scenario file the scenario is the
// default one. Warnings are about the fleet and the trace.
func Load(fleet input.Paths, scenarioFile string) (in Input, warnings []string, err error) {
	if in.Fleet, err = input.Read(fleet); err != nil {
		return in, nil, err
	}
	warnings = in.Fleet.Warnings
	s := scenario.Default()
	in.Scenario = &s
	if scenarioFile == "" {
		return in, warnings, nil
	}
	text, err := os.ReadFile(scenarioFile)
	if err != nil {
		return in, warnings, err
	}
	if in.Scenario, err = scenario.Parse(filepath.Base(scenarioFile), text, in.Fleet); err != nil {
		return in, warnings, err
	}
	folder := filepath.Dir(scenarioFile)
	for _, step := range in.Scenario.Steps {
		paths := fleet
		paths.Demand = beside(folder, step.File)
		then, err := input.Read(paths)
		if err != nil {
			return in, warnings, err
		}
		if err := in.checkSources(then.Demand); err != nil {
			return in, warnings, err
		}
		in.Steps = append(in.Steps, Step{AtS: step.AtS, Demand: then.Demand})
	}
	if path := in.Scenario.Traffic.Trace; path != "" {
		more, err := in.LoadTrace(beside(folder, path))
		return in, append(warnings, more...), err
	}
	return in, warnings, nil
}

// checkSources reports the sources of a step that the fleet does not have: they
// would be left out. A source that a step leaves out has no demand then.
func (in *Input) checkSources(step []model.Demand) error {
	type source struct{ cluster, class string }
	has := map[source]bool{}
	for _, d := range in.Fleet.Demand {
		has[source{d.Cluster, d.Class}] = true
	}
	var problems []error
	for _, d := range step {
		if !has[source{d.Cluster, d.Class}] {
			problems = append(problems, fmt.Errorf("%s: source %s/%s is not in the demand of the fleet, want it there too", d.Origin, d.Cluster, d.Class))
		}
	}
	return errors.Join(problems...)
}

// LoadTrace reads the trace that is replayed. It warns of rows that are left
// out, and of requests after the end of the simulation.
func (in *Input) LoadTrace(path string) (warnings []string, err error) {
	s, name := in.Scenario, filepath.Base(path)
	if len(in.Steps) > 0 || slices.ContainsFunc(s.Events, func(e scenario.Event) bool { return e.Kind == scenario.Demand }) {
		return nil, fmt.Errorf("%s: the scenario changes the demand over time, want either that or a trace", name)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if in.Trace, err = traffic.ReadTrace(name, file); err != nil {
		return nil, err
	}
	if n := in.Trace.Skipped; n > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: %d rows without a prompt are left out", name, n))
	}
	all := len(in.Trace.Requests)
	lastS := in.Trace.Requests[all-1].AtS / s.Traffic.Speed
	if lastS < s.WarmupS {
		return warnings, fmt.Errorf("%s: ends after %.0f s, want more than the warm-up of %.0f s; the scenario's warmup and speed change that", name, lastS, s.WarmupS)
	}
	if n := in.Trace.Before(s.DurationS * s.Traffic.Speed); n < all {
		warnings = append(warnings, fmt.Sprintf("%s: lasts %.0f s, only %d of its %d requests come in the %.0f s that are simulated; the scenario's duration and speed change that",
			name, lastS, n, all, s.DurationS))
	}
	in.assign()
	return warnings, nil
}

// assign gives the requests of the trace to the sources, in proportion to their
// demand.
func (in *Input) assign() {
	var weights []float64
	for _, row := range sourceRows(in.Fleet) {
		weights = append(weights, in.Fleet.Demand[row].RPS)
	}
	in.Trace.Assign(weights, in.Scenario.Seed)
}

// beside returns the path of a file that another one in a folder names.
func beside(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}
