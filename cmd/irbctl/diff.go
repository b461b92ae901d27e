package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/explain"
	"github.com/irb-project/irb/explain/page"
	"github.com/irb-project/irb/solve/input"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/proof"
)

// diffFlags are the flags of irbctl diff.
type diffFlags struct {
	oldInputs, newInputs     string
	oldPrevious, newPrevious string
	format                   string
	html                     string
	maxMove                  string
}

func (a *app) diffCommand() *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Say what moves between two weight files, and which inputs moved it",
		Long: `diff compares two weight files: which traffic moves (by the keys of their
layouts), which engines carry more or less, what latency becomes of it. The
last line is a verdict for a log or a pull request.

With the inputs of both it also says why: how much of the change in the
objective and of each flow came from demand, latency, capacity and health,
profiles, policy or the previous weights. Every mixture of old and new inputs
is solved and each group gets its Shapley value, so that no order matters and
the parts sum to the whole.

Exit codes: 0 within --max-move, 1 more moves than that, or a failure, 2 usage
or bad input.`,
		Example: `  irbctl diff old.toml weights.toml
  irbctl diff old.toml weights.toml --max-move 20% --format markdown
  irbctl diff old.toml weights.toml --old-inputs fleet-old/ --new-inputs fleet/ --html change.html`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := pageFormat(cmd.Flags()); err != nil {
				return err
			}
			return a.diff(cmd.Context(), args[0], args[1], f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.oldInputs, "old-inputs", "", "fleet that OLD was made from")
	flags.StringVar(&f.newInputs, "new-inputs", "", "fleet that NEW was made from")
	flags.StringVar(&f.oldPrevious, "old-previous", "", "with inputs: the weight file that OLD followed")
	flags.StringVar(&f.newPrevious, "new-previous", "", "with inputs: the weight file that NEW followed, if not OLD")
	flags.StringVar(&f.format, "format", "text", "text, markdown or json")
	flags.StringVar(&f.html, "html", "", "write a page to this file instead; - for standard output")
	flags.StringVar(&f.maxMove, "max-move", "100%", "share of the traffic that may move; exit 1 beyond")
	completeFormat(cmd)
	return cmd
}

func (a *app) diff(ctx context.Context, oldPath, newPath string, f diffFlags) error {
	maxMove, err := parseShare(f.maxMove)
	if err != nil {
		return usageError("--max-move is %q, want a share like 20%% or 0.2", f.maxMove)
	}
	if err := checkFormat(f.format); err != nil {
		return err
	}
	if (f.oldInputs == "") != (f.newInputs == "") {
		return usageError("the reasons of a change take the inputs of both; give --old-inputs and --new-inputs")
	}
	old, err := a.readSnapshot(oldPath)
	if err != nil {
		return err
	}
	now, err := a.readSnapshot(newPath)
	if err != nil {
		return err
	}
	if old.Fleet != now.Fleet {
		return usageError("%s is of fleet %q, %s is of fleet %q", oldPath, old.Fleet, newPath, now.Fleet)
	}
	d := explain.Compare(old, now)
	if f.oldInputs != "" {
		if err := a.attribute(ctx, d, old, now, oldPath, f); err != nil {
			return err
		}
	}
	return a.printDiff(d, f, maxMove)
}

// attribute says which inputs made the change.
func (a *app) attribute(ctx context.Context, d *explain.Diff, old, now *snapshot.Snapshot, oldPath string, f diffFlags) error {
	if old.Solver.Work != now.Solver.Work {
		a.warn([]string{fmt.Sprintf("the old file was solved with %s work, the new one with %s; both are solved again with %s", old.Solver.Work, now.Solver.Work, now.Solver.Work)})
	}
	before, err := a.readInputs(f.oldInputs, old, f.oldPrevious, "", nil)
	if err != nil {
		return err
	}
	after, err := a.readInputs(f.newInputs, now, f.newPrevious, oldPath, old)
	if err != nil {
		return err
	}
	progress := a.newProgress()
	defer progress.stop()
	progress.stage("solving the mixtures of old and new inputs")
	d.Attribution, err = explain.Attribute(ctx, before, after, model.WorkKind(now.Solver.Work))
	if err != nil {
		return solveError(err)
	}
	progress.stop()
	a.warnApart("OLD", d.Old.ObjectiveMsRPS, d.Attribution.OldSolved)
	a.warnApart("NEW", d.New.ObjectiveMsRPS, d.Attribution.NewSolved)
	return nil
}

// readInputs reads what a weight file was made from. Beside is the other file
// of the diff, which it may have followed.
func (a *app) readInputs(folder string, s *snapshot.Snapshot, previousPath, besidePath string, beside *snapshot.Snapshot) (explain.Inputs, error) {
	fleet, err := input.Read(input.Paths{Folder: folder})
	if err != nil {
		return explain.Inputs{}, &exitError{code: exitUsage, err: err}
	}
	in := explain.Inputs{Fleet: fleet}
	if previousPath != "" {
		previous, err := a.readSnapshot(previousPath)
		if err != nil {
			return in, err
		}
		in.Previous = proof.PreviousWeights(previous)
		return in, nil
	}
	if beside == nil {
		return in, nil
	}
	data, err := a.readFile(besidePath)
	if err != nil {
		return in, err
	}
	if followed(s, data) == nil {
		in.Previous = proof.PreviousWeights(beside)
	}
	return in, nil
}

// warnApart warns where the inputs do not make the plan of a file.
func (a *app) warnApart(name string, objective float64, solved *explain.Outcome) {
	if math.Abs(solved.ObjectiveMsRPS-objective) > 1e-6*math.Abs(objective) {
		a.warn([]string{fmt.Sprintf("%s states an objective of %.10g ms x req/s, its inputs give %.10g: they, or the weights it followed, are not those it was made from", name, objective, solved.ObjectiveMsRPS)})
	}
}

func (a *app) printDiff(d *explain.Diff, f diffFlags, maxMove float64) error {
	if err := a.showDiff(d, f, d.Verdict(maxMove)); err != nil {
		return err
	}
	if d.TooMuch(maxMove) {
		return &exitError{code: exitFailure, err: fmt.Errorf("%.4g %% of the traffic moves, --max-move is %.4g %%", 100*d.MovedShare, 100*maxMove)}
	}
	return nil
}

func (a *app) showDiff(d *explain.Diff, f diffFlags, verdict string) error {
	switch {
	case f.html != "":
		var b bytes.Buffer
		if err := page.WriteDiff(&b, d, verdict); err != nil {
			return err
		}
		return a.writeOutput(f.html, b.Bytes())
	case f.format == "json":
		return a.printJSON(struct {
			Verdict string `json:"verdict"`
			*explain.Diff
		}{verdict, d})
	}
	r := d.Report()
	r.Line("%s", verdict)
	return a.printReport(r, f.format)
}

// parseShare reads "20%" or "0.2" as a number in [0, 1].
func parseShare(text string) (float64, error) {
	digits, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if percent {
		v /= 100
	}
	if err == nil && !(v >= 0 && v <= 1) {
		err = fmt.Errorf("%v is not in [0, 1]", v)
	}
	return v, err
}
