package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/explain"
)

func (a *app) explainCommand() *cobra.Command {
	var filter explain.Filter
	var format string
	cmd := &cobra.Command{
		Use:   "explain WEIGHTS",
		Short: "Say why every weight of a weight file is what it is",
		Long: `explain prints, for each source, what one more request would cost on each
engine, part by part, and a sentence per weight: why this engine, why not
more, which alternative was next and by how many ms it loses.

It reads the file's own explanation and does not check its signature; see
irbctl verify for that.`,
		Example: `  irbctl explain weights.toml
  irbctl explain weights.toml --cluster us-east --class chat
  irbctl explain weights.toml --engine a-1 --format json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.readSnapshot(args[0])
			if err != nil {
				return err
			}
			view, err := filter.Apply(s)
			if err != nil {
				return &exitError{code: exitUsage, err: err}
			}
			switch format {
			case "text":
				explain.Text(a.stdout, view)
				return nil
			case "json":
				return explain.JSON(a.stdout, view)
			}
			return usageError("--format is %q, want text or json", format)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&filter.Cluster, "cluster", "", "only this cluster")
	flags.StringVar(&filter.Class, "class", "", "only this class")
	flags.StringVar(&filter.Engine, "engine", "", "only sources that use, could use or fall back to this engine")
	flags.StringVar(&format, "format", "text", "text or json")
	return cmd
}

// readSnapshot reads a weight file, - for standard input, and checks that it
// has the form and the meaning of one. Its signature is not checked.
func (a *app) readSnapshot(path string) (*snapshot.Snapshot, error) {
	data, err := a.readFile(path)
	if err != nil {
		return nil, err
	}
	body, _, err := snapshot.Split(data)
	if err != nil {
		return nil, usageError("%s: %w", path, err)
	}
	s, err := snapshot.Decode(body)
	if err != nil {
		return nil, usageError("%s: %w", path, err)
	}
	if err := snapshot.Check(s); err != nil {
		return nil, usageError("%s: %w", path, err)
	}
	return s, nil
}

func (a *app) readFile(path string) ([]byte, error) {
	var data []byte
	var err error
	if path == "-" {
		data, err = io.ReadAll(io.LimitReader(a.stdin, snapshot.MaxBytes+1))
	} else {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, usageError("%w", err)
	}
	return data, nil
}
