// Command evidence simulates irb beside the policies that it is compared with
// on three scenarios, with inputs that are right, wrong and old, and in a closed
// loop of fifty solves, and prints the tables of the README as Markdown.
//
//	go run ./examples/evidence
//	go run ./examples/evidence -standin 1000   # the engine of the simulation beside a stand-in over HTTP
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"

	"github.com/irb-project/irb/solve/input"
	"github.com/irb-project/irb/solve/simulate"
	"github.com/irb-project/irb/solve/simulate/irb"
	"github.com/irb-project/irb/solve/simulate/report"
)

// study is one scenario on one fleet; the paths are relative to the examples.
type study struct{ title, fleet, scenario string }

var studies = []study{
	{"Follow the sun", "follow-the-sun", "evidence/sun/scenario.toml"},
	{"Conversations", "evidence/conversations", "evidence/conversations/scenario.toml"},
	{"Overload with failover", "evidence/failover", "evidence/failover/scenario.toml"},
}

// closedLoop is the study of fifty solves.
var closedLoop = study{"Closed loop", "evidence/conversations", "evidence/closed-loop/scenario.toml"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("evidence", flag.ContinueOnError)
	flags.SetOutput(stderr)
	folder := flags.String("examples", "examples", "folder of the examples")
	shorten := flags.Float64("shorten", 1, "divide all durations by this: a quick look, with other figures")
	real := flags.Int("standin", 0, "instead: send so many requests to a stand-in engine over HTTP, and compare")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *real > 0 {
		if err := againstStandin(ctx, *real, stdout); err != nil {
			fmt.Fprintln(stderr, "evidence:", err)
			return 1
		}
		return 0
	}
	if !(*shorten >= 1) || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "evidence: want no arguments and -shorten of at least 1")
		return 2
	}
	e := evidence{folder: *folder, shorten: *shorten, out: stdout, log: stderr}
	for _, s := range studies {
		if err := e.compare(ctx, s); err != nil {
			fmt.Fprintf(stderr, "evidence: %s: %v\n", s.title, err)
			return 1
		}
	}
	if err := e.loop(ctx); err != nil {
		fmt.Fprintf(stderr, "evidence: %s: %v\n", closedLoop.title, err)
		return 1
	}
	return 0
}

type evidence struct {
	folder   string
	shorten  float64
	out, log io.Writer
}

func (e *evidence) load(s study) (simulate.Input, error) {
	in, _, err := simulate.Load(input.Paths{Folder: filepath.Join(e.folder, s.fleet)}, filepath.Join(e.folder, s.scenario))
	if err != nil {
		return in, err
	}
	x := in.Scenario
	x.DurationS /= e.shorten
	x.WarmupS /= e.shorten
	for i := range in.Steps {
		in.Steps[i].AtS /= e.shorten
	}
	for i := range x.Events {
		x.Events[i].AtS /= e.shorten
		x.Events[i].ForS /= e.shorten
	}
	return in, nil
}

// compare prints the table of all policies, then that of irb with inputs that
// are wrong or old.
func (e *evidence) compare(ctx context.Context, s study) error {
	in, err := e.load(s)
	if err != nil {
		return err
	}
	fmt.Fprintln(e.log, s.title)
	results, err := simulate.RunAll(ctx, in, runtime.GOMAXPROCS(0), nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.out, "### %s\n\n%d requests in %.0f min after the warm-up.\n\n", s.title, results[0].Offered, (in.Scenario.DurationS-in.Scenario.WarmupS)/60)
	if err := report.Markdown(e.out, results); err != nil {
		return err
	}
	results = nil
	for _, v := range variants() {
		wrong := *in.Scenario
		wrong.IRB.Noise, wrong.IRB.StaleS = v.options.Noise, v.options.StaleS
		wrong.IRB.DemandError, wrong.IRB.ProfileError = v.options.DemandError, v.options.ProfileError
		r, err := simulate.Run(ctx, simulate.Input{Fleet: in.Fleet, Scenario: &wrong, Trace: in.Trace, Steps: in.Steps}, simulate.Policy{Name: "irb"})
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		r.Policy = v.name
		results = append(results, r)
	}
	fmt.Fprintf(e.out, "\nirb with inputs that are wrong or old:\n\n")
	if err := report.Markdown(e.out, results); err != nil {
		return err
	}
	fmt.Fprintln(e.out)
	return nil
}

// variant is inputs of irb that are wrong or old.
type variant struct {
	name    string
	options irb.Options
}

func variants() []variant {
	const off, old = 0.3, 300
	return []variant{
		{"exact, of now", irb.Options{}},
		{"demand 30 % off", irb.Options{DemandError: off}},
		{"profiles 30 % off", irb.Options{ProfileError: off}},
		{"5 min old", irb.Options{StaleS: old}},
		{"all of it", irb.Options{DemandError: off, ProfileError: off, StaleS: old, Noise: 0.1}},
	}
}

// loop prints what fifty solves expected to move, beside what happened.
func (e *evidence) loop(ctx context.Context) error {
	in, err := e.load(closedLoop)
	if err != nil {
		return err
	}
	fmt.Fprintln(e.log, closedLoop.title)
	r, err := simulate.Run(ctx, in, simulate.Policy{Name: "irb"})
	if err != nil {
		return err
	}
	fmt.Fprintf(e.out, "### %s\n\n%d solves, one each %.0f s, from what the agents saw.\n\n", closedLoop.title, len(r.Periods), in.Scenario.IRB.EveryS)
	if err := report.Markdown(e.out, []*report.Result{r}); err != nil {
		return err
	}
	fmt.Fprintln(e.out)
	return report.PeriodsMarkdown(e.out, r.Periods, 5)
}
