package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/irb-project/irb/solve/lp"
)

const twoRegions = "../../examples/two-regions"

// newKeys returns a folder with a key pair, irb.key and irb.pub.
func newKeys(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var r run
	r.expect(t, exitOK, "", "keygen", "-o", filepath.Join(dir, "irb"))
	return dir
}

func TestSolveVerifyExplain(t *testing.T) {
	dir := newKeys(t)
	weights, key, pub := filepath.Join(dir, "weights.toml"), filepath.Join(dir, "irb.key"), filepath.Join(dir, "irb.pub")
	var r run
	r.expect(t, exitOK, "a-1 83.3 %, c-1 16.7 %", "solve", twoRegions, "-o", weights, "--key", key)
	r.expect(t, exitOK, "objective 505900 ms x req/s", "verify", weights, "--pub", pub, "--inputs", twoRegions)
	r.expect(t, exitVerify, "engines.toml: its digest begins with", "verify", weights, "--pub", pub, "--inputs", twoRegions+"-queueing")
	r.expect(t, exitOK, "a-1 is at its limit (100 of 100 req/s); one more request from us-east costs 3217 ms at either: a-1 3154 unloaded + 63 limit price, c-1 3217 unloaded.",
		"explain", weights)
	r.expect(t, exitOK, "us-west", "explain", weights, "--cluster", "us-west")
	if strings.Contains(r.stdout, "us-east") {
		t.Errorf("--cluster us-west shows us-east:\n%s", r.stdout)
	}
	r.expect(t, exitUsage, `there is no cluster "nowhere" (there are: us-east, us-west)`, "explain", weights, "--cluster", "nowhere")
	r.expect(t, exitUsage, `--format is "xml"`, "explain", weights, "--format", "xml")
	r.expect(t, exitOK, "", "explain", weights, "--format", "json")
	var tree struct {
		Sources []struct {
			Cluster string `json:"cluster"`
			Weights []struct {
				RPS float64 `json:"rps"`
			} `json:"weight"`
		} `json:"source"`
	}
	if err := json.Unmarshal([]byte(r.stdout), &tree); err != nil {
		t.Fatal(err)
	}
	if len(tree.Sources) != 2 || tree.Sources[0].Cluster != "us-east" || len(tree.Sources[0].Weights) != 2 {
		t.Errorf("JSON says %+v", tree)
	}
}

func TestSolveToStandardOutput(t *testing.T) {
	dir := newKeys(t)
	var r run
	if code := r.irbctl("solve", twoRegions, "-o", "-", "--key", filepath.Join(dir, "irb.key")); code != exitOK {
		t.Fatalf("exit %d: %s", code, r.stderr)
	}
	if !strings.HasPrefix(r.stdout, "# irb routing policy") || !strings.Contains(r.stderr, "mean latency") {
		t.Errorf("the weight file is not alone on standard output:\n%.200s\n%s", r.stdout, r.stderr)
	}
	piped := run{stdin: r.stdout}
	piped.expect(t, exitOK, "ok      signature", "verify", "-", "--pub", filepath.Join(dir, "irb.pub"))
}

func TestSolveWithPrevious(t *testing.T) {
	dir := newKeys(t)
	weights, key, pub := filepath.Join(dir, "weights.toml"), filepath.Join(dir, "irb.key"), filepath.Join(dir, "irb.pub")
	next := filepath.Join(dir, "next.toml")
	var r run
	r.expect(t, exitOK, "", "solve", twoRegions, "-o", weights, "--key", key)
	r.expect(t, exitOK, "0.0 % of the traffic moves", "solve", twoRegions, "-o", next, "--key", key, "--previous", weights)
	r.expect(t, exitOK, "ok      proof", "verify", next, "--pub", pub, "--inputs", twoRegions, "--previous", weights)
	r.expect(t, exitVerify, "name it, as leaving its engines had a price", "verify", next, "--pub", pub, "--inputs", twoRegions)
	r.expect(t, exitVerify, "no file precedes the snapshot", "verify", weights, "--pub", pub, "--inputs", twoRegions, "--previous", next)
	r.expect(t, exitUsage, `is of fleet "two-regions"`, "solve", twoRegions+"-queueing", "-o", next, "--key", key, "--previous", weights)

	foreign := newKeys(t)
	r.expect(t, exitVerify, "--previous-pub", "solve", twoRegions, "-o", next, "--key", filepath.Join(foreign, "irb.key"), "--previous", weights)
	r.expect(t, exitOK, "", "solve", twoRegions, "-o", next, "--key", filepath.Join(foreign, "irb.key"), "--previous", weights, "--previous-pub", pub)
}

func TestSolveJudge(t *testing.T) {
	dir := newKeys(t)
	var r run
	for _, fleet := range []string{twoRegions, twoRegions + "-queueing", "../../examples/follow-the-sun"} {
		args := []string{"solve", fleet, "-o", filepath.Join(dir, "weights.toml"), "--key", filepath.Join(dir, "irb.key"), "--judge"}
		if lp.Available {
			r.expect(t, exitOK, "judge: CLP agrees", args...)
		} else {
			r.expect(t, exitFailure, "built without", args...)
		}
	}
}

// The judge follows where every engine is filled to its limit and the rest is
// shed: served 44.1693 of 50 req/s is exactly the sum of the limits.
func TestJudgeOfAFullFleet(t *testing.T) {
	if !lp.Available {
		t.Skip("built without CLP")
	}
	dir := newKeys(t)
	policy, err := os.ReadFile(filepath.Join(followTheSun, "policy.toml"))
	if err != nil {
		t.Fatal(err)
	}
	shed, demand := filepath.Join(dir, "policy.toml"), filepath.Join(dir, "demand.csv")
	if err := os.WriteFile(shed, append([]byte("shed = \"allow\"\n"), policy...), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(demand, []byte("cluster,class,rps\nWest Europe,chat,50\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var r run
	r.expect(t, exitOK, "judge: CLP agrees", "solve", followTheSun, "--demand", demand, "--policy", shed,
		"-o", filepath.Join(dir, "weights.toml"), "--key", filepath.Join(dir, "irb.key"), "--judge")
}

// A file that agents take for one from the future neither verifies nor leads.
func TestFutureSequence(t *testing.T) {
	dir := newKeys(t)
	weights, key, pub := filepath.Join(dir, "weights.toml"), filepath.Join(dir, "irb.key"), filepath.Join(dir, "irb.pub")
	r := run{now: testNow.Add(1000 * time.Hour)}
	r.expect(t, exitOK, "", "solve", twoRegions, "-o", weights, "--key", key)
	r.now = testNow
	r.expect(t, exitVerify, "ahead of the clock", "verify", weights, "--pub", pub)
	r.expect(t, exitUsage, "ahead of the clock", "solve", twoRegions, "-o", weights, "--key", key, "--previous", weights)
}

func TestKeyMistakes(t *testing.T) {
	dir := newKeys(t)
	weights, key, pub := filepath.Join(dir, "weights.toml"), filepath.Join(dir, "irb.key"), filepath.Join(dir, "irb.pub")
	var r run
	r.expect(t, exitUsage, "a public key, want a secret key", "solve", twoRegions, "-o", weights, "--key", pub)
	r.expect(t, exitUsage, "given twice", "solve", twoRegions, "-o", weights, "--key", key, "--key", key)
	r.expect(t, exitOK, "", "solve", twoRegions, "-o", weights, "--key", key)
	r.expect(t, exitUsage, "a secret key, want a public key", "verify", weights, "--pub", key)
}

func TestSolveSplit(t *testing.T) {
	dir := newKeys(t)
	weights, key, pub := filepath.Join(dir, "weights.toml"), filepath.Join(dir, "irb.key"), filepath.Join(dir, "irb.pub")
	var r run
	r.expect(t, exitOK, "", "solve", twoRegions, "-o", weights, "--key", key, "--split", filepath.Join(dir, "new", "parts"))
	part := filepath.Join(dir, "new", "parts", "us-west.toml")
	r.expect(t, exitOK, "1 source, 1 weight", "verify", part, "--pub", pub)
	r.expect(t, exitOK, "us-west/default", "explain", part)
	r.expect(t, exitVerify, "the proof is in the whole file", "verify", part, "--pub", pub, "--inputs", twoRegions)
	r.expect(t, exitOK, "2 sources, 3 weights", "verify", weights, "--pub", pub, "--inputs", twoRegions)
}

// Whatever the fault, the exit code says its kind, the message says where, and
// no file is left.
func TestSolveFaultsLeaveNoFile(t *testing.T) {
	dir := newKeys(t)
	key := filepath.Join(dir, "irb.key")
	fleet := func(file, content string) string {
		folder := t.TempDir()
		if err := os.CopyFS(folder, os.DirFS(twoRegions)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, file)
		if content == "" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			return folder
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return folder
	}
	for _, test := range []struct {
		name, folder string
		flags        []string
		code         int
		want         string
	}{
		{"no folder", filepath.Join(dir, "nowhere"), nil, exitUsage, "nowhere"},
		{"missing file", fleet("engines.toml", ""), nil, exitUsage, "engines.toml"},
		{"unknown key", fleet("demand.toml", "[[demand]]\ncluster = \"us-east\"\nrpss = 3\n"), nil, exitUsage, `demand.toml:3: unknown key "rpss"`},
		{"negative", fleet("demand.toml", "[[demand]]\ncluster = \"us-east\"\nrps = -3\n"), nil, exitUsage, "demand.toml:3: rps is -3, want"},
		{"infeasible", fleet("demand.toml", "[[demand]]\ncluster = \"us-east\"\nrps = 500\n"), nil, exitInfeasible, "infeasible: us-east/default demands 500 req/s"},
		{"no demand", fleet("demand.toml", "[[demand]]\ncluster = \"us-east\"\nrps = 0\n"), nil, exitUsage, "nothing to plan"},
		{"a limit that no load keeps", fleet("policy.toml", "ttft_limit_ms = 10\n"), nil, exitUsage, `engine "a-1": no utilization above 0 keeps ttft_limit_ms 10`},
		{"bad expiry", twoRegions, []string{"--expires-in", "-1h"}, exitUsage, "--expires-in is -1h0m0s"},
		{"bad work", twoRegions, []string{"--work", "triple"}, exitUsage, `--work is "triple"`},
		{"bad limit of pairs", twoRegions, []string{"--split-pairs-max", "-1"}, exitUsage, "--split-pairs-max is -1, want >= 0"},
		{"no such previous", twoRegions, []string{"--previous", "nowhere.toml"}, exitUsage, "nowhere.toml"},
	} {
		t.Run(test.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "weights.toml")
			var r run
			r.expect(t, test.code, test.want, append([]string{"solve", test.folder, "-o", out, "--key", key}, test.flags...)...)
			if entries, err := os.ReadDir(filepath.Dir(out)); err != nil || len(entries) > 0 {
				t.Errorf("files are left: %v %v", entries, err)
			}
		})
	}
}

func TestUnknownCommandIsUsage(t *testing.T) {
	var r run
	r.expect(t, exitUsage, "unknown command", "slove")
	r.expect(t, exitUsage, "--nope", "solve", "--nope")
	r.expect(t, exitOK, "CLP", "version")
}

func TestExpiryAndSequenceFollowTheClock(t *testing.T) {
	dir := newKeys(t)
	weights := filepath.Join(dir, "weights.toml")
	r := run{now: testNow.Add(time.Hour)}
	r.expect(t, exitOK, "", "solve", twoRegions, "-o", weights, "--key", filepath.Join(dir, "irb.key"), "--expires-in", "30m", "--author", "me", "--reason", "a test")
	r.now = testNow.Add(89 * time.Minute)
	r.expect(t, exitOK, "ok      expiry", "verify", weights, "--pub", filepath.Join(dir, "irb.pub"))
	r.now = testNow.Add(91 * time.Minute)
	r.expect(t, exitVerify, "expired", "verify", weights, "--pub", filepath.Join(dir, "irb.pub"))
	r.expect(t, exitOK, "by me: a test", "explain", weights)
}
