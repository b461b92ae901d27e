package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func TestLockNamesItsHolder(t *testing.T) {
	dir := newKeys(t)
	out, key := filepath.Join(dir, "weights.toml"), filepath.Join(dir, "irb.key")
	release, err := lockOutput(out, testNow)
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	by := fmt.Sprintf("weights.toml is being made by process %d on %s since 2026-08-01T12:00:00Z; nothing written", os.Getpid(), host)
	var r run
	r.expect(t, exitFailure, by, "solve", twoRegions, "-o", out, "--key", key)
	r.expect(t, exitFailure, by, "drain", "a-1", "-o", out, "--key", key)
	if _, err := os.Stat(out); err == nil {
		t.Error("a file was written")
	}
	release()
	r.expect(t, exitOK, "wrote", "solve", twoRegions, "-o", out, "--key", key)
	link := filepath.Join(dir, "link.toml")
	if err := os.Symlink(out, link); err != nil {
		t.Fatal(err)
	}
	if release, err = lockOutput(link, testNow); err != nil {
		t.Fatal(err)
	}
	defer release()
	r.expect(t, exitFailure, "is being made by", "solve", twoRegions, "-o", out, "--key", key)
}

func TestOlderNeverReplacesNewer(t *testing.T) {
	dir := newKeys(t)
	out, key := filepath.Join(dir, "weights.toml"), filepath.Join(dir, "irb.key")
	r := run{}
	r.now = testNow.AddDate(0, 0, 1)
	r.expect(t, exitOK, "wrote", "solve", twoRegions, "-o", out, "--key", key)
	before, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	r.now = testNow // the clock was set back
	r.expect(t, exitFailure, "newer than", "solve", twoRegions, "-o", out, "--key", key)
	if after, err := os.ReadFile(out); err != nil || string(after) != string(before) {
		t.Errorf("the file has changed, %v", err)
	}
	r.expect(t, exitOK, "wrote", "solve", twoRegions, "-o", out, "--key", key, "--previous", out)
}

// TestMain lets the test program be the real one for tests of several
// processes.
func TestMain(m *testing.M) {
	if os.Getenv(asIrbctl) != "" {
		main()
	}
	os.Exit(m.Run())
}

// asIrbctl is the environment variable that makes the test program irbctl.
const asIrbctl = "TEST_AS_IRBCTL"

// irbctlProcess is a command line for a process of its own.
func irbctlProcess(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), asIrbctl+"=1")
	return cmd
}

// Real processes race for one output. Whoever writes says so; sequences on disk
// never fall, and what is there in the end is the highest that was written.
func TestProcessesRace(t *testing.T) {
	dir := newKeys(t)
	out := filepath.Join(dir, "weights.toml")
	wrote := regexp.MustCompile(`snapshot (\d+), expires`)
	var mu sync.Mutex
	var written []int64
	busy := 0
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 8 {
				cmd := irbctlProcess(t, "solve", twoRegions, "-o", out, "--key", filepath.Join(dir, "irb.key"))
				text, err := cmd.CombinedOutput()
				mu.Lock()
				switch m := wrote.FindSubmatch(text); {
				case m != nil && err == nil:
					n, _ := strconv.ParseInt(string(m[1]), 10, 64)
					written = append(written, n)
				case strings.Contains(string(text), "is being made by"):
					busy++
				default:
					t.Errorf("neither written nor locked: %v\n%s", err, text)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	highest := int64(0)
	for _, n := range written {
		highest = max(highest, n)
	}
	if len(written) == 0 || sequenceOf(out) != highest {
		t.Errorf("the file has snapshot %d, the highest of the %d written is %d", sequenceOf(out), len(written), highest)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("files are left: %v %v", left, err)
	}
	t.Logf("%d written, %d found it locked", len(written), busy)
}
