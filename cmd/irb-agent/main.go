// Command irb-agent routes inference requests on a gateway by a signed weight
// file.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

// Exit codes, those of irbctl.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2 // usage or bad input
	exitVerify  = 4 // the weight file would be refused
)

// gcPercent is how much the heap may grow over what is in use before it is
// collected, where GOGC does not say it. What is in use is small, some 10 MB and
// 10 KB per stream, so that Go's 100 would collect tens of times a second under
// load: a tenth of all CPU time.
const gcPercent = 400

// version and commit are set by the Makefile through -ldflags -X.
var version, commit = "devel", ""

func main() {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr, signals, time.Now))
}

// execute runs one command line and returns its exit code.
func execute(args []string, stdout, stderr io.Writer, signals <-chan os.Signal, now func() time.Time) int {
	flags := flag.NewFlagSet("irb-agent", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: irb-agent --config agent.toml [--check]\n\nSIGHUP reads agent.toml and the weight file again; SIGTERM drains and ends.")
		flags.PrintDefaults()
	}
	path := flags.String("config", "", "the agent's `file` of settings (required)")
	check := flags.Bool("check", false, "check the settings and all files they name, then end")
	showVersion := flags.Bool("version", false, "print version and commit, then end")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	case *showVersion:
		fmt.Fprintf(stdout, "irb-agent %s, commit %s, %s %s/%s\n", version, buildCommit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return exitOK
	case *path == "" || flags.NArg() > 0:
		flags.Usage()
		return exitUsage
	case *check:
		return checkAll(*path, stdout, stderr, now())
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	a, err := newAgent(*path, stderr, now)
	if err != nil {
		complain(stderr, err)
		return exitUsage
	}
	if err := a.run(context.Background(), signals); err != nil {
		complain(stderr, err)
		return exitFailure
	}
	return exitOK
}

// complain prints each problem on a line of its own.
func complain(w io.Writer, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(w, "irb-agent: %s\n", line)
	}
}

// buildCommit falls back to what the go command recorded.
func buildCommit() string {
	if commit != "" {
		return commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}
