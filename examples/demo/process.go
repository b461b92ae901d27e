package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ctl runs irbctl and returns what it prints.
func (d *demo) ctl(ctx context.Context, args ...string) (string, error) {
	d.say("$ irbctl %s", d.shellWords(args))
	cmd := exec.CommandContext(ctx, d.irbctl, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("irbctl %s: %w\n%s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}

// shellWords returns arguments as one would type them in the demo's folder.
func (d *demo) shellWords(args []string) string {
	var words []string
	for _, arg := range args {
		arg = strings.TrimPrefix(arg, d.folder+string(filepath.Separator))
		if strings.Contains(arg, " ") {
			arg = strconv.Quote(arg)
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// agent is a running irb-agent.
type agent struct {
	cluster     string
	url, status string // where it takes requests, and where it tells of itself
	log         string // file
	cmd         *exec.Cmd
	exited      chan struct{} // closed once err holds how it ended
	err         error
}

// startAgent starts the agent of a cluster and waits until it is ready.
func (d *demo) startAgent(ctx context.Context, cluster string) (*agent, error) {
	addresses, err := freeAddresses(2)
	if err != nil {
		return nil, err
	}
	a := &agent{
		cluster: cluster, url: "http://" + addresses[0], status: "http://" + addresses[1],
		log: d.path(cluster + ".log"), exited: make(chan struct{}),
	}
	config := d.path(cluster + ".toml")
	text := agentConfig(cluster, d.path("weights.toml"), d.path("irb.pub"), d.path(cluster+".state"), addresses[0], addresses[1])
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return nil, err
	}
	log, err := os.Create(a.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	a.cmd = exec.Command(d.agentProgram, "--config", config)
	a.cmd.Stdout, a.cmd.Stderr = log, log
	if err := a.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		a.err = a.cmd.Wait()
		close(a.exited)
	}()
	d.agents = append(d.agents, a)
	return a, a.until(ctx, "ready", func() bool {
		answer, err := http.Get(a.status + "/readyz")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

// until waits for a condition of the agent, 10 s at most.
func (a *agent) until(ctx context.Context, what string, holds func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-a.exited:
			return fmt.Errorf("the agent of %s ended before it was %s: %v\n%s", a.cluster, what, a.err, a.lastLines())
		case <-deadline:
			return fmt.Errorf("the agent of %s is not %s after 10 s\n%s", a.cluster, what, a.lastLines())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// metric returns the value of a metric without labels; false if it has none.
func (a *agent) metric(name string) (float64, bool) {
	answer, err := http.Get(a.status + "/metrics")
	if err != nil {
		return 0, false
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			value, err := strconv.ParseFloat(text, 64)
			return value, err == nil
		}
	}
	return 0, false
}

// serves waits until the agent routes by the snapshot of that sequence.
func (a *agent) serves(ctx context.Context, sequence int64) error {
	return a.until(ctx, fmt.Sprintf("serving snapshot %d", sequence), func() bool {
		got, ok := a.metric("irb_snapshot_sequence")
		return ok && int64(got) == sequence
	})
}

// drain asks the agent to end and waits until it has.
func (a *agent) drain(ctx context.Context) error {
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-a.exited:
	case <-ctx.Done():
		return ctx.Err()
	}
	if a.err != nil {
		return fmt.Errorf("the agent of %s did not drain: %w\n%s", a.cluster, a.err, a.lastLines())
	}
	return nil
}

// kill ends the agent at once, if it still runs.
func (a *agent) kill() error {
	err := a.cmd.Process.Kill()
	<-a.exited
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// lastLines returns the end of the agent's log.
func (a *agent) lastLines() string {
	text, err := os.ReadFile(a.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

func (d *demo) path(name string) string { return filepath.Join(d.folder, name) }

// say prints a line.
func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// heading prints a heading with the time since the demo began.
func (d *demo) heading(format string, args ...any) {
	fmt.Fprintf(d.out, "\n== %s  [%.0f s]\n\n", fmt.Sprintf(format, args...), time.Since(d.began).Seconds())
}

// indent prints a text, indented, without the demo's folder, and with long
// lines wrapped.
func (d *demo) indent(text string) {
	text = strings.ReplaceAll(strings.TrimSpace(text), d.folder+string(filepath.Separator), "")
	for line := range strings.Lines(text) {
		for _, part := range wrap(strings.TrimRight(line, "\n"), 100) {
			d.say("%s", strings.TrimRight("    "+part, " "))
		}
	}
}

// wrap breaks a line at blanks into parts of at most width bytes, where it has
// them; the parts keep its indentation.
func wrap(line string, width int) (parts []string) {
	rest := strings.TrimLeft(line, " ")
	indent := line[:len(line)-len(rest)]
	for len(indent)+len(rest) > width {
		cut := strings.LastIndex(rest[:width-len(indent)+1], " ")
		if cut < 0 {
			break
		}
		parts = append(parts, indent+rest[:cut])
		rest = rest[cut+1:]
	}
	return append(parts, indent+rest)
}
