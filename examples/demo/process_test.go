package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stage returns a demo whose programs are shell scripts.
func stage(t *testing.T, irbctl, agent string) *demo {
	t.Helper()
	d := &demo{out: io.Discard, folder: t.TempDir(), began: time.Now(), endpoints: []string{"http://127.0.0.1:1", "http://127.0.0.1:2"}}
	for name, text := range map[string]string{"irbctl": irbctl, "irb-agent": agent} {
		path := filepath.Join(d.folder, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.irbctl, d.agentProgram = d.path("irbctl"), d.path("irb-agent")
	return d
}

func TestAgentThatDies(t *testing.T) {
	d := stage(t, "", "echo first; echo the reason >&2; exit 3")
	_, err := d.startAgent(t.Context(), "us-east")
	if err == nil || !strings.Contains(err.Error(), "the reason") || !strings.Contains(err.Error(), "us-east") {
		t.Errorf("error is %v, want one with the cluster and the end of the log", err)
	}
	if err := d.close(); err != nil {
		t.Error(err)
	}
}

// An agent that never gets ready is killed when the demo is broken off.
func TestCloseKillsAgents(t *testing.T) {
	d := stage(t, "", "trap '' TERM INT; while true; do sleep 0.05; done")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.startAgent(ctx, "us-east"); err != context.Canceled {
		t.Errorf("error is %v, want that the demo was broken off", err)
	}
	if err := d.close(); err != nil {
		t.Error(err)
	}
	if state := d.agents[0].cmd.ProcessState; state == nil {
		t.Error("the agent still runs")
	}
}

func TestFailingProgramsFailTheDemo(t *testing.T) {
	d := stage(t, `case $1 in keygen) exit 0;; *) echo "irbctl: no way" >&2; exit 3;; esac`, "")
	err := d.play(t.Context())
	if err == nil || !strings.Contains(err.Error(), "irbctl solve: exit status 3") || !strings.Contains(err.Error(), "no way") {
		t.Errorf("error is %v, want that of irbctl solve with what it said", err)
	}
	if err := d.close(); err != nil {
		t.Error(err)
	}
}

func TestWrap(t *testing.T) {
	for line, want := range map[string]string{
		"":                      "",
		"  short":               "  short",
		"  one two three":       "  one two|  three",
		"  abcdefghijklmnop":    "  abcdefghijklmnop",
		"0123456789 0123456789": "0123456789|0123456789",
	} {
		if got := strings.Join(wrap(line, 10), "|"); got != want {
			t.Errorf("%q is wrapped to %q, want %q", line, got, want)
		}
	}
}
