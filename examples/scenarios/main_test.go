package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-agents", "0"}, {"-rps", "NaN"}, {"-only", "none"}, {"-x"}} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, errs.String())
		}
	}
}

// TestScenariosPlay: every scenario plays to its end and tells figures; how
// good they are depends on the machine, so the tests of agent/guard judge that
// in virtual time.
func TestScenariosPlay(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"-rps", "20", "-unit", "20ms"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	for _, s := range scenarios() {
		if !strings.Contains(out.String(), s.name+": ") {
			t.Errorf("nothing of %q in\n%s", s.name, out.String())
		}
	}
}
