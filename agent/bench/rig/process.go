// Package rig runs irb-agents and other proxies as child processes on loopback
// and reads what they use from /proc, apart from what the caller uses itself.
package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a running program with all its children.
type Process struct {
	Name string

	cmd    *exec.Cmd
	log    string        // file of what it prints
	exited chan struct{} // closed once err holds how it ended
	err    error
}

// Start starts a program; what it prints goes to NAME.log in the folder. It is
// the first of a process group, by which its children are found.
func Start(folder, name, program string, args ...string) (*Process, error) {
	p := &Process{Name: name, log: filepath.Join(folder, name+".log"), exited: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	p.cmd = exec.Command(program, args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// Pid returns the process id of the program.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// readyWithin is how long a program may take to come up on a busy machine.
const readyWithin = 20 * time.Second

// Until waits for a condition; the error holds the end of the program's log.
func (p *Process) Until(ctx context.Context, what string, holds func() bool) error {
	return p.until(ctx, 20*time.Millisecond, what, holds)
}

// until is Until with so much time between two looks.
func (p *Process) until(ctx context.Context, every time.Duration, what string, holds func() bool) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	deadline := time.After(readyWithin)
	for !holds() {
		select {
		case <-tick.C:
		case <-p.exited:
			return fmt.Errorf("%s ended before it was %s: %v\n%s", p.Name, what, p.err, p.LastLines())
		case <-deadline:
			return fmt.Errorf("%s is not %s after %v\n%s", p.Name, what, readyWithin, p.LastLines())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Listening waits until the program accepts connections.
func (p *Process) Listening(ctx context.Context, address string) error {
	return p.Until(ctx, "listening", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// LastLines returns the end of what the program printed.
func (p *Process) LastLines() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// Stop asks the program to end and returns how it did; it and its children are
// killed if ctx ends first.
func (p *Process) Stop(ctx context.Context) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only if it has ended
	select {
	case <-p.exited:
		return p.err
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("%s was killed: %w\n%s", p.Name, ctx.Err(), p.LastLines())
	}
}

// Kill ends the program and its children at once, if it still runs.
func (p *Process) Kill() {
	select {
	case <-p.exited:
		return
	default:
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // fails only if all have ended
	<-p.exited
}

// Usage is what a program and its children have used since they started.
type Usage struct {
	CPU       time.Duration // user and system
	PeakBytes int64         // highest resident memory, summed over processes
	Files     int           // open descriptors
}

// ClockTick is the unit of times in /proc/PID/stat: 100 per second on every
// Linux architecture that Go supports.
const ClockTick = 10 * time.Millisecond

// Usage reads /proc. Children that have ended are not counted.
func (p *Process) Usage() (u Usage, err error) {
	group := strconv.Itoa(p.Pid())
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return u, err
	}
	found := false
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		// The name, in parentheses, may hold blanks; the fields after it do not:
		// state ppid pgrp ... utime and stime the 12th and 13th (proc(5)).
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) < 13 || fields[2] != group || fields[0] == "Z" {
			continue // another's, or a zombie
		}
		found = true
		for _, f := range fields[11:13] {
			ticks, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				return u, fmt.Errorf("%s: %w", path, err)
			}
			u.CPU += time.Duration(ticks) * ClockTick
		}
		folder := filepath.Dir(path)
		u.PeakBytes += peakBytes(folder)
		files, _ := os.ReadDir(filepath.Join(folder, "fd"))
		u.Files += len(files)
	}
	if !found {
		return u, errors.New(p.Name + " does not run")
	}
	return u, nil
}

// peakBytes returns VmHWM of a process, 0 if it ended meanwhile.
func peakBytes(folder string) int64 {
	text, _ := os.ReadFile(filepath.Join(folder, "status"))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// FreeAddresses returns addresses on loopback that nobody listens on now. They
// are held until all are chosen, so that they differ.
func FreeAddresses(n int) (addresses []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}
