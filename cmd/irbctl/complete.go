package main

import (
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/irb-project/irb/agent/snapshot"
)

// completeFormat has the shell complete --format.
func completeFormat(cmd *cobra.Command) {
	complete(cmd, "format", cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp))
}

// completeNames has the shell complete --cluster, --class and --engine with the
// names in the weight file that the line names.
func completeNames(cmd *cobra.Command) {
	for flag, names := range map[string]func(*snapshot.Snapshot) []string{
		"cluster": func(s *snapshot.Snapshot) []string {
			return distinct(s.Sources, func(x snapshot.Source) string { return x.Cluster })
		},
		"class": func(s *snapshot.Snapshot) []string {
			return distinct(s.Classes, func(x snapshot.Class) string { return x.Name })
		},
		"engine": func(s *snapshot.Snapshot) []string {
			return distinct(s.Engines, func(x snapshot.Engine) string { return x.Name })
		},
	} {
		complete(cmd, flag, func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			file, err := os.ReadFile(args[0])
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			body, _, err := snapshot.Split(file)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			s, err := snapshot.Decode(body)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return names(s), cobra.ShellCompDirectiveNoFileComp
		})
	}
}

// complete sets how a flag is completed; that it does not exist is a mistake of
// the program.
func complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err)
	}
}

func distinct[T any](all []T, name func(T) string) (names []string) {
	for _, x := range all {
		if n := name(x); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}
