package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-agents", "0"}, {"-rps", "NaN"}, {"-only", "none"}, {"-real", "-only", "none"}, {"-x"}} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, errs.String())
		}
	}
}

// TestScenariosPlay: every scenario plays to its end in real time and tells
// figures; how good they are depends on the machine, so those in virtual time are
// judged.
func TestScenariosPlay(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"-real", "-rps", "20", "-unit", "20ms"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	for _, s := range scenarios() {
		if !strings.Contains(out.String(), s.name+": ") {
			t.Errorf("nothing of %q in\n%s", s.name, out.String())
		}
	}
}

// TestTable: what is wanted stands beside what was measured, for all setups.
func TestTable(t *testing.T) {
	if testing.Short() {
		t.Skip("plays 16 setups")
	}
	var out, errs bytes.Buffer
	if code := run([]string{"-only", "forecast"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	for _, want := range []string{
		"forecast: 1.3 times the forecast, within capacity; five engines\n",
		"forecast: 1.3 times the forecast, within capacity; one engine and two fallbacks\n",
		"requests refused or lost 0 0 0 0 0 0 0 0 0",
		"req/s 20 20 500 500 20 20 500 500",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
