package simulate

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/irb-project/irb/solve/input"
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
		in.Steps = append(in.Steps, Step{AtS: step.AtS, Demand: then.Demand})
	}
	if path := in.Scenario.Traffic.Trace; path != "" {
		warning, err := in.LoadTrace(beside(folder, path))
		if warning != "" {
			warnings = append(warnings, warning)
		}
		return in, warnings, err
	}
	return in, warnings, nil
}

// LoadTrace reads the trace that is replayed.
func (in *Input) LoadTrace(path string) (warning string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if in.Trace, err = traffic.ReadTrace(filepath.Base(path), file); err != nil {
		return "", err
	}
	if n := in.Trace.Skipped; n > 0 {
		warning = fmt.Sprintf("%s: %d rows without a prompt are left out", filepath.Base(path), n)
	}
	in.assign()
	return warning, nil
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
