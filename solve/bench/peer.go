package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed peers
var programs embed.FS

// peer is somebody else's solver behind a small program of ours.
type peer struct {
	name     string
	settings []string // of which the best counts; the fastest of most fleets first
	command  []string
}

var errOverLimit = errors.New("over the time limit")

// settingsOf are the settings that each peer runs with.
func settingsOf(name string) []string {
	switch name {
	case "lemon":
		return []string{"network-simplex", "cost-scaling"}
	case "clp":
		return []string{"dual", "presolve"}
	case "highs":
		return []string{"highs-ds", "highs-ipm"}
	}
	return nil
}

func parsePeer(text string) (string, error) {
	if settingsOf(text) == nil {
		return "", fmt.Errorf("peer %q, want lemon, clp or highs", text)
	}
	return text, nil
}

// preparePeer makes a peer ready to run in a folder; the error says what is
// not installed.
func preparePeer(ctx context.Context, folder, name string) (*peer, error) {
	p := &peer{name: name, settings: settingsOf(name)}
	var err error
	switch name {
	case "lemon":
		p.command, err = compile(ctx, folder, name, "liblemon-dev")
	case "clp":
		p.command, err = compile(ctx, folder, name, "coinor-libclp-dev")
	case "highs":
		p.command, err = findSciPy(ctx, folder)
	}
	return p, err
}

// compile builds peers/NAME.cpp against the library that pkg-config has under
// the same name.
func compile(ctx context.Context, folder, name, debian string) ([]string, error) {
	flags, err := exec.CommandContext(ctx, "pkg-config", "--cflags", "--libs", name).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("not installed (Debian: %s): pkg-config %s: %s", debian, name, firstLine(flags, err))
	}
	program := filepath.Join(folder, name)
	args := append([]string{"-std=c++17", "-O3", "-DNDEBUG", "-o", program, filepath.Join(folder, name+".cpp")}, strings.Fields(string(flags))...)
	if out, err := exec.CommandContext(ctx, "c++", args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("does not compile: %s", firstLine(out, err))
	}
	return []string{program}, nil
}

// findSciPy finds a python3 that has SciPy: the first of the path, or Debian's.
func findSciPy(ctx context.Context, folder string) ([]string, error) {
	var said error
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		out, err := exec.CommandContext(ctx, python, "-c", "import scipy.optimize").CombinedOutput()
		if err == nil {
			return []string{python, filepath.Join(folder, "highs.py")}, nil
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		said = fmt.Errorf("not installed (Debian: python3-scipy): %s", firstLine([]byte(lines[len(lines)-1]), err))
	}
	return nil, said
}

// firstLine is the first line of what a program said, or its error.
func firstLine(out []byte, err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if line == "" {
		return err.Error()
	}
	return line
}

// unpackPrograms writes the peers' programs to a folder.
func unpackPrograms(folder string) error {
	entries, err := programs.ReadDir("peers")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		text, err := programs.ReadFile("peers/" + entry.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, entry.Name()), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// solve runs a peer on a program. The limit is of the peer's own time, without
// what reading takes, and rounded up to whole seconds; errOverLimit is returned
// where the first run is longer.
func (p *peer) solve(ctx context.Context, setting string, t *transport, limit time.Duration, runs int) (answer, error) {
	seconds := int((limit + time.Second - 1) / time.Second)
	args := append(p.command[1:len(p.command):len(p.command)], setting, strconv.Itoa(seconds), strconv.Itoa(runs))
	cmd := exec.CommandContext(ctx, p.command[0], args...)
	var in, out, said bytes.Buffer
	if err := t.encode(&in); err != nil {
		return answer{}, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &said
	err := cmd.Run()
	if cmd.ProcessState != nil {
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGALRM {
			return answer{}, errOverLimit
		}
	}
	if err != nil {
		return answer{}, errors.New(firstLine(said.Bytes(), err))
	}
	return decodeAnswer(out.Bytes(), len(t.cost))
}
