package main

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"aead.dev/minisign"

	"github.com/irb-project/irb/agent/snapshot"
)

// testFleet is a folder with an agent.toml and a signed weight file over
// engines that answer with their own name: two in zone eu, one in zone us. Class
// "eu" may only use the former.
type testFleet struct {
	t       testing.TB
	dir     string
	private minisign.PrivateKey
	engines []*httptest.Server
	names   []string
}

func newFleet(t testing.TB, config string) *testFleet {
	t.Helper()
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	f := &testFleet{t: t, dir: t.TempDir(), private: private, names: []string{"eu-1", "eu-2", "us-1"}}
	for _, name := range f.names {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, name)
		}))
		t.Cleanup(s.Close)
		f.engines = append(f.engines, s)
	}
	text := fmt.Sprintf(`fleet = "prod"
cluster = "here"
weights = "weights.toml"
trusted_keys = [%q]
allow_engine_networks = ["127.0.0.0/8"]
state_dir = "state"
status_listen = "127.0.0.1:0"
debug_listen = "unix:%s/debug.sock"
poll_interval = "100ms"
%s
[[listener]]
address = "127.0.0.1:0"
`, public.String(), f.dir, config)
	f.write("agent.toml", []byte(text))
	return f
}

func (f *testFleet) path(name string) string { return filepath.Join(f.dir, name) }

func (f *testFleet) write(name string, data []byte) {
	f.t.Helper()
	if err := os.WriteFile(f.path(name), data, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// publish signs and writes a snapshot in which class eu goes to eu-1 up to cut
// and to eu-2 beyond, and class any over all three.
func (f *testFleet) publish(sequence int64, cut uint32, expires time.Time) {
	f.t.Helper()
	body, err := snapshot.Encode(f.snapshot(sequence, cut, expires))
	if err != nil {
		f.t.Fatal(err)
	}
	file, err := snapshot.Sign(body, f.private)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := snapshot.WriteFile(f.path("weights.toml"), file); err != nil {
		f.t.Fatal(err)
	}
}

func (f *testFleet) snapshot(sequence int64, cut uint32, expires time.Time) *snapshot.Snapshot {
	profile := snapshot.Profile{
		Name: "flat", PromptTokens: 1024, OutputTokens: 256,
		TTFTV: []float64{0}, TTFTMs: []float64{80}, TBOTV: []float64{0}, TBOTMs: []float64{12},
	}
	s := &snapshot.Snapshot{
		Format: snapshot.Format, Fleet: "prod", Sequence: sequence,
		Created: expires.Add(-24 * time.Hour), Expires: expires,
		Solver: snapshot.Solver{Method: "by hand", Work: "single"},
		Policy: snapshot.Policy{MaxUtilization: 1, OutputTokenWork: 4, RoundTrips: 1, Shed: "forbid", FailureDomain: "region"},
		Classes: []snapshot.Class{
			{Name: "eu", Model: "eu-model", Residency: map[string][]string{"zone": {"eu"}}},
			{Name: "any", Model: "any-model"},
		},
	}
	for i, name := range f.names {
		s.Engines = append(s.Engines, snapshot.Engine{
			Name: name, Region: name, Domain: name, Endpoints: []string{f.engines[i].URL},
			Labels: map[string]string{"zone": name[:2]}, CapacityRPS: 100, LimitRPS: 100, Profile: profile,
		})
	}
	s.Sources = []snapshot.Source{
		source("any", []uint32{0, cut / 2, cut}, []string{"eu-1", "us-1", "eu-2"}),
		source("eu", []uint32{0, cut}, []string{"eu-1", "eu-2"}),
	}
	return s
}

func source(class string, from []uint32, to []string) snapshot.Source {
	s := snapshot.Source{Cluster: "here", Class: class, OfferedRPS: 10, ServedRPS: 10, LayoutFrom: from, LayoutTo: to}
	quota := map[string]int64{}
	for i := range from {
		end := int64(snapshot.QuotaSum)
		if i+1 < len(from) {
			end = int64(from[i+1])
		}
		quota[to[i]] += end - int64(from[i])
	}
	for _, name := range []string{"eu-1", "eu-2", "us-1"} {
		if q := quota[name]; q > 0 {
			share := float64(q) / snapshot.QuotaSum
			s.Weights = append(s.Weights, snapshot.Weight{Engine: name, Quota: q, Fraction: share, RPS: 10 * share, Code: "test", Text: "by hand"})
		}
	}
	return s
}
