package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal returns the two ends of a new pseudo terminal.
func openTerminal(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { user.Close() })
	number, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { program.Close() })
	return user, program
}

// typist answers each prompt that a program writes with the next line.
type typist struct {
	terminal *os.File
	lines    []string
	prompts  bytes.Buffer
}

func (y *typist) Write(p []byte) (int, error) {
	y.prompts.Write(p)
	if bytes.HasSuffix(p, []byte(": ")) && len(y.lines) > 0 {
		fmt.Fprintln(y.terminal, y.lines[0])
		y.lines = y.lines[1:]
	}
	return len(p), nil
}

func TestAskForPassword(t *testing.T) {
	user, program := openTerminal(t)
	key := filepath.Join(t.TempDir(), "locked.key")
	if err := os.WriteFile(key, []byte(lockedKey), 0o600); err != nil {
		t.Fatal(err)
	}
	y := &typist{terminal: user, lines: []string{"a password"}}
	a := &app{stdin: program, stderr: y, getenv: func(string) string { return "" }}
	keys, err := a.loadSecretKeys(keyFlags{files: []string{key}})
	if err != nil || len(keys) != 1 {
		t.Fatalf("%d keys, error %v", len(keys), err)
	}
	if want := "password of " + key + ": \n"; y.prompts.String() != want {
		t.Errorf("prompt is %q, want %q", y.prompts.String(), want)
	}
}

func TestKeygenAsksTwice(t *testing.T) {
	user, program := openTerminal(t)
	name := filepath.Join(t.TempDir(), "irb")
	for _, lines := range [][]string{{"one", "other"}, {"", ""}} {
		y := &typist{terminal: user, lines: lines}
		a := &app{stdin: program, stderr: y, stdout: y, getenv: func(string) string { return "" }}
		if code := a.execute([]string{"keygen", "-o", name, "--password"}); code != exitUsage {
			t.Errorf("%q: exit %d, want %d\n%s", lines, code, exitUsage, y.prompts.String())
		}
		if len(y.lines) != 0 {
			t.Errorf("%q: not asked twice\n%s", lines, y.prompts.String())
		}
	}
	if _, err := os.Stat(name + ".key"); err == nil {
		t.Error("a key was written")
	}
}

func TestColourOnATerminalOnly(t *testing.T) {
	weights := solved(t, twoRegions)
	for _, c := range []struct {
		env    map[string]string
		colour bool
	}{
		{nil, true},
		{map[string]string{"NO_COLOR": "1"}, false},
		{map[string]string{"TERM": "dumb"}, false},
	} {
		user, program := openTerminal(t)
		a := &app{stdin: program, stdout: program, stderr: program, getenv: func(key string) string { return c.env[key] }}
		shown := make(chan []byte)
		go func() {
			// The last sentence; the terminal stays open.
			var all []byte
			for piece := make([]byte, 4096); !bytes.Contains(all, []byte("irbctl verify does that")); {
				n, err := user.Read(piece)
				if all = append(all, piece[:n]...); err != nil {
					break
				}
			}
			shown <- all
		}()
		if code := a.execute([]string{"explain", weights}); code != exitOK {
			t.Fatalf("exit %d", code)
		}
		if got := bytes.Contains(<-shown, []byte("\x1b[")); got != c.colour {
			t.Errorf("environment %v: coloured is %v, want %v", c.env, got, c.colour)
		}
	}
	var r run
	r.expect(t, exitOK, "", "explain", weights)
	if bytes.Contains([]byte(r.stdout), []byte("\x1b[")) {
		t.Errorf("coloured where no terminal is:\n%s", r.stdout)
	}
}
