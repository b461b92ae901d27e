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
	scenario := filepath.Join(t.TempDir(), "s.toml")
	text := "duration = \"2m\"\nwarmup = \"30s\"\npolicies = [\"nearest\", \"irb\"]\n[irb]\nevery = \"1m\"\n"
	if err := os.WriteFile(scenario, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	fleet := "../../examples/two-regions-queueing"
	bad := filepath.Join(t.TempDir(), "bad.toml")
	if err := os.WriteFile(bad, []byte("agents = 0\nseed = \"x\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(trace, []byte("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:04.25,3180,8\n2023-11-16 18:18:03,4808,10\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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
