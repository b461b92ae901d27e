package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/irb-project/irb/explain/lint"
	"github.com/irb-project/irb/solve/input"
	"github.com/irb-project/irb/solve/model"
)

// lintFlags are the flags of irbctl lint.
type lintFlags struct {
	paths    input.Paths
	schedule lint.Schedule
	json     bool
}

func (a *app) lintCommand() *cobra.Command {
	var f lintFlags
	cmd := &cobra.Command{
		Use:   "lint [FLEET]",
		Short: "Find what inputs allow and their author can hardly mean",
		Long: `lint reads a fleet and looks for classes that are never reached or shadowed by
earlier ones, sources and classes that no engine may serve, engines that no
class may use, rules without effect, single points of failure, losses that
could only be borne by breaking residency, classes that a client could claim
by a header, and files that expire before the next one comes (--period).

A problem will hurt some day; a note may well be meant.

Exit codes: 0 no problem (there may be notes), 1 problems, 2 usage or bad input.`,
		Example: `  irbctl lint fleet/
  irbctl lint fleet/ --period 1h --expires-in 24h --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.paths.Folder = args[0]
			}
			return a.lint(f)
		},
	}
	flags := cmd.Flags()
	registerPaths(flags, &f.paths)
	flags.DurationVar(&f.schedule.Period, "period", 0, "how often the fleet is solved")
	flags.DurationVar(&f.schedule.ExpiresIn, "expires-in", 24*time.Hour, "the --expires-in of irbctl solve")
	flags.BoolVar(&f.json, "json", false, "print the findings as JSON")
	return cmd
}

func (a *app) lint(f lintFlags) error {
	switch {
	case f.schedule.Period < 0:
		return usageError("--period is %v, want a duration above 0", f.schedule.Period)
	case f.schedule.ExpiresIn <= 0:
		return usageError("--expires-in is %v, want a duration above 0", f.schedule.ExpiresIn)
	}
	fleet, err := input.Read(f.paths)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	a.warn(fleet.Warnings)
	compiled, err := model.Compile(fleet, model.CompileOptions{})
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	found := lint.Check(compiled, f.schedule)
	if f.json {
		if found == nil {
			found = []lint.Finding{}
		}
		if err := a.printJSON(found); err != nil {
			return err
		}
	}
	problems := 0
	for _, x := range found {
		kind := "note   "
		if x.Problem {
			problems++
			kind = "PROBLEM"
		}
		if !f.json {
			fmt.Fprintf(a.stdout, "%s  %s  %s: %s\n", kind, x.Code, x.Subject, x.Text)
		}
	}
	if problems > 0 {
		return &exitError{code: exitFailure, err: fmt.Errorf("%s", count(problems, "problem"))}
	}
	if !f.json && len(found) == 0 {
		fmt.Fprintln(a.stdout, "nothing to remark")
	}
	return nil
}
