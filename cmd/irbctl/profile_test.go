package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const loadTests = "../../fixtures/profile/"

// sharedServer is a sweep of a server that its requests share evenly, each
// taking 1 s alone: N in flight take N s each.
const sharedServer = `gpu,concurrency,ttft_ms,tpot_ms,prompt_tokens,output_tokens
x,1,200,200,100,5
x,2,400,400,100,5
x,4,800,800,100,5
x,8,1600,1600,100,5
`

// engineFrom turns the commented lines that profile proposes for an engine into
// one.
func engineFrom(t *testing.T, profiles string) string {
	t.Helper()
	_, proposal, found := strings.Cut(profiles, "# For [[engine]]")
	_, lines, _ := strings.Cut(proposal, "\n")
	if !found {
		t.Fatalf("no proposal for an engine in\n%s", profiles)
	}
	return "\n[[engine]]\nname = \"e\"\nregion = \"r\"\nendpoints = [\"http://10.0.0.1:8000\"]\n" + strings.ReplaceAll("\n"+lines, "\n# ", "\n")
}

// TestProfileSolves: what profile writes, with the engine that it proposes, is
// solved. At 0.5 of 1 req/s a request finds one other, so that 100 + 5 tokens
// take 400 + 5 x 400 = 2400 ms, and 10 ms of round trip.
func TestProfileSolves(t *testing.T) {
	dir := newKeys(t)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("sweep.csv", sharedServer)
	write("demand.csv", "cluster,rps,prompt_tokens,output_tokens\nc,0.5,100,5\n")
	write("latency.csv", "rtt_ms,r\nc,10\n")
	var r run
	r.expect(t, exitOK, "max utilization 75.0 %: a request takes 4800 ms there, twice as long as at the knee", "profile", filepath.Join(dir, "sweep.csv"))
	if !strings.HasPrefix(r.stdout, "# Engine profiles, made by irbctl profile at 2026-08-01T12:00:00Z.\n") {
		t.Fatalf("the profile is not alone on standard output:\n%s", r.stdout)
	}
	write("engines.toml", r.stdout+engineFrom(t, r.stdout))
	solve := []string{"solve", dir, "-o", filepath.Join(dir, "weights.toml"), "--key", filepath.Join(dir, "irb.key")}
	r.expect(t, exitOK, "mean latency 2410 ms over 0.5 req/s served", solve...)
	if strings.Contains(r.stderr, "warning") {
		t.Errorf("solve warns:\n%s", r.stderr)
	}
	// 0.75 is the max utilization that profile proposed.
	write("demand.csv", "cluster,rps,prompt_tokens,output_tokens\nc,0.8,100,5\n")
	r.expect(t, exitInfeasible, "0.75", solve...)
}

// TestProfileFormats: the profile of every tool's results is read by solve.
func TestProfileFormats(t *testing.T) {
	stages, err := filepath.Glob(loadTests + "inference-perf/*.json")
	if err != nil {
		t.Fatal(err)
	}
	dir := newKeys(t)
	for name, files := range map[string][]string{
		"vllm":           {loadTests + "vllm.jsonl"},
		"guidellm":       {loadTests + "guidellm.json"},
		"aiperf":         {loadTests + "aiperf-c1.json", loadTests + "aiperf-c16.json", loadTests + "aiperf-c64.json"},
		"inference-perf": stages,
		"prometheus":     {loadTests + "prometheus.json"},
		"csv":            {loadTests + "sweep.csv", "--select", "tp=1"},
	} {
		t.Run(name, func(t *testing.T) {
			fleet := t.TempDir()
			engines := filepath.Join(fleet, "engines.toml")
			var r run
			r.expect(t, exitOK, "1 configuration: 1 fitted, 0 refused", append([]string{"profile", "--name", "p", "-o", engines}, files...)...)
			text, err := os.ReadFile(engines)
			if err != nil {
				t.Fatal(err)
			}
			for file, content := range map[string]string{
				"engines.toml": string(text) + engineFrom(t, string(text)),
				"demand.csv":   "cluster,rps\nc,1\n",
				"latency.csv":  "rtt_ms,r\nc,10\n",
			} {
				if err := os.WriteFile(filepath.Join(fleet, file), []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			r.expect(t, exitOK, "over 1 req/s served", "solve", fleet, "-o", filepath.Join(fleet, "weights.toml"), "--key", filepath.Join(dir, "irb.key"))
		})
	}
}

func TestProfileFlags(t *testing.T) {
	sweep := loadTests + "sweep.csv"
	var r run
	r.expect(t, exitOK, "x1-tp2   1000+101  1 of 1   1", "profile", sweep, "--list")
	if strings.Contains(r.stdout+r.stderr, "[profile.") {
		t.Errorf("--list prints profiles:\n%s", r.stdout)
	}
	r.expect(t, exitUsage, "--list writes nothing", "profile", sweep, "--list", "-o", "x")
	r.expect(t, exitUsage, `--select: no run has tp = "4", want one of "1", "2"`, "profile", sweep, "--select", "tp=4")
	r.expect(t, exitUsage, `--select is "tp", want KEY=VALUE`, "profile", sweep, "--select", "tp")
	r.expect(t, exitUsage, "--name and --svg take one profile, there are 2", "profile", sweep, "--name", "x")
	r.expect(t, exitUsage, `--name is "a/b"`, "profile", sweep, "--name", "a/b")
	r.expect(t, exitUsage, "--ttft-limit-ms is NaN, want a number >= 0", "profile", sweep, "--ttft-limit-ms", "NaN")
	r.expect(t, exitUsage, "has no column \"gpus\"", "profile", sweep, "--by", "gpus")
	r.expect(t, exitUsage, "requires at least 1 arg", "profile")
	r.stdin = sharedServer
	r.expect(t, exitOK, "# from stdin, sha256 ", "profile", "-")
	r.expect(t, exitOK, "# max_utilization = 0.5  # the TTFT and TBOT limits hold up to there", "profile", "-", "--ttft-limit-ms", "400")
	r.stdin = strings.ReplaceAll(strings.ReplaceAll(sharedServer, ",100,5", ""), ",prompt_tokens,output_tokens", "")
	r.expect(t, exitUsage, "stdin:1: has no column prompt_tokens (or isl), want one, or --prompt-tokens", "profile", "-")
	r.expect(t, exitOK, "prompt_tokens = 100\noutput_tokens = 5\n", "profile", "-", "--prompt-tokens", "100", "--output-tokens", "5")
}

func TestProfileJSON(t *testing.T) {
	var r run
	r.expect(t, exitOK, "", "profile", loadTests+"sweep.csv", "--json")
	var report struct {
		Sources []struct {
			File   string   `json:"file"`
			SHA256 string   `json:"sha256"`
			By     []string `json:"by"`
		} `json:"sources"`
		Profiles []struct {
			Name     string  `json:"name"`
			Refusal  string  `json:"refusal"`
			Capacity float64 `json:"capacity_rps"`
			Points   []struct {
				Line int `json:"line"`
			} `json:"points"`
		} `json:"profiles"`
	}
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		t.Fatalf("%v\n%s", err, r.stdout)
	}
	if len(report.Sources) != 1 || len(report.Sources[0].SHA256) != 64 || strings.Join(report.Sources[0].By, " ") != "gpu tp" {
		t.Errorf("sources are %+v", report.Sources)
	}
	// 64 in flight, 300 ms and 100 gaps of 41 ms: 64 / 4.4 s.
	if len(report.Profiles) != 2 || report.Profiles[0].Capacity != 14.5455 || len(report.Profiles[0].Points) != 5 || report.Profiles[0].Points[2].Line != 5 || report.Profiles[1].Refusal == "" {
		t.Errorf("profiles are %+v", report.Profiles)
	}
}

// TestProfileFaultsLeaveNoFile: a refusal writes nothing and keeps what there
// was.
func TestProfileFaultsLeaveNoFile(t *testing.T) {
	dir := t.TempDir()
	out, svg := filepath.Join(dir, "p.toml"), filepath.Join(dir, "p.svg")
	if err := os.WriteFile(out, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	sweep := loadTests + "sweep.csv"
	var r run
	r.expect(t, exitUsage, `irbctl: profile "x1": a single level of load (concurrency 1)`, "profile", sweep, "--select", "tp=2", "-o", out, "--svg", svg)
	r.expect(t, exitUsage, "no such file", "profile", sweep, dir+"/none.csv", "-o", out)
	r.expect(t, exitUsage, "--svg "+dir+"/none/x.svg: there is no folder", "profile", sweep, "--select", "tp=1", "-o", out, "--svg", dir+"/none/x.svg")
	r.expect(t, exitUsage, "is a directory", "profile", dir, "-o", out)
	r.stdin = "{"
	r.expect(t, exitUsage, "stdin:1: is not JSON", "profile", "-", "-o", out)
	if data, err := os.ReadFile(out); err != nil || string(data) != "old" {
		t.Errorf("the file is %q (%v), want the old one", data, err)
	}
	if _, err := os.Stat(svg); err == nil {
		t.Error("a picture of a refused profile was written")
	}
	r.expect(t, exitOK, "wrote "+svg, "profile", sweep, "--select", "tp=1", "-o", out, "--svg", svg)
	data, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(data), "[profile.x1]\n") {
		t.Errorf("the file is %q (%v), want a profile", data, err)
	}
}

// workSweep is a sweep of a GPU at three request shapes whose capacity is
// 9000/(p + r o): 1, 32 and 64 in flight, a tenth of each latency TTFT.
func workSweep(gpu string, r float64) string {
	var b strings.Builder
	for _, shape := range [][2]float64{{1000, 500}, {300, 900}, {3000, 500}} {
		capacity := 9000 / (shape[0] + r*shape[1])
		for _, n := range []float64{1, 32, 64} {
			s := max(4, n) / capacity // 1 in flight: a quarter of capacity
			fmt.Fprintf(&b, "%s,%v,%v,%v,%v,%v\n", gpu, n, shape[0], shape[1], 100*s, 900*s/(shape[1]-1))
		}
	}
	return b.String()
}

// TestProfileWork: the estimate of output_token_work comes with its error, and
// for several configurations with the median.
func TestProfileWork(t *testing.T) {
	const head = "gpu,concurrency,isl,osl,ttft_ms,tpot_ms\n"
	r := run{stdin: head + workSweep("x", 3)}
	r.expect(t, exitOK, "\noutput_token_work = 3 from 3 request shapes: as one number it is off by up to 0.0 % of capacity; 4 would be off by up to 8.1 %\n", "profile", "-", "--list")
	r.stdin += workSweep("y", 5) + workSweep("z", 2)
	r.expect(t, exitOK, "\ny: output_token_work = 5 from 3 request shapes", "profile", "-", "--list")
	r.expect(t, exitOK, "\noutput_token_work of 3 configurations: median 3, from 2 to 5\n", "profile", "-", "--list")
	r.expect(t, exitOK, "\n# x: output_token_work = 3 from 3", "profile", "-")
}
