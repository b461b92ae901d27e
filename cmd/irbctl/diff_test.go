package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	dir := newKeys(t)
	key := filepath.Join(dir, "irb.key")
	old, now := filepath.Join(dir, "old.toml"), filepath.Join(dir, "new.toml")
	grown := t.TempDir()
	if err := os.CopyFS(grown, os.DirFS(twoRegions)); err != nil {
		t.Fatal(err)
	}
	demand, err := os.ReadFile(filepath.Join(grown, "demand.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(grown, "demand.toml"), []byte(strings.Replace(string(demand), "rps = 120", "rps = 130", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	var r run
	r.expect(t, exitOK, "", "solve", twoRegions, "-o", old, "--key", key)
	r.expect(t, exitOK, "", "solve", grown, "-o", now, "--key", key, "--previous", old)

	// us-east sends 30 of 130 instead of 20 of 120 to c-1: 6.41 % of its keys.
	r.expect(t, exitOK, "ok: 4.9 % of the traffic moves (8.33333 of 170 req/s), mean latency 3162 -> 3165 ms (+3.243)", "diff", old, now)
	r.expect(t, exitFailure, "4.902 % of the traffic moves, --max-move is 4 %", "diff", old, now, "--max-move", "4%")
	r.expect(t, exitFailure, "TOO MUCH: 4.9 %", "diff", old, now, "--max-move", "0.04", "--format", "markdown")
	if !strings.Contains(r.stdout, "| us-east/default | 120 | 130 |") {
		t.Errorf("markdown is\n%s", r.stdout)
	}
	r.expect(t, exitOK, "no weight and no engine differs", "diff", old, old)
	r.expect(t, exitUsage, "--html writes a page", "diff", old, old, "--html", "-", "--format", "json")
	r.expect(t, exitUsage, `is of fleet "follow-the-sun"`, "diff", old, solved(t, followTheSun))
	r.expect(t, exitOK, "mostly by demand", "diff", old, now, "--old-inputs", twoRegions, "--new-inputs", grown)
	r.expect(t, exitOK, "", "diff", old, now, "--old-inputs", twoRegions, "--new-inputs", grown, "--format", "json")
	var tree struct {
		Verdict  string
		Old, New struct {
			Objective float64 `json:"objective_ms_rps"`
		}
		Attribution struct {
			Groups []struct {
				Group     string
				Objective float64 `json:"objective_ms_rps"`
			}
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &tree); err != nil {
		t.Fatal(err)
	}
	change := tree.New.Objective - tree.Old.Objective
	sum := 0.0
	for _, g := range tree.Attribution.Groups {
		sum += g.Objective
	}
	if math.Abs(sum-change) > 1e-6 || change == 0 {
		t.Errorf("the parts sum to %v, the files differ by %v", sum, change)
	}

	r.expect(t, exitOK, "OLD states an objective of 505900", "diff", old, now, "--old-inputs", grown, "--new-inputs", grown)
	r.expect(t, exitUsage, "give --old-inputs and --new-inputs", "diff", old, now, "--old-inputs", grown)
	r.expect(t, exitUsage, "want a share like 20%", "diff", old, now, "--max-move", "120%")
	r.expect(t, exitUsage, "nowhere.toml", "diff", old, "nowhere.toml")
	r.expect(t, exitUsage, `--format is "xml"`, "diff", old, now, "--format", "xml")
}
