package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExplainPage(t *testing.T) {
	weights := solved(t, twoRegions)
	path := filepath.Join(t.TempDir(), "report.html")
	var r run
	r.expect(t, exitUsage, `no engine "mars-1"`, "explain", weights, "--html", path, "--engine", "mars-1")
	r.expect(t, exitUsage, "--html is about weights", "explain", weights, "--html", path, "--request", "--cluster", "us-east")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a failing run leaves a page: %v", err)
	}
	r.expect(t, exitOK, "wrote "+path, "explain", weights, "--inputs", twoRegions, "--html", path, "--what-if", "down c-1")
	html, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<!DOCTYPE html>", "room for one more request there would save 63 ms", ">What if<", ">When an engine is lost<", ">What more capacity saves<"} {
		if !strings.Contains(string(html), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	r.expect(t, exitOK, "This page was made from the weight file alone", "explain", weights, "--html", "-")
	if strings.Contains(r.stdout, ">When an engine is lost<") {
		t.Error("without inputs the page tells of losses")
	}
	r.expect(t, exitOK, ">What the policy costs<", "explain", followTheSun, "--html", "-", "--cluster", "West Europe")
	if strings.Contains(r.stdout, `<article data-source="East US 2/chat"`) {
		t.Error("the page is about more than the cluster asked for")
	}

	// What must not be solved for long is answered only if it is asked for.
	huge := modelFlags{}
	if huge.askForPage(2000, 2000, "network simplex") || huge.askForPage(100, 100, "interior point") {
		t.Error("a huge fleet counts as fast")
	}
	small := modelFlags{value: "10"}
	if !small.askForPage(100, 100, "network simplex") {
		t.Error("a small fleet counts as slow")
	}
	if huge.asked() || !small.nMinusOne || !small.sensitivity || small.value != "10" {
		t.Errorf("asked of a huge fleet %+v, of a small one %+v", huge, small)
	}
}

func TestDiffPage(t *testing.T) {
	weights := solved(t, twoRegions)
	path := filepath.Join(t.TempDir(), "change.html")
	var r run
	r.expect(t, exitOK, "wrote "+path, "diff", weights, weights, "--html", path)
	html, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<!DOCTYPE html>", "ok: 0.0 % of the traffic moves", "no weight and no engine differs", "--old-inputs and --new-inputs"} {
		if !strings.Contains(string(html), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestExplainMarkdown(t *testing.T) {
	var r run
	r.expect(t, exitOK, "| c-1 | 16.7 % | 20 | 65 | 3152 | 0 | 0 | 0 | 0 | 3217 |", "explain", twoRegions, "--format", "markdown")
	if !strings.Contains(r.stdout, "### us-east/default: 120 req/s, mean latency 3164 ms") || !strings.Contains(r.stdout, "\n- a-1 is at its limit (100 of 100 req/s)") {
		t.Errorf("Markdown is\n%s", r.stdout)
	}
	r.expect(t, exitOK, "| engine | capacity req/s |", "explain", twoRegions, "--format", "markdown", "--value", "10")
	r.expect(t, exitOK, "| class | chat-eu |", "explain", solved(t, followTheSun), "--format", "markdown", "--request", "--cluster", "West Europe", "--class", "chat-eu")
	r.expect(t, exitUsage, `--format is "html", want text, markdown or json`, "explain", twoRegions, "--format", "html")
}
