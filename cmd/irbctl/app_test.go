package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// testNow is the clock of tests.
var testNow = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// run is one command line run in process.
type run struct {
	env    map[string]string
	stdin  string
	now    time.Time // zero: testNow
	stdout string    // what came out
	stderr string
}

// irbctl runs a command line and returns its exit code.
func (r *run) irbctl(args ...string) int {
	var stdout, stderr bytes.Buffer
	now := r.now
	if now.IsZero() {
		now = testNow
	}
	a := &app{
		stdin:  strings.NewReader(r.stdin),
		stdout: &stdout,
		stderr: &stderr,
		getenv: func(key string) string { return r.env[key] },
		now:    func() time.Time { return now },
	}
	code := a.execute(args)
	r.stdout, r.stderr = stdout.String(), stderr.String()
	return code
}

// expect runs a command line and demands its exit code and a part of what it
// prints.
func (r *run) expect(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	got := r.irbctl(args...)
	if got != code || !strings.Contains(r.stdout+r.stderr, want) {
		t.Errorf("irbctl %s: exit %d, want %d and %q in\n%s%s", strings.Join(args, " "), got, code, want, r.stdout, r.stderr)
	}
}

// runMinisign runs the standard program, with stdin for the password.
func runMinisign(t *testing.T, stdin string, args ...string) {
	t.Helper()
	path, err := exec.LookPath("minisign")
	if err != nil {
		t.Fatal("the minisign program is not installed: run make setup")
	}
	cmd := exec.Command(path, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("minisign %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
