package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/collect/bench"
	"github.com/irb-project/irb/solve/collect/bench/chart"
)

// maxResultBytes bounds a result file; one with every token's time is big.
const maxResultBytes = 256 << 20

// profileFlags are the flags of irbctl profile.
type profileFlags struct {
	read    bench.Options
	fit     bench.FitOptions
	selects []string
	output  string
	svg     string
	list    bool
	json    bool
}

const profileHelp = `profile reads what load tests measured and writes [profile] parts of
engines.toml: TTFT and TBOT against utilization, with the capacity, the knee
and a max utilization for [[engine]] in comments. It reads

  vllm bench serve --save-result (and SGLang's bench_serving)   JSON, JSON lines
  GuideLLM benchmarks.json                                      JSON
  inference-perf stage_N_lifecycle_metrics.json                 JSON
  GenAI-Perf, AIPerf profile_export_*.json                      JSON
  a Prometheus query_range answer with the engines' counters    JSON
  any table: concurrency or rate, ttft_ms, tpot_ms or itl_ms, prompt_tokens
  and output_tokens (isl, osl), throughput_rps                  CSV

- for standard input. The level of load is what was kept in flight
(concurrency) or sent (rate): N requests in flight with latency R are N/R
requests per second (Little's law), and as each finds N-1 others, (N-1)/R is
the rate that an open loop has at that latency; so concurrency 1 is the engine
without load. Capacity, utilization 1, is the highest throughput seen.

Repeats are merged. Rows with missing cells, wrong units, failures or overload
(throughput falls as load rises, or less than 95 % of the offered rate is
completed) are left out, each with file, line and reason. The fit is solve's
own: the nearest convex, non-decreasing curve, warned about above 10 %, refused
above 25 % unless --accept-error.

The knee is where throughput per latency is greatest (Kleinrock). Max
utilization is where a request takes twice as long as at the knee, at most 0.9
and what was measured, and less where a TTFT or TBOT limit binds before.

Where a configuration was measured at several request shapes, the policy's
output_token_work is estimated from their capacities by least squares, with how
far one number is off.

Exit codes: 0 at least one profile, 2 usage, bad input, or every one refused.`

func (a *app) profileCommand() *cobra.Command {
	var f profileFlags
	cmd := &cobra.Command{
		Use:   "profile FILE...",
		Short: "Fit engine profiles from the results of load tests",
		Long:  profileHelp,
		Example: `  irbctl profile results/*.json -o profiles.toml --svg profile.svg
  irbctl profile sweep.csv --list
  irbctl profile sweep.csv --select gpu=h100 --select tp=2 --ttft-limit-ms 500
  irbctl profile sweep.csv --prompt-tokens 1024 --output-tokens 256 --by gpu,model
  curl -G prometheus:9090/api/v1/query_range -d start=... -d end=... -d step=60 \
    --data-urlencode 'query={__name__=~"vllm:(time_to_first_token_seconds|inter_token_latency_seconds)_(sum|count)|vllm:(prompt|generation)_tokens_total"}' |
    irbctl profile - --name h100-70b`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.profile(args, f) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "file to write the profiles to (default: standard output)")
	flags.StringArrayVar(&f.selects, "select", nil, "KEY=VALUE: use only the configurations with this label or column (repeatable)")
	flags.StringSliceVar(&f.read.By, "by", nil, "CSV columns that tell configurations apart (default: all that are no measurement)")
	flags.BoolVar(&f.list, "list", false, "print the table of configurations only, and write nothing")
	flags.StringVar(&f.fit.Name, "name", "", "name of the profile, where there is one (default: made of the labels)")
	flags.StringVar(&f.svg, "svg", "", "also draw the profile, where there is one, as SVG into this file")
	flags.Float64Var(&f.read.PromptTokens, "prompt-tokens", 0, "mean prompt tokens of the requests, where the file does not say")
	flags.Float64Var(&f.read.OutputTokens, "output-tokens", 0, "mean output tokens of the requests, where the file does not say")
	flags.Float64Var(&f.fit.TTFTLimitMs, "ttft-limit-ms", 0, "TTFT that max utilization must keep (0: none)")
	flags.Float64Var(&f.fit.TBOTLimitMs, "tbot-limit-ms", 0, "TBOT that max utilization must keep (0: none)")
	flags.BoolVar(&f.fit.AcceptError, "accept-error", false, "accept fits that are off by more than 25 %, and say so in the profile")
	flags.BoolVar(&f.json, "json", false, "print everything as JSON instead")
	return cmd
}

func (f profileFlags) check() error {
	switch {
	case f.list && (f.output != "" || f.svg != ""):
		return usageError("--list writes nothing; leave out -o and --svg")
	case f.fit.Name != "" && !bench.ValidName(f.fit.Name):
		return usageError("--name is %q, want 1 to 63 of A-Z a-z 0-9 . _ -, a letter or digit first", f.fit.Name)
	}
	for _, x := range []struct {
		flag string
		v    float64
	}{
		{"--prompt-tokens", f.read.PromptTokens}, {"--output-tokens", f.read.OutputTokens},
		{"--ttft-limit-ms", f.fit.TTFTLimitMs}, {"--tbot-limit-ms", f.fit.TBOTLimitMs},
	} {
		if !(x.v >= 0 && x.v < 1e9) {
			return usageError("%s is %v, want a number >= 0 and below 1e9", x.flag, x.v)
		}
	}
	if err := checkOutput("-o", f.output); err != nil {
		return err
	}
	return checkOutput("--svg", f.svg)
}

// profileReport is the answer of --json.
type profileReport struct {
	Sources         []bench.Source   `json:"sources"`
	Notes           []bench.Note     `json:"notes,omitempty"`
	Profiles        []*bench.Profile `json:"profiles"`
	OutputTokenWork []bench.Work     `json:"output_token_work,omitempty"`
}

func (a *app) profile(paths []string, f profileFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	selected, err := parseLabels(f.selects)
	if err != nil {
		return err
	}
	files, err := a.readResults(paths)
	if err != nil {
		return err
	}
	results, err := bench.Read(files, f.read)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	runs, err := bench.Select(results.Runs, selected)
	if err != nil {
		return usageError("--select: %w", err)
	}
	profiles := bench.Fit(runs, f.fit)
	if len(profiles) > 1 && (f.fit.Name != "" || f.svg != "") {
		return &exitError{code: exitUsage, err: fmt.Errorf("--name and --svg take one profile, there are %d", len(profiles)),
			hints: []string{"see them with --list and choose one with --select"}}
	}
	report := profileReport{results.Sources, results.Notes, profiles, bench.EstimateWork(profiles)}
	if err := a.writeProfiles(f, &report); err != nil {
		return err
	}
	return allRefused(profiles)
}

// allRefused is an error if no profile is left.
func allRefused(profiles []*bench.Profile) error {
	var refusals []string
	for _, p := range profiles {
		if p.Refusal == "" {
			return nil
		}
		refusals = append(refusals, fmt.Sprintf("profile %q: %s", p.Name, p.Refusal))
	}
	const most = 20
	if more := len(refusals) - most; more > 0 {
		refusals = append(refusals[:most], fmt.Sprintf("and %d more", more))
	}
	return usageError("%s", strings.Join(refusals, "\n"))
}

// parseLabels reads KEY=VALUE flags.
func parseLabels(flags []string) ([]bench.Label, error) {
	var labels []bench.Label
	for _, text := range flags {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, usageError("--select is %q, want KEY=VALUE", text)
		}
		labels = append(labels, bench.Label{Key: key, Value: value})
	}
	return labels, nil
}

// readResults reads all files, and reports all that cannot be read.
func (a *app) readResults(paths []string) ([]bench.File, error) {
	var files []bench.File
	var problems []string
	for _, path := range paths {
		data, err := a.readResult(path)
		switch {
		case err != nil:
			problems = append(problems, err.Error())
		case len(data) > maxResultBytes:
			problems = append(problems, fmt.Sprintf("%s: has more than %d MiB, want at most that", path, maxResultBytes>>20))
		}
		name := path
		if path == "-" {
			name = "stdin"
		}
		files = append(files, bench.File{Name: name, Data: data})
	}
	if len(problems) > 0 {
		return nil, usageError("%s", strings.Join(problems, "\n"))
	}
	return files, nil
}

func (a *app) readResult(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(a.stdin, maxResultBytes+1))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxResultBytes+1))
}

// writeProfiles writes the files, the profiles first, and prints the summary:
// on standard error where the profiles themselves go to standard output.
func (a *app) writeProfiles(f profileFlags, report *profileReport) error {
	fitted := 0
	for _, p := range report.Profiles {
		if p.Refusal == "" {
			fitted++
		}
	}
	text := bench.TOML(report.Sources, report.Profiles, report.OutputTokenWork, a.now())
	if f.output != "" && fitted > 0 {
		if err := snapshot.WriteFile(f.output, []byte(text)); err != nil {
			return err
		}
	}
	if f.svg != "" && fitted > 0 {
		svg, err := chart.SVG(report.Profiles[0])
		if err != nil {
			return err
		}
		if err := snapshot.WriteFile(f.svg, svg); err != nil {
			return err
		}
	}
	if f.json {
		return a.printJSON(report)
	}
	summary := a.stdout
	if f.output == "" && !f.list {
		summary = a.stderr
	}
	printProfiles(summary, report)
	switch {
	case f.list || fitted == 0:
	case f.output != "":
		fmt.Fprintf(summary, "wrote %s: %s\n", f.output, count(fitted, "profile"))
	default:
		if _, err := io.WriteString(a.stdout, text); err != nil {
			return err
		}
	}
	if f.svg != "" && fitted > 0 {
		fmt.Fprintf(summary, "wrote %s\n", f.svg)
	}
	return nil
}
