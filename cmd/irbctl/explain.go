package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/explain"
)

// explainFlags are the flags of irbctl explain.
type explainFlags struct {
	filter  explain.Filter
	format  string
	model   modelFlags
	request requestFlags
}

func (a *app) explainCommand() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain WEIGHTS | FLEET",
		Short: "Say why every weight of a weight file is what it is, and what would change it",
		Long: `explain prints, for each source, what one more request would cost on each
engine, part by part, and a sentence per weight: why this engine, why not
more, which alternative was next and by how many ms it loses. It reads the
file's own explanation and does not check its signature; see irbctl verify.

With the inputs (a FLEET folder in place of the file, or --inputs) it answers
questions by solving again, exactly:

  --what-if CHANGE   the fleet with changes, side by side; repeatable, all at
                     once. A CHANGE is one of: down ENGINE, down region REGION,
                     health ENGINE V, capacity ENGINE V, demand CLUSTER[/CLASS]
                     V (CLUSTER * for all), latency CLUSTER -> ENGINE V,
                     max_utilization V; V is 40, +10, -10, +20% or -20%
  --n-1              every engine and failure domain lost in turn: what agents
                     do at once by their fallbacks, and the best new plan
  --value            what more capacity would save, ranked, and what binds
  --sensitivity      what each rule, cap, share and limit of the policy costs
  --break-even "CLUSTER/CLASS ENGINE"
                     the latency, demand and capacity at which the source
                     begins or ceases to use the engine

With --request it says where one request goes, by the agents' own code; with
--decision what an agent did with one, from a line of its decision log.`,
		Example: `  irbctl explain weights.toml
  irbctl explain weights.toml --cluster us-east --class chat
  irbctl explain weights.toml --engine a-1 --format json
  irbctl explain weights.toml --inputs fleet/ --what-if 'down a-1' --what-if 'demand us-east +20%'
  irbctl explain fleet/ --n-1
  irbctl explain fleet/ --value=+10%
  irbctl explain fleet/ --break-even 'us-east/chat c-1'
  irbctl explain weights.toml --request --cluster us-east --class chat --key session-42`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.explain(cmd.Context(), args[0], f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.filter.Cluster, "cluster", "", "only this cluster")
	flags.StringVar(&f.filter.Class, "class", "", "only this class")
	flags.StringVar(&f.filter.Engine, "engine", "", "only sources that use, could use or fall back to this engine")
	flags.StringVar(&f.format, "format", "text", "text or json")
	f.model.register(flags)
	f.request.register(flags)
	return cmd
}

func (a *app) explain(ctx context.Context, path string, f explainFlags) error {
	if f.format != "text" && f.format != "json" {
		return usageError("--format is %q, want text or json", f.format)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if f.model.paths.Folder != "" {
			return usageError("%s is a fleet and --inputs names another", path)
		}
		f.model.paths.Folder, path = path, ""
	}
	if f.request.on || f.request.decision != "" {
		if path == "" {
			return usageError("--request and --decision are about a weight file, not a fleet")
		}
		return a.explainRequest(path, f)
	}
	if path == "" || f.model.asked() {
		return a.explainModel(ctx, path, f)
	}
	s, err := a.readSnapshot(path)
	if err != nil {
		return err
	}
	return a.printSnapshot(s, f)
}

// printSnapshot prints the explanation in a snapshot.
func (a *app) printSnapshot(s *snapshot.Snapshot, f explainFlags) error {
	view, err := f.filter.Apply(s)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	if f.format == "json" {
		return explain.JSON(a.stdout, view)
	}
	explain.Text(a.stdout, view)
	_, err = fmt.Fprintln(a.stdout, "\nthe file's signature was not checked; irbctl verify does that")
	return err
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
