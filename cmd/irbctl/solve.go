package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/explain"
	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/input"
	"github.com/irb-project/irb/solve/lp"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/proof"
)

// solveFlags are the flags of irbctl solve.
type solveFlags struct {
	paths         input.Paths
	key           keyFlags
	output        string
	split         string
	previous      string
	previousKeys  []string
	work          string
	splitPairsMax int
	contingencies int
	expiresIn     time.Duration
	author        string
	reason        string
	judge         bool
	json          bool
}

func (a *app) solveCommand() *cobra.Command {
	var f solveFlags
	cmd := &cobra.Command{
		Use:   "solve [FLEET]",
		Short: "Find the plan of least latency and write it as a signed weight file",
		Long: `solve reads a fleet (a folder with demand.toml or demand.csv, latency.csv,
engines.toml and, if wanted, policy.toml), finds the plan that minimises the
expected latency over all traffic, proves it optimal within 1e-6, and writes
the signed weight file. Without a proof no file is written.

Exit codes: 0 written, 1 failure, 2 usage or bad input, 3 infeasible.`,
		Example: `  irbctl solve fleet/ -o weights.toml --key irb.key
  irbctl solve fleet/ -o weights.toml --key irb.key --previous weights.toml --reason "a-1 lost half its GPUs"
  irbctl solve --demand d.csv --latency rtt.csv --engines e.toml -o - --key irb.key`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.paths.Folder = args[0]
			}
			return a.solve(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "weight file to write; - for standard output (required)")
	registerPaths(flags, &f.paths)
	f.key.register(flags)
	flags.StringVar(&f.split, "split", "", "folder: also write one weight file per cluster there, CLUSTER.toml")
	flags.StringVar(&f.previous, "previous", "", "weight file in service: weights move only where it pays, and as few keys as possible")
	flags.StringArrayVar(&f.previousKeys, "previous-pub", nil, "public key, or a file with one, that may have signed --previous, beside the signing key's own (repeatable)")
	flags.StringVar(&f.work, "work", "", "work model: auto, single or split (default: the policy's)")
	flags.IntVar(&f.splitPairsMax, "split-pairs-max", 2_000_000, "eligible pairs above which work = auto solves single work")
	flags.IntVar(&f.contingencies, "contingencies", -1, "engines lost in turn to find fallbacks, the busiest first; 0: fallbacks by marginal cost only; -1: all, on large fleets as many as some seconds allow")
	flags.DurationVar(&f.expiresIn, "expires-in", 24*time.Hour, "how long agents may take the file into service")
	flags.StringVar(&f.author, "author", "", "who made it, free text")
	flags.StringVar(&f.reason, "reason", "", "why, free text")
	flags.BoolVar(&f.judge, "judge", false, "have CLP confirm the optimum, apart from the solver; no file without its consent")
	flags.BoolVar(&f.json, "json", false, "print the plan as JSON instead of the summary")
	return cmd
}

// registerPaths adds the flags that name input files one by one.
func registerPaths(flags *pflag.FlagSet, paths *input.Paths) {
	flags.StringVar(&paths.Demand, "demand", "", "demand.toml or demand.csv instead of the folder's")
	flags.StringVar(&paths.Latency, "latency", "", "latency.csv instead of the folder's")
	flags.StringVar(&paths.Engines, "engines", "", "engines.toml instead of the folder's")
	flags.StringVar(&paths.Policy, "policy", "", "policy.toml instead of the folder's")
}

func (f solveFlags) check() error {
	switch {
	case f.output == "":
		return usageError("no output; name the weight file with -o (- for standard output)")
	case f.output == "-" && f.json:
		return usageError("-o - and --json would both write to standard output")
	case f.expiresIn <= 0:
		return usageError("--expires-in is %v, want a duration above 0", f.expiresIn)
	case f.contingencies < -1:
		return usageError("--contingencies is %d, want >= -1", f.contingencies)
	case f.splitPairsMax < 0:
		return usageError("--split-pairs-max is %d, want >= 0", f.splitPairsMax)
	case f.judge && !lp.Available:
		return lp.ErrNoCLP
	case f.work != "" && f.work != string(model.WorkAuto) && f.work != string(model.WorkSingle) && f.work != string(model.WorkSplit):
		return usageError("--work is %q, want auto, single or split", f.work)
	}
	return nil
}

// solve runs the stages in order; the output file is written last, so that a
// failure of any stage leaves the old one.
func (a *app) solve(ctx context.Context, f solveFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	keys, err := a.loadSecretKeys(f.key)
	if err != nil {
		return err
	}
	release, err := lockOutput(f.output, a.now())
	if err != nil {
		return err
	}
	defer release()
	head := solve.Head{Now: a.now(), ExpiresIn: f.expiresIn, Author: f.author, Reason: f.reason}
	if f.previous != "" {
		if err := a.loadPrevious(&head, f, keys); err != nil {
			return err
		}
	}
	fleet, err := input.Read(f.paths)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	a.warn(fleet.Warnings)
	if was := head.Previous; was != nil && was.Fleet != fleet.Policy.Fleet {
		return usageError("--previous %s is of fleet %q, these inputs are of fleet %q", f.previous, was.Fleet, fleet.Policy.Fleet)
	}

	progress := a.newProgress()
	defer progress.stop()
	plan, err := solve.Solve(ctx, fleet, solve.Options{
		Previous: proof.PreviousWeights(head.Previous), Work: model.WorkKind(f.work),
		SplitPairsMax: f.splitPairsMax, Progress: progress.stage,
	})
	if err != nil {
		return solveError(err)
	}
	if f.judge {
		progress.stage("asking CLP")
		if err := a.judge(ctx, plan); err != nil {
			return err
		}
	}
	progress.stage("finding fallbacks")
	if f.contingencies < 0 {
		f.contingencies = plan.DefaultContingencies()
	}
	contingencies, err := plan.Contingencies(ctx, f.contingencies)
	if err != nil {
		return err
	}
	file, err := plan.Snapshot(head, contingencies)
	if err != nil {
		return err
	}
	a.warn(plan.Warnings)
	progress.stop()
	if f.split != "" {
		if err := os.MkdirAll(f.split, 0o755); err != nil {
			return err
		}
		for _, part := range solve.Split(file) {
			if err := a.writeSnapshot(filepath.Join(f.split, part.Part+".toml"), part, keys); err != nil {
				return err
			}
		}
	}
	if err := a.writeSnapshot(f.output, file, keys); err != nil {
		return err
	}
	return a.reportSolve(f, file, plan.Elapsed)
}

// judge asks CLP for its own bound on the plan.
func (a *app) judge(ctx context.Context, plan *solve.Plan) error {
	start := time.Now()
	verdict, err := lp.Judge(ctx, plan.Problem, plan.Solution)
	if err != nil {
		return err
	}
	if !verdict.Agrees {
		return fmt.Errorf("judge: CLP disagrees: it proves no more than %.10g ms x req/s where the plan has %.10g (gap %.1e, tolerance %.0e); no file written",
			verdict.Bound, verdict.Objective, verdict.Gap, lp.JudgeGap)
	}
	fmt.Fprintf(a.stderr, "judge: CLP agrees: no plan below %.10g ms x req/s by its own duals over all pairs (gap %.1e, %s)\n",
		verdict.Bound, max(0, verdict.Gap), time.Since(start).Round(10*time.Microsecond))
	return nil
}

func solveError(err error) error {
	var infeasible *solve.InfeasibleError
	if errors.As(err, &infeasible) {
		exit := &exitError{code: exitInfeasible, err: err}
		if infeasible.Sheddable {
			exit.hints = []string{`set shed = "allow" in the policy to serve what fits and shed the rest by priority`}
		}
		return exit
	}
	if errors.Is(err, solve.ErrNoDemand) || errors.As(err, new(*solve.FleetError)) {
		return &exitError{code: exitUsage, err: err}
	}
	return err
}

// writeSnapshot checks, encodes, signs and writes a snapshot, atomically where
// it is a file. What an agent would refuse is not written.
func (a *app) writeSnapshot(path string, s *snapshot.Snapshot, keys []secretKey) error {
	if err := snapshot.Check(s); err != nil {
		return fmt.Errorf("%w; no file written", err)
	}
	body, err := snapshot.Encode(s)
	if err != nil {
		return err
	}
	signed, err := snapshot.Sign(body, keys...)
	if err != nil {
		return err
	}
	if path == "-" {
		_, err := a.stdout.Write(signed)
		return err
	}
	if there := sequenceOf(path); there > s.Sequence {
		return &exitError{code: exitFailure, err: fmt.Errorf("%s holds snapshot %d, newer than %d; not overwritten", path, there, s.Sequence),
			hints: []string{"was the clock set back? --previous (solve) or --current (rollback, drain) continues its sequence"}}
	}
	return snapshot.WriteFile(path, signed)
}

// sequenceOf returns the sequence of the weight file that is there, 0 if there
// is none.
func sequenceOf(path string) int64 {
	file, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	body, _, err := snapshot.Split(file)
	if err != nil {
		return 0
	}
	there, err := snapshot.Decode(body)
	if err != nil {
		return 0
	}
	return there.Sequence
}

// reportSolve prints the summary: on standard output, or on standard error
// where the weight file itself went there.
func (a *app) reportSolve(f solveFlags, s *snapshot.Snapshot, elapsed time.Duration) error {
	if f.json {
		return explain.JSON(a.stdout, s)
	}
	w := a.stdout
	if f.output == "-" {
		w = a.stderr
	}
	if err := a.writeReport(w, explain.Summary(s, elapsed)); err != nil {
		return err
	}
	if f.output != "-" {
		fmt.Fprintf(w, "wrote %s: snapshot %d, expires %s\n", f.output, s.Sequence, s.Expires.Format(time.RFC3339))
	}
	return nil
}

func (a *app) warn(warnings []string) {
	for _, w := range warnings {
		fmt.Fprintf(a.stderr, "warning: %s\n", w)
	}
}

// loadPrevious reads the snapshot in service. It must carry a signature of a
// key at hand: weights of unknown origin do not steer a plan.
func (a *app) loadPrevious(head *solve.Head, f solveFlags, keys []secretKey) error {
	data, err := a.readFile(f.previous)
	if err != nil {
		return err
	}
	trusted, err := parsePublicKeys(f.previousKeys)
	if err != nil {
		return err
	}
	for _, key := range keys {
		trusted = append(trusted, publicKey(key))
	}
	if head.Previous, err = verifiedSnapshot(data, trusted); err != nil {
		return &exitError{code: exitVerify, err: fmt.Errorf("--previous %s: %w", f.previous, err),
			hints: []string{"name the public key that signed it with --previous-pub"}}
	}
	if err := fromFuture(head.Previous, a.now()); err != nil {
		return usageError("--previous %s: its sequence %w; a plan that follows it would be refused", f.previous, err)
	}
	head.PreviousDigest = snapshot.Input{Role: "previous", File: filepath.Base(f.previous), SHA256: snapshot.Digest(data)}
	return nil
}
