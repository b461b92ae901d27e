package main

import "testing"

func TestCompletion(t *testing.T) {
	weights := solved(t, twoRegions)
	var r run
	for flag, want := range map[string]string{
		"--format": "text\nmarkdown\njson\n", "--engine": "a-1\nc-1\n", "--cluster": "us-east\nus-west\n", "--class": "default\n",
	} {
		r.expect(t, exitOK, want, "__complete", "explain", weights, flag, "")
	}
	r.expect(t, exitOK, "markdown\n", "__complete", "diff", weights, weights, "--format", "")
	r.expect(t, exitOK, ":4", "__complete", "explain", "no such file", "--engine", "")
}
