package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/explain"
	"github.com/irb-project/irb/explain/report"
	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/input"
	"github.com/irb-project/irb/solve/interior"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/proof"
)

// modelFlags are the questions of irbctl explain that are answered by solving
// again, and the inputs to solve.
type modelFlags struct {
	paths       input.Paths
	previous    string
	whatIf      []string
	nMinusOne   bool
	value       string
	sensitivity bool
	breakEven   string
}

func (f *modelFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.paths.Folder, "inputs", "", "fleet that the weight file was made from")
	registerPaths(flags, &f.paths)
	flags.StringVar(&f.previous, "previous", "", "with inputs: the weight file in service, which it costs to leave")
	flags.StringArrayVar(&f.whatIf, "what-if", nil, "with inputs: solve again with a change (repeatable, all at once)")
	flags.BoolVar(&f.nMinusOne, "n-1", false, "with inputs: lose each engine and failure domain in turn")
	flags.StringVar(&f.value, "value", "", "with inputs: what so much more capacity saves at each engine, `MORE` is 10 (req/s) or +10%")
	flags.BoolVar(&f.sensitivity, "sensitivity", false, "with inputs: what each knob of the policy costs")
	flags.StringVar(&f.breakEven, "break-even", "", `with inputs: when "CLUSTER/CLASS ENGINE" begins or ceases to be used`)
}

// asked says whether a question needs the inputs.
func (f *modelFlags) asked() bool {
	return len(f.whatIf) > 0 || f.nMinusOne || f.value != "" || f.sensitivity || f.breakEven != ""
}

// answer is what a question came to.
type answer interface{ Report() *report.Report }

// explainModel answers the questions about a fleet, or explains its plan if
// there is none. Path is the weight file, "" where the plan is to be made.
func (a *app) explainModel(ctx context.Context, path string, f explainFlags) error {
	if f.model.paths == (input.Paths{}) {
		return usageError("solving again takes the inputs; name the fleet with --inputs, or in place of the weight file")
	}
	changes, err := parseChanges(f.model.whatIf)
	if err != nil {
		return err
	}
	fleet, err := input.Read(f.model.paths)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	q := &question{app: a, fleet: fleet, changes: changes, flags: f.model}
	var notes []string
	if err := q.readFiles(path); err != nil {
		return err
	}
	if f.html != "" {
		s, err := q.snapshot(ctx)
		if err != nil {
			return err
		}
		if !q.flags.askForPage(len(fleet.Demand), len(fleet.Engines), s.Solver.Method) {
			notes = append(notes, "This fleet takes long to solve again and again: what the loss of each engine does, what more capacity saves and what the policy costs are here only if asked for with --n-1, --value +10% and --sensitivity.")
		}
	}
	if !q.flags.asked() {
		s, err := q.snapshot(ctx)
		if err != nil {
			return err
		}
		if f.html != "" {
			return a.writePage(s, nil, f, notes...)
		}
		return a.printSnapshot(s, f)
	}
	answers, err := q.answers(ctx)
	if err != nil {
		return err
	}
	if f.html != "" {
		s, err := q.snapshot(ctx)
		if err != nil {
			return err
		}
		return a.writePage(s, answers, f, notes...)
	}
	return a.printAnswers(answers, f.format)
}

// pageWork is up to how many pairs of a source and an engine, summed over all
// solves, a page answers what was not asked: some seconds on two cores. The
// interior point method takes some 50 times longer for each than the simplex.
const (
	pageWork         = 10_000_000
	pageWorkInterior = pageWork / 50
)

// askForPage adds the questions that a page answers by itself where solving
// again is fast, and says whether it is.
func (f *modelFlags) askForPage(sources, engines int, method string) bool {
	limit := pageWork
	if method == interior.Method {
		limit = pageWorkInterior
	}
	if sources*engines*engines > limit {
		return false
	}
	f.nMinusOne, f.sensitivity = true, true
	if f.value == "" {
		f.value = "+10%"
	}
	return true
}

func parseChanges(texts []string) ([]explain.Change, error) {
	var changes []explain.Change
	for _, text := range texts {
		for part := range strings.SplitSeq(text, ";") {
			c, err := explain.ParseChange(part)
			if err != nil {
				return nil, &exitError{code: exitUsage, err: err}
			}
			changes = append(changes, c)
		}
	}
	return changes, nil
}

// question is what is asked about a fleet.
type question struct {
	app     *app
	fleet   *model.Fleet
	options solve.Options
	changes []explain.Change
	flags   modelFlags
	file    *snapshot.Snapshot // the weight file, nil: it is to be made
}

func (q *question) readFiles(path string) error {
	if q.flags.previous != "" {
		previous, err := q.app.readSnapshot(q.flags.previous)
		if err != nil {
			return err
		}
		q.options.Previous = proof.PreviousWeights(previous)
	}
	if path == "" {
		return nil
	}
	s, err := q.app.readSnapshot(path)
	if err != nil {
		return err
	}
	if s.Fleet != q.fleet.Policy.Fleet {
		return usageError("%s is of fleet %q, these inputs are of fleet %q", path, s.Fleet, q.fleet.Policy.Fleet)
	}
	q.file = s
	q.options.Work = model.WorkKind(s.Solver.Work)
	for _, in := range s.Inputs {
		for _, have := range q.fleet.Inputs {
			if have.Role == in.Role && have.SHA256 != in.SHA256 {
				q.app.warn([]string{fmt.Sprintf("%s was made from another %s than the one given; answers are about the inputs given", path, in.File)})
			}
		}
		if in.Role == "previous" && q.options.Previous == nil {
			q.app.warn([]string{fmt.Sprintf("%s followed %s; without --previous the answers do not count what it costs to leave it", path, in.File)})
		}
	}
	return nil
}

// snapshot is the weight file or, without one, that of the fleet's plan,
// unsigned.
func (q *question) snapshot(ctx context.Context) (*snapshot.Snapshot, error) {
	if q.file != nil {
		return q.file, nil
	}
	plan, err := solve.Solve(ctx, q.fleet, q.options)
	if err != nil {
		return nil, solveError(err)
	}
	contingencies, err := plan.Contingencies(ctx, plan.DefaultContingencies())
	if err != nil {
		return nil, err
	}
	q.file, err = plan.Snapshot(solve.Head{Now: q.app.now(), ExpiresIn: 24 * time.Hour}, contingencies)
	return q.file, err
}

// namedAnswer is an answer under the name of its question.
type namedAnswer struct {
	name string
	answer
}

func (q *question) answers(ctx context.Context) (list []namedAnswer, err error) {
	progress := q.app.newProgress()
	defer progress.stop()
	ask := func(name string, asked bool, find func() (answer, error)) {
		if err != nil || !asked {
			return
		}
		progress.stage("solving again for " + name)
		var found answer
		if found, err = find(); err == nil {
			list = append(list, namedAnswer{strings.ReplaceAll(name, "-", "_"), found})
		}
	}
	ask("what-if", len(q.changes) > 0, func() (answer, error) { return explain.AskWhatIf(ctx, q.fleet, q.options, q.changes) })
	ask("n-1", q.flags.nMinusOne, func() (answer, error) {
		s, err := q.snapshot(ctx)
		if err != nil {
			return nil, err
		}
		return explain.LoseEach(ctx, q.fleet, q.options, s)
	})
	ask("value", q.flags.value != "", func() (answer, error) { return explain.ValueCapacity(ctx, q.fleet, q.options, q.flags.value) })
	ask("sensitivity", q.flags.sensitivity, func() (answer, error) { return explain.Sensitivity(ctx, q.fleet, q.options) })
	ask("break-even", q.flags.breakEven != "", func() (answer, error) {
		cluster, rest, _ := strings.Cut(q.flags.breakEven, "/")
		class, engine, err := q.splitPair(rest)
		if err != nil {
			return nil, err
		}
		return explain.FindBreakEvens(ctx, q.fleet, q.options, cluster, class, engine)
	})
	var bad *explain.BadQuestion
	if errors.As(err, &bad) {
		return nil, &exitError{code: exitUsage, err: err}
	}
	if err != nil {
		return nil, solveError(err)
	}
	return list, nil
}

// splitPair takes "CLASS ENGINE" apart; both may have blanks, so it goes by the
// names of the engines.
func (q *question) splitPair(text string) (class, engine string, err error) {
	for _, e := range q.fleet.Engines {
		if before, ok := strings.CutSuffix(text, " "+e.Name); ok && len(e.Name) > len(engine) {
			class, engine = strings.TrimSpace(before), e.Name
		}
	}
	if engine == "" {
		return "", "", usageError(`--break-even is %q, want "CLUSTER/CLASS ENGINE" with an engine of the fleet`, q.flags.breakEven)
	}
	return class, engine, nil
}

func (a *app) printAnswers(answers []namedAnswer, format string) error {
	tree, all := make(map[string]answer, len(answers)), &report.Report{}
	for _, x := range answers {
		tree[x.name] = x.answer
		all.Append(x.Report())
	}
	if format == "json" {
		return a.printJSON(tree)
	}
	return a.printReport(all, format)
}

func (a *app) print(x answer, format string) error {
	if format == "json" {
		return a.printJSON(x)
	}
	return a.printReport(x.Report(), format)
}

func (a *app) printJSON(tree any) error {
	encoder := json.NewEncoder(a.stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(tree)
}
