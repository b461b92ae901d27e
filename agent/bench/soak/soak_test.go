package soak

import (
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// TestSoak is the soak of `go run ./agent/bench -soak` cut short: the same
// agents, traffic, restarts, reloads and checks.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about 10 s")
	}
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	program := filepath.Join(t.TempDir(), "irb-agent")
	build := exec.Command("go", "build", "-o", program, "github.com/irb-project/irb/cmd/irb-agent")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	report, err := Run(t.Context(), Options{
		Program: program, Folder: t.TempDir(), Requests: 4000, MaxBodyBytes: 2 << 20, ReloadEvery: 250 * time.Millisecond, Seed: 1,
	})
	if report != nil {
		t.Log(report)
	}
	if err != nil {
		t.Fatal(err)
	}
	if report.Served[whole] == 0 || report.Served[streamed] == 0 || report.Left == 0 || report.Reloads == 0 {
		t.Error("a kind of traffic, or reloads, did not happen")
	}
}

// What the soak would call lost must be told apart from what is right.
func TestReadStream(t *testing.T) {
	good := streamText()
	broken := iotest.ErrReader(io.ErrUnexpectedEOF)
	tests := []struct {
		name string
		body io.Reader
		want error
	}{
		{"whole", strings.NewReader(good), nil},
		{"clean end before done", strings.NewReader(strings.TrimSuffix(good, done)), errCleanEnd},
		{"clean end within a frame", strings.NewReader(good[:100]), errCleanEnd},
		{"broken off", io.MultiReader(strings.NewReader(good[:100]), broken), io.ErrUnexpectedEOF},
		{"altered", strings.NewReader(strings.Replace(good, "token 7", "token 8", 1)), errAltered},
		{"altered, then broken off", io.MultiReader(strings.NewReader("x"), broken), errAltered},
		{"goes on", strings.NewReader(good + "x"), errAltered},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := readStream(tt.body); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// A check that never fails finds nothing.
func TestVerdictFindsLeaks(t *testing.T) {
	rest := Remains{Agent: "a", Goroutines: 20, Files: 10}
	tests := []struct {
		after Remains
		want  string
	}{
		{Remains{Goroutines: 20 + slack, Files: 10 + slack}, ""},
		{Remains{Goroutines: 21 + slack}, "goroutines"},
		{Remains{Files: 11 + slack}, "descriptors"},
		{Remains{InFlight: 1}, "irb_requests_in_flight is 1"},
		{Remains{BodyBytes: 4096}, "irb_request_body_bytes is 4096"},
	}
	for _, tt := range tests {
		err := tt.after.leak(rest)
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", tt.after, err, tt.want)
		}
	}
	s := &soak{report: &Report{}}
	s.count(&ask{id: "x", kind: whole}, errCleanEnd)
	if err := s.verdict(); err == nil || !strings.Contains(err.Error(), "1 requests were lost") {
		t.Errorf("got %v", err)
	}
}
