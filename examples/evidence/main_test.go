package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"-shorten", "0.5"}, {"-nonsense"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, errs.String())
		}
	}
}

// All tables are there; what they say takes the whole run.
func TestTables(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-examples", "..", "-shorten", "40"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	for _, want := range []string{"### Follow the sun", "### Conversations", "### Overload with failover", "### Closed loop",
		"| irb |", "| legacy, best", "| profiles 30 % off |", "| from s |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// The scenarios that are run by hand can be read.
func TestScenariosByHand(t *testing.T) {
	for _, s := range []study{
		{"Oscillation", "two-regions-queueing", "evidence/oscillation.toml"},
		{"Lost endpoint", "evidence/conversations", "evidence/conversations/lost-endpoint.toml"},
	} {
		e := evidence{folder: "..", shorten: 1}
		if _, err := e.load(s); err != nil {
			t.Errorf("%s: %v", s.title, err)
		}
	}
}

// What the stand-in engine is compared by: one request alone takes the unloaded
// TTFT, and one beside another takes longer.
func TestInVirtualTime(t *testing.T) {
	p, err := standinProfile()
	if err != nil {
		t.Fatal(err)
	}
	alone, err := inVirtualTime(p, []seen{{at: 1}, {at: 100}})
	if err != nil || math.Abs(alone-0.2) > 1e-9 {
		t.Errorf("%v s alone, %v, want 0.2", alone, err)
	}
	together, err := inVirtualTime(p, []seen{{at: 1}, {at: 1}})
	if err != nil || together <= alone {
		t.Errorf("%v s together, %v, want more than %v", together, err, alone)
	}
}
