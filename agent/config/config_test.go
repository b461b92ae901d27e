package config

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite generated files")

const minimal = `fleet = "prod"
cluster = "us-east"
weights = "weights.toml"
trusted_keys = ["RWQ"]
allow_engine_networks = ["10.0.0.0/8"]
[[listener]]
address = ":8080"
`

func TestMinimalGetsDefaults(t *testing.T) {
	c, err := Parse("agent.toml", []byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	if c.Timeouts.EngineIdle != 4*time.Second || c.Body.Replay != 4<<20 || c.Body.MaxRequest != 32<<20 ||
		c.Body.MaxAgent != 256<<20 || c.StreamFailure != StreamReset || c.Listeners[0].Address != ":8080" {
		t.Errorf("defaults not filled in: %+v", c)
	}
}

// TestEverySettingIsRead writes each setting with a value that is not its
// default and looks whether it arrives.
func TestEverySettingIsRead(t *testing.T) {
	example := map[string]string{
		"true or false": "true", "integer": "7", "number": "0.5", "duration": `"1500ms"`, "size": `"2MiB"`,
		"list of strings": `["x-a"]`, "list of networks": `["192.0.2.0/24"]`, "string": `"x"`,
	}
	for _, s := range Settings() {
		value := example[s.kind()]
		switch k := s.kind(); {
		case s.Max != "" && k == "duration":
			value = fmt.Sprintf("%q", s.Max)
		case s.Max != "" && k != "size": // sizes must fit together
			value = s.Max
		}
		if s.OneOf != nil {
			value = fmt.Sprintf("%q", s.OneOf[len(s.OneOf)-1])
			if s.Default == s.OneOf[len(s.OneOf)-1] {
				value = fmt.Sprintf("%q", s.OneOf[0])
			}
		}
		p := &parser{name: "agent.toml"}
		text := s.Key + " = " + value
		if key, ok := strings.CutPrefix(s.Key, "listener."); ok {
			text = "[[listener]]\n" + key + " = " + value
		} else {
			text += "\n[[listener]]\n"
		}
		p.parse([]byte(text))
		got := reflect.ValueOf(s.field(p.config, &p.config.Listeners[0])).Elem()
		if got.IsZero() {
			t.Errorf("%s: %q left it empty: %v", s.Key, text, p.sorted())
		}
		for _, problem := range p.problems {
			if strings.HasPrefix(problem.text, s.Key+" is ") && !strings.Contains(problem.text, "want host:port") && !strings.Contains(problem.text, "want a loopback") {
				t.Errorf("%s: %q is refused: %s", s.Key, text, problem.text)
			}
		}
	}
}

// TestEveryDefaultIsInRange also proves that every row's own texts can be read.
func TestEveryDefaultIsInRange(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Settings() {
		if seen[s.Key] {
			t.Errorf("%s is there twice", s.Key)
		}
		seen[s.Key] = true
		if s.Meaning == "" {
			t.Errorf("%s has no meaning", s.Key)
		}
		if s.Default == "" || s.Default == required {
			continue
		}
		if !s.set(s.field(&Config{}, &Listener{}), s.defaultValue()) {
			t.Errorf("%s: default %q is refused by its own row", s.Key, s.Default)
		}
	}
}

func TestProblemsInOnePass(t *testing.T) {
	text := `fleet = "prod"
cluster = "us east "
regoin = 1
trusted_keys = [
  "RWQ", # one
  "a]b",
]
weights = 3
affinity_header = "x y"
allow_engine_networks = ["10.0.0.0/33"]
debug_listen = "0.0.0.0:6060"
agents = -1
[timeouts]
connect = "5h"
idle_strem = "1s"
[body]
replay = "64MiB"
[retry]
budget_ratio = nan
[engine]
client_key_file = "k.pem"
client_authorization = "keep"
[[listener]]
address = ":8080"
client_ca_file = "ca.pem"
[[listener]]
address = ":8080"
identity_header = "x-who"
adress = "x"
[[listener]]
address = 5
`
	want := `agent.toml:2: cluster is "us east ", want a name of letters, digits, blanks, '.', '_', '-', at most 63, without a blank at the end
agent.toml:3: unknown key "regoin"
agent.toml:8: weights is 3, want a string
agent.toml:9: affinity_header is "x y", want the name of a header
agent.toml:10: allow_engine_networks is [10.0.0.0/33], want a list of networks such as "10.0.0.0/8"
agent.toml:11: debug_listen is "0.0.0.0:6060", want a loopback address or unix:PATH
agent.toml:12: agents is -1, want an integer from 0 to 100000
agent.toml:14: timeouts.connect is "5h", want a duration from 1ms to 1m
agent.toml:15: unknown key "timeouts.idle_strem" (did you mean "timeouts.idle_stream"?)
agent.toml:17: body.replay is above body.max_request
agent.toml:19: retry.budget_ratio is NaN, want a number from 0 to 1
agent.toml:21: engine.client_key_file needs engine.client_cert_file
agent.toml:22: engine.client_authorization is "keep", want one of drop, forward
agent.toml:25: listener[0].client_ca_file needs tls_cert_file
agent.toml:27: listener[1].address is ":8080", which listener[0].address has already
agent.toml:28: listener[1].identity_header needs trusted_proxies: a header that any client can set is no identity
agent.toml:29: unknown key "listener.adress" (did you mean "listener.address"?)
agent.toml:31: listener[2].address is 5, want a string`
	_, err := Parse("agent.toml", []byte(text))
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestMissing(t *testing.T) {
	_, err := Parse("agent.toml", nil)
	for _, want := range []string{
		"agent.toml: fleet is missing", "cluster is missing", "weights is missing", "listener is missing",
		"allow_engine_networks is missing", "trusted_keys and trusted_key_files are empty",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v\nhas no %q", err, want)
		}
	}
	_, err = Parse("agent.toml", []byte("fleet = \"a\"\nfleet = \"b\"\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "agent.toml:2: ") {
		t.Errorf("duplicate key: %v", err)
	}
}

func TestLoadResolvesPaths(t *testing.T) {
	dir := t.TempDir()
	path := dir + "/agent.toml"
	if err := os.WriteFile(path, []byte(minimal), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if c.Weights != dir+"/weights.toml" || c.StateDir != "" {
		t.Errorf("weights %q, state_dir %q", c.Weights, c.StateDir)
	}
	if err := os.WriteFile(path, make([]byte, maxFileBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "over 1048576 bytes") {
		t.Errorf("huge file: %v", err)
	}
}

func TestNeedsRestart(t *testing.T) {
	running, _ := Parse("a", []byte(minimal))
	next, err := Parse("a", []byte("hold = [\"a-1\"]\npoll_interval = \"5s\"\n"+minimal+"tls_cert_file = \"c\"\ntls_key_file = \"k\"\n[timeouts]\nttft = \"3s\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"poll_interval", "listener.tls_cert_file", "listener.tls_key_file"}
	if got := NeedsRestart(running, next); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	next.Listeners = append(next.Listeners, Listener{})
	if got := NeedsRestart(running, next); got[0] != "listener" {
		t.Errorf("another listener: %v", got)
	}
}

// TestSettingsFile keeps SETTINGS.md, which readers see, equal to the table
// that the parser uses; -update rewrites it.
func TestSettingsFile(t *testing.T) {
	text := "# Settings of agent.toml\n\nStrict TOML; unknown keys are refused. A star in *reload*: taken over on SIGHUP, without a restart. " +
		"Durations are written \"1500ms\", \"2s\", sizes \"64KiB\", \"4MiB\". Those of `listener` stand in a `[[listener]]` each. " +
		"Generated from the code: `go test ./agent/config -update`.\n\n" + Markdown()
	if *update {
		if err := os.WriteFile("SETTINGS.md", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("SETTINGS.md")
	if err != nil || string(got) != text {
		t.Errorf("SETTINGS.md differs from the table of settings (%v); run go test ./agent/config -update", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte("[listener]\naddress = 1\n[timeouts]\n\"ttft\" = '''1s\n'''\n"))
	f.Add([]byte("timeouts = { ttft = \"1s\" }\ntimeouts.total = 3\n"))
	f.Add([]byte("[[timeouts]]\n[[listener.x]]\nlistener = 1\n"))
	f.Add([]byte("\xef\xbb\xbffleet = \"x\"\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f", data)
		if err != nil {
			return
		}
		// What is accepted is complete and within its ranges.
		for _, s := range Settings() {
			if s.Default != required {
				continue
			}
			for i := range c.Listeners {
				if reflect.ValueOf(s.field(c, &c.Listeners[i])).Elem().IsZero() {
					t.Errorf("accepted without %s", s.Key)
				}
			}
		}
	})
}
