package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSimulate(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const fleet, azure = "../../examples/two-regions-queueing", "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	scenario := file("s.toml", "duration = \"2m\"\nwarmup = \"30s\"\npolicies = [\"nearest\", \"irb\"]\n[irb]\nevery = \"1m\"\n")
	bad := file("bad.toml", "agents = 0\nseed = \"x\"\n")
	trace := file("t.csv", azure+"2023-11-16 18:17:04.25,3180,8\n2023-11-16 18:18:03,4808,10\n")
	long := file("t3.csv", azure+"2023-11-16 18:17:00,10,8\n2023-11-16 18:18:00,10,8\n2023-11-16 18:20:00,10,8\n")
	surge := file("surge.toml", "[[event]]\nkind = \"demand\"\nat = \"1m\"\nfactor = 2\n")
	stranger := file("stranger.toml", "[[demand]]\nat = \"1m\"\nfile = \"d.csv\"\n")
	file("d.csv", "cluster,rps\nus-east,9\nus-west,5\n")
	eastOnly := file("e.csv", "cluster,rps\nus-east,9\n")
	run := func(args ...string) (code int, out, errs string) {
		var stdout, stderr strings.Builder
		a := &app{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, getenv: func(string) string { return "" }, now: func() time.Time { return testNow }}
		code = a.execute(append([]string{"simulate"}, args...))
		return code, stdout.String(), stderr.String()
	}
	tests := []struct {
		name string
		args []string
		code int
		want []string // in the output of either kind
	}{
		{"table", []string{fleet, "--scenario", scenario}, 0, []string{"policy", "nearest", "irb", "goodput"}},
		{"trace", []string{fleet, "--scenario", scenario, "--trace", trace, "--only", "irb"}, 0, []string{"irb: 1 requests"}},
		{"no fleet", nil, 2, []string{"irbctl: "}},
		{"bad scenario", []string{fleet, "--scenario", bad}, 2, []string{"bad.toml:1: agents is 0", `bad.toml:2: seed is "x"`}},
		{"no such policy", []string{fleet, "--only", "magic"}, 2, []string{`policy is "magic", want one of`}},
		{"no such scenario", []string{fleet, "--scenario", "none.toml"}, 2, []string{"none.toml"}},
		{"no such trace", []string{fleet, "--trace", "none.csv"}, 2, []string{"none.csv"}},
		{"policy twice", []string{fleet, "--only", "irb", "--only", "irb"}, 2, []string{`--only has "irb" twice`}},
		{"page into no folder", []string{fleet, "--html", "nowhere/p.html"}, 2, []string{"--html nowhere/p.html: there is no folder nowhere"}},
		{"page is a folder", []string{fleet, "--html", t.TempDir()}, 2, []string{"is not a regular file"}},
		{"trace within the warm-up", []string{fleet, "--trace", trace}, 2, []string{"t.csv: ends after 59 s, want more than the warm-up of 300 s"}},
		{"trace beyond the end", []string{fleet, "--scenario", scenario, "--trace", long, "--only", "nearest"}, 0,
			[]string{"t3.csv: lasts 180 s, only 2 of its 3 requests come in the 120 s that are simulated", "nearest: 1 requests"}},
		{"demand over time and a trace", []string{fleet, "--scenario", surge, "--trace", trace}, 2, []string{"t.csv: the scenario changes the demand over time"}},
		{"demand of a stranger", []string{fleet, "--scenario", stranger, "--demand", eastOnly}, 2, []string{"d.csv:3: source us-west/default is not in the demand of the fleet"}},
		{"parallel", []string{fleet, "--parallel", "0"}, 2, []string{"--parallel is 0, want at least 1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, out, errs := run(tt.args...)
			if code != tt.code {
				t.Fatalf("exit code %d, want %d: %s", code, tt.code, errs)
			}
			for _, want := range tt.want {
				if !strings.Contains(out+errs, want) {
					t.Errorf("no %q in\n%s%s", want, out, errs)
				}
			}
		})
	}
	written := filepath.Join(t.TempDir(), "p.html")
	code, out, errs := run(fleet, "--scenario", scenario, "--json", "--seed", "5", "--html", written)
	if html, err := os.ReadFile(written); err != nil || !strings.Contains(string(html), "Share of each engine, irb") {
		t.Errorf("no page: %v", err)
	}
	var results []struct {
		Policy  string
		Offered int
		Bins    []struct{ Sent []int }
	}
	if err := json.Unmarshal([]byte(out), &results); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v: %s", code, err, errs)
	}
	if len(results) != 2 || results[0].Policy != "nearest" || results[0].Offered == 0 || len(results[1].Bins) != 12 {
		t.Errorf("results %+v", results)
	}
	if _, again, _ := run(fleet, "--scenario", scenario, "--json", "--seed", "5"); again != out {
		t.Error("the same seed gives other bytes")
	}
}
