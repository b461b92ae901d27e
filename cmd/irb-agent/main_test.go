package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/irb-project/irb/agent/config"
)

func TestCommandLine(t *testing.T) {
	f := newFleet(t, "")
	now := time.Now()
	bad := f.path("bad.toml")
	if err := os.WriteFile(bad, []byte("fleet = 3\ncluste = \"x\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (code int, stdout, stderr string) {
		var out, err bytes.Buffer
		code = execute(args, &out, &err, nil, time.Now)
		return code, out.String(), err.String()
	}
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--version"}, exitOK, "irb-agent devel, commit"},
		{[]string{}, exitUsage, "usage: irb-agent"},
		{[]string{"--nonsense"}, exitUsage, "not defined"},
		{[]string{"--config", f.path("none.toml")}, exitUsage, "no such file"},
		{[]string{"--config", bad}, exitUsage, "irb-agent: bad.toml:2: unknown key \"cluste\" (did you mean \"cluster\"?)"},
		{[]string{"--check", "--config", bad}, exitUsage, "irb-agent: bad.toml:1: fleet is 3, want a string"},
		{[]string{"--check", "--config", f.path("agent.toml")}, exitOK, "is not there yet"},
	} {
		code, stdout, stderr := run(test.args...)
		if code != test.code || !strings.Contains(stdout+stderr, test.want) {
			t.Errorf("%q: exit %d, %q, %q; want %d and %q", test.args, code, stdout, stderr, test.code, test.want)
		}
	}
	f.publish(now.UnixMilli(), 1<<31, now.Add(time.Hour))
	if code, stdout, stderr := run("--check", "--config", f.path("agent.toml")); code != exitOK || !strings.Contains(stdout, "would be accepted") {
		t.Errorf("check: exit %d, %q, %q", code, stdout, stderr)
	}
	// A planned engine that may not be dialed is worth a word, and no error.
	agentToml, err := os.ReadFile(f.path("agent.toml"))
	if err != nil {
		t.Fatal(err)
	}
	f.write("other.toml", bytes.Replace(agentToml, []byte("127.0.0.0/8"), []byte("10.0.0.0/8"), 1))
	if code, stdout, stderr := run("--check", "--config", f.path("other.toml")); code != exitOK || !strings.Contains(stdout, "would be accepted") ||
		!strings.Contains(stderr, `engine "us-1": http://127.0.0.1`) {
		t.Errorf("check with other networks: exit %d, %q, %q", code, stdout, stderr)
	}
	// So are names that lead nowhere.
	f.write("other.toml", append([]byte("hold = [\"eu-1\", \"eu-9\"]\ndrain = [\"us-7\"]\n"), agentToml...))
	_, _, stderr := run("--check", "--config", f.path("other.toml"))
	for _, want := range []string{`hold names engine "eu-9", which is not in the snapshot`, `drain names engine "us-7"`} {
		if !strings.Contains(stderr, "warning: ") || !strings.Contains(stderr, want) || strings.Contains(stderr, "eu-1") {
			t.Errorf("check with other engines: %q, want %q", stderr, want)
		}
	}
	// All that is wrong comes in one pass: settings and what they name.
	f.write("short", []byte("too short"))
	f.write("wrong.toml", append([]byte("agents = -1\ntrusted_key_files = [\"none.pub\"]\ndecision_log.secret_file = \"short\"\n"),
		bytes.Replace(agentToml, []byte("trusted_keys = [\""), []byte("trusted_keys = [\"RWnokey\", \""), 1)...))
	var code int
	code, _, stderr = run("--check", "--config", f.path("wrong.toml"))
	for _, want := range []string{"wrong.toml:1: agents is -1", `trusted_keys: "RWnokey"`, "none.pub", "holds 9 bytes, want at least 16"} {
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("check of everything wrong: exit %d, %q, want %q", code, stderr, want)
		}
	}
	file, err := os.ReadFile(f.path("weights.toml"))
	if err != nil {
		t.Fatal(err)
	}
	f.write("weights.toml", bytes.Replace(file, []byte("by hand"), []byte("by Hand"), 1))
	if code, _, stderr := run("--check", "--config", f.path("agent.toml")); code != exitVerify || !strings.Contains(stderr, "refused") {
		t.Errorf("check of a changed weight file: exit %d, %q", code, stderr)
	}
}

func TestMisfits(t *testing.T) {
	f := newFleet(t, "")
	s := f.snapshot(1, 1<<31, time.Now().Add(time.Hour))
	s.Classes[0].Match.Headers = map[string]string{"X-Tier": "gold", "x-region": "eu"}
	c, err := config.Load(f.path("agent.toml"))
	if err != nil {
		t.Fatal(err)
	}
	c.TrustedHeaders, c.Hold = []string{"x-tier"}, []string{"eu-1", "gone"}
	want := []string{
		`class "eu" matches on header "x-region", which is not in trusted_headers: it takes no request`,
		`hold names engine "gone", which is not in the snapshot`,
	}
	if got := misfits(s, c); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWhatCannotBeOpened: an agent that cannot start says why in a line and
// lets go of what it has opened; --check finds what is wrong with files before.
func TestWhatCannotBeOpened(t *testing.T) {
	noLeak(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, test := range []struct {
		name, old, new string
		want           string
		check          bool // finds it too
	}{
		{"listener", "[[listener]]\naddress = \"127.0.0.1:0\"", "[[listener]]\naddress = \"" + taken.Addr().String() + "\"", "address already in use", false},
		{"status", "status_listen = \"127.0.0.1:0\"", "status_listen = \"" + taken.Addr().String() + "\"", "status_listen: ", false},
		{"decisions", "poll_interval", "decision_log.path = \"none/decisions\"\npoll_interval", "decision_log.path: ", true},
		{"state", "state_dir = \"state\"", "state_dir = \"agent.toml/state\"", "state folder: ", true},
		{"debug", "/debug.sock", "/agent.toml", "debug_listen: ", false},
		{"key", "trusted_keys", "trusted_key_files = [\"none.pub\"]\ntrusted_keys", "trusted_key_files: ", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFleet(t, "")
			text, err := os.ReadFile(f.path("agent.toml"))
			if err != nil {
				t.Fatal(err)
			}
			f.write("bad.toml", bytes.Replace(text, []byte(test.old), []byte(test.new), 1))
			for _, args := range [][]string{{"--config", f.path("bad.toml")}, {"--check", "--config", f.path("bad.toml")}} {
				if len(args) == 3 && !test.check {
					continue
				}
				var stdout, stderr bytes.Buffer
				code := execute(args, &stdout, &stderr, nil, time.Now)
				if code != exitUsage || !strings.HasPrefix(stderr.String(), "irb-agent: ") || !strings.Contains(stderr.String(), test.want) {
					t.Errorf("%q: exit %d, %q, want %d and %q", args[0], code, stderr.String(), exitUsage, test.want)
				}
			}
			if left, err := os.ReadFile(f.path("agent.toml")); err != nil || !bytes.Equal(left, text) {
				t.Errorf("agent.toml is not what it was: %v", err)
			}
		})
	}
}

// TestAgentStandsAlone: the agent imports nothing of the solver or the
// explanations and builds without cgo, into one static program.
func TestAgentStandsAlone(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{.CgoFiles}}", ".", "github.com/irb-project/irb/agent/...")
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	const ours = "github.com/irb-project/irb/"
	for line := range strings.Lines(string(out)) {
		path, cgo, _ := strings.Cut(strings.TrimSpace(line), " ")
		if cgo != "[]" {
			t.Errorf("%s uses cgo: %s", path, cgo)
		}
		if rest, ok := strings.CutPrefix(path, ours); ok && !strings.HasPrefix(rest, "agent/") && rest != "cmd/irb-agent" {
			t.Errorf("the agent imports %s, want nothing of ours outside agent/", path)
		}
	}
	binary := t.TempDir() + "/irb-agent"
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	if limit := int64(20e6); info.Size() > limit {
		t.Errorf("the program has %d bytes, want at most %d", info.Size(), limit)
	}
}
