package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/irb-project/irb/agent/bench/rig"
)

// share is how much of the CPUs others took while something was measured: other
// processes, and other machines of the same host. What they take makes figures
// worse, latencies most of all, and nothing in the figures tells.
type share struct {
	meter
	began       time.Time
	ours, whole time.Duration
	taken       []float64 // of each measurement, in [0, 1]
}

func newShare(process *rig.Process) *share { return &share{meter: meter{process: process}} }

func (s *share) start() {
	s.meter.start()
	s.began, s.ours, s.whole = time.Now(), ownCPU(), busyCPU()
}

func (s *share) stop() {
	ours, whole := ownCPU()-s.ours, busyCPU()-s.whole
	s.meter.stop()
	others := whole - ours - s.used()
	all := time.Since(s.began) * time.Duration(runtime.NumCPU())
	s.taken = append(s.taken, min(1, max(0, float64(others)/float64(all)))) // CPU times are counted in ticks
}

// quietShare is what others may take without a word: the system's own chores.
const quietShare = 0.05

func (s *share) print(out io.Writer) {
	slices.Sort(s.taken)
	most := s.taken[len(s.taken)-1]
	fmt.Fprintf(out, "others took %.0f %% of the CPUs meanwhile, at most %.0f %%", 100*s.taken[len(s.taken)/2], 100*most)
	if most > quietShare {
		fmt.Fprint(out, ": measure again when they are quiet")
	}
	fmt.Fprintln(out)
}

// ownCPU is what this process has used.
func ownCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails for no process
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// busyCPU is what all processes have used and what the host has kept for others,
// from /proc/stat: user, nice, system and steal. The time of interrupts is left
// out: much of it is ours, and is in the times of processes or is not, depending
// on the kernel.
func busyCPU() time.Duration {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 9 {
		return 0
	}
	busy := int64(0)
	for _, i := range []int{1, 2, 3, 8} {
		n, _ := strconv.ParseInt(string(fields[i]), 10, 64)
		busy += n
	}
	return time.Duration(busy) * rig.ClockTick
}
