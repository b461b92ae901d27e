package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version and commit are set by the Makefile through -ldflags -X.
var version, commit = "devel", ""

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit and whether the CLP solver is in",
		Example: "  irbctl version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			clp := "without CLP (built without cgo)"
			if cgoEnabled {
				clp = "with CLP"
			}
			_, err := fmt.Fprintf(a.stdout, "irbctl %s, commit %s, %s, %s %s/%s\n",
				version, buildCommit(), clp, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
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
