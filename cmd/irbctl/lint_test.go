package main

import (
	"encoding/json"
	"testing"
)

func TestLint(t *testing.T) {
	var r run
	r.expect(t, exitOK, "nothing to remark", "lint", twoRegions)
	r.expect(t, exitFailure, "only engine eu-h200 may serve it; if it is lost, every other engine would break the residency", "lint", followTheSun)
	r.expect(t, exitFailure, "irbctl: 1 problem\n", "lint", twoRegions, "--period", "24h")
	r.expect(t, exitUsage, "nowhere", "lint", "nowhere")
	r.expect(t, exitUsage, "--period is -1h0m0s, want a duration above 0", "lint", twoRegions, "--period", "-1h")
	r.expect(t, exitUsage, "--expires-in is 0s, want a duration above 0", "lint", twoRegions, "--expires-in", "0s")
	r.expect(t, exitOK, "[]", "lint", twoRegions, "--json")
	r.expect(t, exitFailure, "", "lint", followTheSun, "--json")
	var found []struct {
		Code    string
		Problem bool
	}
	if err := json.Unmarshal([]byte(r.stdout), &found); err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || found[0].Code != "residency-no-spare" || !found[0].Problem {
		t.Errorf("found %+v", found)
	}
}
