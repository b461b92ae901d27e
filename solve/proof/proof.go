// Package proof rechecks the proof that travels in a snapshot against the
// inputs it was made from: in linear time, with no solver.
package proof

import (
	"errors"
	"fmt"
	"math"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/certify"
	"github.com/irb-project/irb/solve/model"
)

// ObjectiveTolerance is how far, relative, the objective that a snapshot
// states may be from the one recomputed.
const ObjectiveTolerance = 1e-9

// Result is what a proof showed.
type Result struct {
	certify.Report
	Compiled *model.Compiled
}

// Check recomputes, from the fleet, everything that a snapshot claims: that it
// was made from these bytes, that every weight and fallback is on an engine
// that may serve its source, that the plan keeps every limit, and, by the
// prices in the file, that no plan is better.
//
// Previous is the snapshot that this one followed, nil if there was none. All
// faults are joined in the error.
func Check(fleet *model.Fleet, s, previous *snapshot.Snapshot) (Result, error) {
	if s.Part != "" {
		return Result{}, fmt.Errorf("this is the part of cluster %q of a split plan; the proof is in the whole file", s.Part)
	}
	errs := []error{digests(fleet, s, previous)}
	compiled, err := model.Compile(fleet, model.CompileOptions{
		Previous: PreviousWeights(previous), Work: model.WorkKind(s.Solver.Work),
	})
	if err != nil {
		return Result{}, errors.Join(append(errs, err)...)
	}
	solution, err := restore(compiled, s)
	if err != nil {
		return Result{}, errors.Join(append(errs, err)...)
	}
	report, err := certify.Check(compiled.Problem, solution)
	if err == nil && math.Abs(report.ObjectiveMsRPS-s.Solver.Objective) > ObjectiveTolerance*math.Abs(report.ObjectiveMsRPS) {
		err = fmt.Errorf("objective is %.12g ms x req/s, the file says %.12g", report.ObjectiveMsRPS, s.Solver.Objective)
	}
	return Result{Report: report, Compiled: compiled}, errors.Join(append(errs, err)...)
}

// digests compares the inputs at hand with those that the snapshot names.
func digests(fleet *model.Fleet, s, previous *snapshot.Snapshot) error {
	var errs []error
	given := make(map[string]string)
	for _, in := range fleet.Inputs {
		given[in.Role] = in.SHA256
	}
	for _, in := range s.Inputs {
		if in.Role == "previous" {
			if previous == nil {
				errs = append(errs, fmt.Errorf("the snapshot followed %s; name it, as leaving its engines had a price", in.File))
			}
			continue
		}
		switch got, ok := given[in.Role]; {
		case !ok:
			errs = append(errs, fmt.Errorf("the snapshot was made with a %s file (%s), none is given", in.Role, in.File))
		case got != in.SHA256:
			errs = append(errs, fmt.Errorf("%s: its digest begins with %.12s, that of the file it was made from with %.12s", in.File, got, in.SHA256))
		}
		delete(given, in.Role)
	}
	for role := range given {
		errs = append(errs, fmt.Errorf("a %s file is given, the snapshot was made without one", role))
	}
	return errors.Join(errs...)
}
