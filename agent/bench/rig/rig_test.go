package rig

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
	dto "github.com/prometheus/client_model/go"

	"github.com/irb-project/irb/agent/config"
	"github.com/irb-project/irb/agent/snapshot"
)

func TestProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	// A child that works as hard as it can, and its parent that says so.
	p, err := Start(t.TempDir(), "busy", "sh", "-c", "echo begun; (while :; do :; done) & wait")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	err = p.Until(t.Context(), "at work", func() bool {
		u, err := p.Usage()
		return err == nil && u.CPU >= 2*ClockTick && u.PeakBytes > 0 && u.Files >= 3
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.LastLines(); got != "begun" {
		t.Errorf("printed %q", got)
	}
	p.Kill() // awaits the parent; the child ends at about the same time
	for range 10000 {
		if _, err = p.Usage(); err != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("the child was not killed")
}

func TestProcessEndsEarly(t *testing.T) {
	p, err := Start(t.TempDir(), "brief", "sh", "-c", "echo the reason; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	err = p.Listening(t.Context(), "127.0.0.1:1")
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "the reason") {
		t.Errorf("got %v", err)
	}
	if err := p.Stop(t.Context()); err == nil {
		t.Error("exit status 3 is no error")
	}
}

func TestStopKillsInTheEnd(t *testing.T) {
	p, err := Start(t.TempDir(), "stubborn", "sh", "-c", "trap '' TERM; echo begun; while :; do sleep 0.01; done")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Until(t.Context(), "deaf", func() bool { return p.LastLines() == "begun" }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Stop(ctx); err == nil || !strings.Contains(err.Error(), "stubborn was killed") {
		t.Errorf("got %v", err)
	}
}

// An agent must accept what a plan publishes, and the settings it is given.
func TestPlan(t *testing.T) {
	folder := t.TempDir()
	plan, err := NewPlan(folder, []Engine{
		{"e0", []string{"http://127.0.0.1:1", "http://127.0.0.1:2"}}, {"e1", []string{"http://127.0.0.1:3"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 8, 1, 12, 0, 0, 500, time.UTC)
	last := int64(0)
	for range 2 { // within one millisecond
		sequence, err := plan.Publish([]float64{1, 3}, now)
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(filepath.Join(folder, "weights.toml"))
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := snapshot.Accept(file, snapshot.Rules{
			Fleet: fleet, Cluster: cluster, Trusted: []minisign.PublicKey{plan.public}, Now: now, HighestSequence: last,
		})
		if err != nil {
			t.Fatal(err)
		}
		if w := accepted.Snapshot.Sources[0].Weights; w[0].Quota != 1<<30 || w[1].Quota != 3<<30 {
			t.Errorf("weights are %+v", w)
		}
		if sequence <= last {
			t.Errorf("sequence is %d after %d", sequence, last)
		}
		last = sequence
	}
	a := &Agent{
		Address: "127.0.0.1:10", status: "127.0.0.1:11", debug: "127.0.0.1:12",
		decisions: filepath.Join(folder, "a.decisions.jsonl"),
	}
	path, err := plan.writeConfig("a", plan.config(a, "a", AgentOptions{Agents: 3, EngineIdle: time.Second, Sample: 0.5}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(path); err != nil {
		t.Error(err)
	}
}

func TestDecision(t *testing.T) {
	a := &Agent{decisions: filepath.Join(t.TempDir(), "log")}
	if got := a.Decision("r-1"); !strings.Contains(got, "no such file") {
		t.Errorf("without a log: %q", got)
	}
	lines := "{\"request_id\":\"r-1\"}\n{\"request_id\":\"r-12\"}\n"
	if err := os.WriteFile(a.decisions, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := a.Decision("r-1"); got != `{"request_id":"r-1"}` {
		t.Errorf("got %q", got)
	}
}

func TestMetricsSum(t *testing.T) {
	one, two, three := 1.0, 2.0, 4.0
	name, a, b := "class", "a", "b"
	label := func(v *string) []*dto.LabelPair { return []*dto.LabelPair{{Name: &name, Value: v}} }
	m := Metrics{"x": {Metric: []*dto.Metric{
		{Label: label(&a), Gauge: &dto.Gauge{Value: &one}},
		{Label: label(&b), Gauge: &dto.Gauge{Value: &two}},
		{Counter: &dto.Counter{Value: &three}},
	}}}
	for _, tt := range []struct {
		name   string
		labels []string
		want   float64
	}{{"x", nil, 7}, {"x", []string{"class", "a"}, 1}, {"x", []string{"class", "c"}, 0}, {"y", nil, 0}} {
		if got := m.Sum(tt.name, tt.labels...); got != tt.want {
			t.Errorf("Sum(%q, %v) = %g, want %g", tt.name, tt.labels, got, tt.want)
		}
	}
}
