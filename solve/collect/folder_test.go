package collect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/irb-project/irb/solve/input"
	"github.com/irb-project/irb/solve/model"
)

func collected(t *testing.T, fleet *model.Fleet, rps float64) *Result {
	t.Helper()
	s := newSignals()
	s.Step = testStep
	s.Offered[Pair{"east", "chat"}] = []float64{rps, rps}
	s.Health["a-1"] = Health{0.5, "scrapes: 1 of 2 endpoints up"}
	o := Options{Now: time.Unix(1_800_000_000, 0), Every: time.Hour, Quantile: 0.9}
	r := &Result{Fleet: "prod", Source: "a test", Created: o.Now, Until: o.Now.Add(o.Every), Latency: latencyOf(s, fleet)}
	var err error
	if r.Sources, err = demandOf(s, fleet, o); err != nil {
		t.Fatal(err)
	}
	if r.Engines, err = healthOf(s, fleet); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWrite(t *testing.T) {
	fleet, paths := testFleet(t)
	given, err := os.ReadFile(paths.Engines)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "inputs")
	for i, rps := range []float64{10, 20, 30} {
		if err := collected(t, fleet, rps).Write(folder, paths); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(folder, "demand.csv"))
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			`# made by irbctl collect at 2027-01-15T08:00:00Z for fleet "prod"
# from a test
# demand offered until 2027-01-15T09:00:00Z: level x shape x margin of each source
# east/chat: 10 req/s (1 h) x 1 (no week of data) x 1.2 (by default); not measured: prompt_tokens, output_tokens, cached_fraction, requests_per_key
# west/chat: not measured, as the fleet has it
cluster,class,rps,prompt_tokens,output_tokens,cached_fraction,requests_per_key
east,chat,12,900,200,0,1
west,chat,20,900,200,0,1
`, "\neast,chat,24,", "\neast,chat,36,"}[i]
		if !strings.Contains(string(text), want) {
			t.Errorf("demand.csv:\n%s, want %q", text, want)
		}
	}
	previous, err := input.Read(input.Paths{Folder: folder + ".previous"})
	if err != nil || previous.Demand[0].RPS != 24 {
		t.Errorf("previous: %+v, %v, want the one before", previous, err)
	}
	now, err := input.Read(input.Paths{Folder: folder})
	if err != nil || now.Engines[0].Health != 0.5 || now.Engines[1].CapacityRPS != 1000 || len(now.Engines[0].Endpoints) != 2 {
		t.Errorf("%+v, %v", now, err)
	}
	if after, err := os.ReadFile(paths.Engines); err != nil || string(after) != string(given) {
		t.Errorf("the operator's engines.toml has changed, %v", err)
	}
	left, err := os.ReadDir(filepath.Dir(folder))
	if err != nil || len(left) != 2 {
		t.Errorf("beside inputs and inputs.previous: %v %v", left, err)
	}
}

// All files or none, and nothing of somebody else's.
func TestWriteRefuses(t *testing.T) {
	fleet, paths := testFleet(t)
	dir := t.TempDir()
	folder := filepath.Join(dir, "inputs")
	r := collected(t, fleet, 10)
	if err := r.Write(folder, paths); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(folder, "demand.csv"))
	if err != nil {
		t.Fatal(err)
	}
	r.Sources[0].RPS = -1
	if err := r.Write(folder, paths); err == nil || !strings.Contains(err.Error(), "rps is -1") {
		t.Errorf("%v, want the reason that no solve would take it", err)
	}
	if after, err := os.ReadFile(filepath.Join(folder, "demand.csv")); err != nil || string(after) != string(before) {
		t.Errorf("the last inputs have changed, %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
	r.Sources[0].RPS = 1
	if err := r.Write(filepath.Dir(paths.Engines), paths); err == nil || !strings.Contains(err.Error(), "has not written") {
		t.Errorf("%v, want a refusal to replace what a person wrote", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Write(folder, paths); err == nil || !strings.Contains(err.Error(), `holds "notes.txt"`) {
		t.Errorf("%v, want a refusal to replace a folder with other files", err)
	}
}

func TestSwap(t *testing.T) {
	for name, swap := range map[string]func(a, b string) error{"in one step": swap, "in steps": swapInSteps} {
		dir := t.TempDir()
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		for _, d := range []string{a, b} {
			if err := os.Mkdir(d, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(d, "name"), []byte(filepath.Base(d)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := swap(a, b); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{a: "b", b: "a"} {
			if got, err := os.ReadFile(filepath.Join(path, "name")); err != nil || string(got) != want {
				t.Errorf("%s: %s holds %s, want %s, %v", name, path, got, want, err)
			}
		}
		if err := swap(a, filepath.Join(dir, "none")); err == nil {
			t.Errorf("%s: swapped with nothing", name)
		}
	}
}
