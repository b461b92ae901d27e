package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes, the same for every command.
const (
	exitOK         = 0
	exitFailure    = 1
	exitUsage      = 2 // usage or bad input
	exitInfeasible = 3
	exitVerify     = 4 // verification failed
)

// exitError carries the exit code of a failed command.
type exitError struct {
	code  int
	err   error
	hints []string // advice, printed after the fact
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// usageError marks bad flags, arguments or input.
func usageError(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// execute runs one command line and returns its exit code. Results go to
// standard output, everything about them to standard error.
func (a *app) execute(args []string) int {
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	err := root.Execute()
	if err == nil {
		return exitOK
	}
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			fmt.Fprintf(a.stderr, "irbctl: %s\n", line)
		}
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		return exitUsage
	}
	for _, hint := range exit.hints {
		fmt.Fprintf(a.stderr, "hint: %s\n", hint)
	}
	return exit.code
}

// ran marks the errors of a command that ran, so that execute can tell them
// from those of cobra, which are all about usage.
func ran(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		var exit *exitError
		if err == nil || errors.As(err, &exit) {
			return err
		}
		return &exitError{code: exitFailure, err: err}
	}
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "irbctl",
		Short: "Compute, sign, verify and explain routing policies for LLM inference fleets",
		Long: `irbctl computes the routing policy that minimises expected latency over all
traffic of a fleet, and writes it as one signed text file in which every
weight carries its reason. irb-agent routes by that file.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &exitError{code: exitUsage, err: err, hints: []string{"see " + c.CommandPath() + " --help"}}
	})
	root.AddCommand(a.solveCommand(), a.verifyCommand(), a.explainCommand(), a.diffCommand(), a.lintCommand(), a.simulateCommand(), a.profileCommand(), a.collectCommand(), a.rollbackCommand(), a.drainCommand(), a.keygenCommand(), a.versionCommand())
	for _, cmd := range root.Commands() {
		cmd.RunE = ran(cmd.RunE)
	}
	return root
}
