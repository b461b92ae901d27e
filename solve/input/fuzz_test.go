package input

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/BurntSushi/toml"

	"github.com/irb-project/irb/solve/model"
)

// seeds returns the texts of a file in the fixtures and golden cases.
func seeds(f *testing.F, name string) []string {
	f.Helper()
	var texts []string
	paths, err := filepath.Glob(filepath.Join(fixtures, "*", name))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		texts = append(texts, string(data))
	}
	cases, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range cases {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, text := range strings.Split(string(data), "\n==== ") {
			text, _, _ = strings.Cut(text, "----\n")
			for _, file := range txtar.Parse([]byte(text)).Files {
				if file.Name == name {
					texts = append(texts, string(file.Data))
				}
			}
		}
	}
	if len(texts) == 0 {
		f.Fatal("no seeds of ", name)
	}
	return texts
}

// readTexts reads a fleet whose files are the given texts.
func readTexts(texts map[string]string) (*inputs, *model.Fleet, error) {
	in := &inputs{policy: defaultPolicy()}
	set := func(f *file, names ...string) bool {
		for _, name := range names {
			if text, ok := texts[name]; ok {
				f.path, f.file, f.text = name, name, []byte(text)
				return true
			}
		}
		return false
	}
	if set(&in.demandFile, "demand.toml", "demand.csv") {
		in.demand = readDemand(&in.demandFile)
	}
	if set(&in.latencyFile, "latency.csv") {
		in.latency = readLatency(&in.latencyFile)
	}
	if set(&in.enginesFile, "engines.toml") {
		in.engines, in.profiles = readEngines(&in.enginesFile)
	}
	if set(&in.policyFile, "policy.toml") {
		in.policy = readPolicy(&in.policyFile)
	}
	fleet, err := in.fleet()
	return in, fleet, err
}

// fuzzFile puts any text in the place of one file of a good fleet: the reader
// must not panic, must point into the files, must say the same twice, and what
// it lets through must be a fleet of good numbers and names.
func fuzzFile(f *testing.F, fixture, name string) {
	for _, text := range seeds(f, name) {
		f.Add(text)
	}
	texts := fleetFiles(f, fixture)
	f.Fuzz(func(t *testing.T, text string) {
		texts := map[string]string{"demand.toml": texts["demand.toml"], "latency.csv": texts["latency.csv"], "engines.toml": texts["engines.toml"]}
		if name == "demand.csv" {
			delete(texts, "demand.toml")
		}
		texts[name] = text
		in, fleet, err := readTexts(texts)
		_, _, again := readTexts(texts)
		if fmt.Sprint(err) != fmt.Sprint(again) {
			t.Errorf("says %v, then %v", err, again)
		}
		for _, r := range []*report{&in.demandFile.report, &in.latencyFile.report, &in.enginesFile.report, &in.policyFile.report} {
			for _, p := range append(r.problems, r.warnings...) {
				last := strings.Count(texts[p.File], "\n") + 1
				if _, ok := texts[p.File]; !ok || p.Line < 0 || p.Line > last {
					t.Errorf("%v points to line %d of %d", p, p.Line, last)
				}
			}
		}
		if err == nil {
			if err := sound(fleet); err != nil {
				t.Errorf("%v in\n%s", err, text)
			}
		} else if _, ok := errors.AsType[*Problems](err); !ok || fleet != nil {
			t.Errorf("error is %T, fleet is %v", err, fleet)
		}
	})
}

func FuzzDemandTOML(f *testing.F) { fuzzFile(f, "matrix", "demand.toml") }
func FuzzDemandCSV(f *testing.F)  { fuzzFile(f, "matrix", "demand.csv") }
func FuzzLatency(f *testing.F)    { fuzzFile(f, "matrix", "latency.csv") }
func FuzzEngines(f *testing.F)    { fuzzFile(f, "matrix", "engines.toml") }
func FuzzPolicy(f *testing.F)     { fuzzFile(f, "matrix", "policy.toml") }

// sound returns what a fleet has that a solver must never see.
func sound(f *model.Fleet) error {
	var errs []error
	check := func(what string, v, lo, hi float64) {
		if !(v >= lo && v <= hi) {
			errs = append(errs, fmt.Errorf("%s is %v, not in [%v, %v]", what, v, lo, hi))
		}
	}
	name := func(what, s string) {
		if !validName(s) {
			errs = append(errs, fmt.Errorf("%s has the name %q", what, s))
		}
	}
	const tiny, most = smallest, largest
	classes := make(map[string]bool)
	for _, c := range f.Policy.Classes {
		name("class", c.Name)
		classes[c.Name] = true
		check("max_share", c.MaxShare, 0, 1)
		check("max_domain_share", c.MaxDomainShare, 0, 1)
	}
	check("max_utilization", f.Policy.MaxUtilization, tiny, 1)
	check("output_token_work", f.Policy.OutputTokenWork, tiny, most)
	check("round_trips", f.Policy.RoundTrips, 0, most)
	for _, r := range f.Policy.Rules {
		if (r.Engine == "") == (r.Region == "") {
			errs = append(errs, fmt.Errorf("%s has not one of engine and region", r.Name))
		}
	}
	for _, d := range f.Demand {
		name(d.Origin, d.Cluster)
		if !classes[d.Class] {
			errs = append(errs, fmt.Errorf("%s has class %q", d.Origin, d.Class))
		}
		check("rps", d.RPS, 0, most)
		check("prompt_tokens", d.PromptTokens, tiny, most)
		check("output_tokens", d.OutputTokens, 0, most)
		check("cached_fraction", d.CachedFraction, 0, math.Nextafter(1, 0))
		check("requests_per_key", d.RequestsPerKey, tiny, most)
	}
	profiles := make(map[string]bool)
	for _, p := range f.Profiles {
		name("profile", p.Name)
		profiles[p.Name] = true
		check("prompt_tokens", p.PromptTokens, tiny, most)
		check("output_tokens", p.OutputTokens, tiny, most)
		n := max(1, len(p.Utilization))
		if len(p.TTFTMs) != n || len(p.TBOTMs) != n || (len(p.Utilization) == 0) == (p.Queueing == "") {
			errs = append(errs, fmt.Errorf("profile %q is neither a table nor a formula", p.Name))
		}
	}
	for _, e := range f.Engines {
		name("engine", e.Name)
		name("region", e.Region)
		check("capacity_rps", e.CapacityRPS, 0, most)
		check("health", e.Health, 0, 1)
		check("max_utilization", e.MaxUtilization, 0, 1)
		if !profiles[e.Profile] || len(e.Endpoints) == 0 {
			errs = append(errs, fmt.Errorf("engine %q has profile %q and %d endpoints", e.Name, e.Profile, len(e.Endpoints)))
		}
	}
	if len(f.Latency.RTTMs) != len(f.Latency.From)*len(f.Latency.To) {
		errs = append(errs, fmt.Errorf("latency has %d cells, %d rows, %d columns", len(f.Latency.RTTMs), len(f.Latency.From), len(f.Latency.To)))
	}
	for _, ms := range f.Latency.RTTMs {
		if ms == ms {
			check("round trip", float64(ms), 0, 1.0001*most) // a float32 may round up
		}
	}
	return errors.Join(errs...)
}

// The fast route over the bytes and the one through encoding/csv are one.
func FuzzLatencyRoutes(f *testing.F) {
	for _, text := range seeds(f, "latency.csv") {
		f.Add([]byte(text))
	}
	f.Add([]byte("x,a\nb,\"1\"\r\n\r\n\"\",2\r"))
	f.Add([]byte("\"x\"\"y\",\"a\"\nb,1.\nc,.5\nd,000000000000000001\ne,1.2.3\nf, 4\t"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if spansLines(text) {
			return
		}
		var fast, strict report
		a := readLatencyText(&fast, text, false)
		b := readLatencyText(&strict, text, true)
		sortProblems(fast.problems)
		sortProblems(strict.problems)
		if diff := cmp.Diff(strict.problems, fast.problems); diff != "" {
			t.Fatalf("problems (-strict +fast):\n%s", diff)
		}
		if strict.omitted != fast.omitted || strict.partial != fast.partial {
			t.Fatalf("strict omits %d (partial: %v), fast %d (%v)", strict.omitted, strict.partial, fast.omitted, fast.partial)
		}
		if diff := cmp.Diff(b, a, cmp.AllowUnexported(latency{}), cmpopts.EquateNaNs()); diff != "" && fast.ok() {
			t.Fatalf("latency (-strict +fast):\n%s", diff)
		}
	})
}

// The short way to read a number gives what the long way gives, to the bit.
func FuzzSimpleRTT(f *testing.F) {
	for _, s := range []string{"0", "65", "2.5", "0.1", "00012", "999999999999999", "0.000000000000001", "12345678.9012345", "16777217", "1.", ".1", "1.2.3", "", "1e3", "1,2", "3.14,"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, length := simpleRTT(text)
		if length < 0 {
			return
		}
		cell, _, _ := bytes.Cut(text, comma)
		want, problem := fullRTT(cell)
		if problem != "" || length != len(cell) || math.Float32bits(got) != math.Float32bits(want) {
			t.Errorf("%q: got %v of %d bytes, want %v of %d bytes (%s)", cell, got, length, want, len(cell), problem)
		}
	})
}

func FuzzIndexLines(f *testing.F) {
	for _, name := range []string{"demand.toml", "engines.toml", "policy.toml"} {
		for _, text := range seeds(f, name) {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		index := indexLines(text) // must end whatever the text
		var values map[string]any
		if _, err := toml.Decode(text, &values); err != nil {
			return
		}
		if err := mirrors(index, values); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	})
}
