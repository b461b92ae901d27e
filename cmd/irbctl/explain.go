package main

import (
	"context"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/explain"
	"github.com/irb-project/irb/explain/report"
	"github.com/irb-project/irb/solve/input"
)

// explainFlags are the flags of irbctl explain.
type explainFlags struct {
	filter  explain.Filter
	format  string
	html    string
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
  --value MORE       what so much more capacity (10 req/s, +10%) would save at
                     each engine, ranked, and what binds
  --sensitivity      what each rule, cap, share and limit of the policy costs
  --break-even "CLUSTER/CLASS ENGINE"
                     the latency, demand and capacity at which the source
                     begins or ceases to use the engine

With --html FILE it writes a page that stands for itself, with charts and
filters. Made with the inputs it also answers --n-1, --value +10% and
--sensitivity where solving again takes seconds.

With --request it says where one request goes, by the agents' own code; with
--decision what an agent did with one, from a line of its decision log.`,
		Example: `  irbctl explain weights.toml
  irbctl explain weights.toml --cluster us-east --class chat
  irbctl explain weights.toml --engine a-1 --format json
  irbctl explain weights.toml --inputs fleet/ --what-if 'down a-1' --what-if 'demand us-east +20%'
  irbctl explain fleet/ --n-1
  irbctl explain fleet/ --value +10%
  irbctl explain weights.toml --inputs fleet/ --html report.html
  irbctl explain fleet/ --break-even 'us-east/chat c-1'
  irbctl explain weights.toml --request --cluster us-east --class chat --key session-42`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.request.stray(cmd.Flags()); err != nil {
				return err
			}
			if err := pageFormat(cmd.Flags()); err != nil {
				return err
			}
			return a.explain(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.filter.Cluster, "cluster", "", "only this cluster")
	flags.StringVar(&f.filter.Class, "class", "", "only this class")
	flags.StringVar(&f.filter.Engine, "engine", "", "only sources that use, could use or fall back to this engine")
	flags.StringVar(&f.format, "format", "text", "text, markdown or json")
	flags.StringVar(&f.html, "html", "", "write a page to this file instead; - for standard output")
	f.model.register(flags)
	f.request.register(flags)
	completeFormat(cmd)
	completeNames(cmd)
	return cmd
}

func (a *app) explain(ctx context.Context, path string, f explainFlags) error {
	if err := checkFormat(f.format); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if f.model.paths.Folder != "" {
			return usageError("%s is a fleet and --inputs names another", path)
		}
		f.model.paths.Folder, path = path, ""
	}
	if f.request.on || f.request.decision != "" {
		switch {
		case path == "":
			return usageError("--request and --decision are about a weight file, not a fleet")
		case f.html != "":
			return usageError("--html is about weights; --request and --decision answer with --format")
		}
		return a.explainRequest(path, f)
	}
	if path == "" || f.model.asked() || f.html != "" && f.model.paths != (input.Paths{}) {
		return a.explainModel(ctx, path, f)
	}
	s, err := a.readSnapshot(path)
	if err != nil {
		return err
	}
	return a.printSnapshot(s, f)
}

// formats are the values of --format.
func formats() []string { return []string{"text", "markdown", "json"} }

func checkFormat(format string) error {
	if !slices.Contains(formats(), format) {
		return usageError("--format is %q, want text, markdown or json", format)
	}
	return nil
}

// printSnapshot prints the explanation in a snapshot.
func (a *app) printSnapshot(s *snapshot.Snapshot, f explainFlags) error {
	if f.html != "" {
		return a.writePage(s, nil, f, "This page was made from the weight file alone. With its inputs (--inputs FLEET) it also tells what the loss of each engine does, what more capacity saves, and what --what-if asks.")
	}
	view, err := f.filter.Apply(s)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	if f.format == "json" {
		return explain.JSON(a.stdout, view)
	}
	r := explain.Explain(view)
	r.Line("the file's signature was not checked; irbctl verify does that")
	return a.printReport(r, f.format)
}

// printReport prints what people read.
func (a *app) printReport(r *report.Report, format string) error {
	if format == "markdown" {
		return r.WriteMarkdown(a.stdout)
	}
	return a.writeReport(a.stdout, r)
}

// writeReport prints text, coloured on a terminal unless the environment asks
// for none (https://no-color.org).
func (a *app) writeReport(w io.Writer, r *report.Report) error {
	file, ok := w.(*os.File)
	if ok && term.IsTerminal(int(file.Fd())) && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb" {
		return r.WriteColour(w)
	}
	return r.WriteText(w)
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
