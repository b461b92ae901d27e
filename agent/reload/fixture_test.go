package reload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"aead.dev/minisign"

	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/agent/snapshot"
)

// created is the time of test snapshots of sequence 0; sequences count
// milliseconds from 1970, so those near 1000 are from then.
var created = time.UnixMilli(0).UTC()

// testSnapshot is a small snapshot that passes every check, valid for an hour
// from its sequence on.
func testSnapshot(sequence int64) *snapshot.Snapshot {
	profile := snapshot.Profile{
		Name: "p", PromptTokens: 1000, OutputTokens: 100,
		TTFTV: []float64{0, 1}, TTFTMs: []float64{80, 90}, TBOTV: []float64{0}, TBOTMs: []float64{12},
	}
	engine := func(name string) snapshot.Engine {
		return snapshot.Engine{
			Name: name, Region: "r", Domain: "r", Endpoints: []string{"http://10.0.0.1:8000"},
			CapacityRPS: 10, LimitRPS: 9, PlannedRPS: 1, PlannedRefRPS: 1, Utilization: 0.1, LatencyMs: 1300, Profile: profile,
		}
	}
	weight := func(name string, quota int64) snapshot.Weight {
		return snapshot.Weight{
			Engine: name, Quota: quota, Fraction: float64(quota) / snapshot.QuotaSum, RPS: float64(quota) / snapshot.QuotaSum,
			Cost: snapshot.Cost{Base: 1280, Total: 1280}, Code: "cheapest", Text: "nearest",
		}
	}
	return &snapshot.Snapshot{
		Format: snapshot.Format, Fleet: "prod", Sequence: sequence,
		Created: created.Add(time.Duration(sequence) * time.Millisecond),
		Expires: created.Add(time.Duration(sequence)*time.Millisecond + time.Hour),
		Inputs:  []snapshot.Input{{Role: "demand", File: "demand.toml", SHA256: snapshot.Digest(nil)}},
		Solver:  snapshot.Solver{Method: "network simplex", Work: "single", Objective: 1280, Bound: 1280, LatencyMs: 1280, OfferedRPS: 1, ServedRPS: 1},
		Policy:  snapshot.Policy{MaxUtilization: 0.9, OutputTokenWork: 4, RoundTrips: 1, Shed: "forbid", FailureDomain: "region"},
		Classes: []snapshot.Class{{Name: "k"}},
		Engines: []snapshot.Engine{engine("a"), engine("b")},
		Sources: []snapshot.Source{{
			Cluster: "c", Class: "k", OfferedRPS: 1, ServedRPS: 1, PromptTokens: 1000, OutputTokens: 100,
			PriceMs: 1280, LatencyMs: 1280, ProfileMs: 1280,
			LayoutFrom: []uint32{0, 1 << 31}, LayoutTo: []string{"a", "b"},
			Weights: []snapshot.Weight{weight("a", 1<<31), weight("b", 1<<31)},
		}},
	}
}

func testKey(t testing.TB, seed byte) (minisign.PublicKey, minisign.PrivateKey) {
	t.Helper()
	public, private, err := minisign.GenerateKey(rand.NewChaCha8([32]byte{seed}))
	if err != nil {
		t.Fatal(err)
	}
	return public, private
}

// signed returns the file of a snapshot, signed by the trusted key.
func signed(t testing.TB, s *snapshot.Snapshot) []byte {
	t.Helper()
	body, err := snapshot.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	_, key := testKey(t, 1)
	file, err := snapshot.Sign(body, key)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// agent is a Reloader with what a test needs around it.
type agent struct {
	t *testing.T
	*Reloader
	dir       string // of the weight file
	path      string
	events    chan Event
	published chan *pick.Table
	poll      chan time.Time

	mu   sync.Mutex
	time time.Time
}

// newAgent returns one that is not started; change adapts its options.
func newAgent(t *testing.T, change func(*Options)) *agent {
	t.Helper()
	a := &agent{
		t: t, dir: t.TempDir(), events: make(chan Event, 1000), published: make(chan *pick.Table, 1000),
		poll: make(chan time.Time), time: created.Add(time.Minute),
	}
	public, _ := testKey(t, 1)
	o := Options{
		Path: filepath.Join(a.dir, "weights.toml"), Fleet: "prod", Cluster: "c",
		Trusted: []minisign.PublicKey{public}, StateDir: filepath.Join(t.TempDir(), "state"),
		PollInterval: time.Hour,
		Now:          a.now,
		Build:        func(s *snapshot.Snapshot) (*pick.Table, error) { return pick.NewTable(s, "c") },
		Publish: func(table *pick.Table) {
			if s := a.Serving(); s != nil && s.Snapshot == table.Snapshot() {
				t.Error("said to be in service before requests were routed by it")
			}
			a.published <- table
		},
		Report: func(e Event) { a.events <- e },
	}
	if change != nil {
		change(&o)
	}
	a.path = o.Path
	a.reopen(o)
	return a
}

// reopen is a restart with these options.
func (a *agent) reopen(o Options) {
	a.t.Helper()
	var err error
	if a.Reloader, err = New(o); err != nil {
		a.t.Fatal(err)
	}
}

func (a *agent) now() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.time
}

func (a *agent) setTime(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.time = now
}

// follow runs the reloader until the test ends.
func (a *agent) follow() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.run(ctx, a.poll)
	}()
	a.t.Cleanup(func() { cancel(); <-done })
}

func (a *agent) write(file []byte) {
	a.t.Helper()
	if err := os.WriteFile(a.path, file, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// expect waits for the next event and checks its result and sequence.
func (a *agent) expect(result string, sequence int64) Event {
	a.t.Helper()
	select {
	case e := <-a.events:
		if e.Result != result || e.Sequence != sequence {
			a.t.Fatalf("got %s %d (%s), want %s %d", e.Result, e.Sequence, e, result, sequence)
		}
		return e
	case <-time.After(20 * time.Second):
		a.t.Fatalf("no event, want %s %d", result, sequence)
	}
	panic("not reached")
}

// await passes over events until a snapshot is accepted.
func (a *agent) await(sequence int64) {
	a.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case e := <-a.events:
			if e.Result == Accepted && e.Sequence == sequence {
				a.serves(sequence)
				return
			}
		case <-deadline:
			a.t.Fatalf("snapshot %d was not accepted", sequence)
		}
	}
}

// quiet checks that nothing was reported.
func (a *agent) quiet() {
	a.t.Helper()
	select {
	case e := <-a.events:
		a.t.Fatalf("unexpected event: %s", e)
	default:
	}
}

// serves checks what is in service; 0 is nothing.
func (a *agent) serves(sequence int64) {
	a.t.Helper()
	got := int64(0)
	if s := a.Serving(); s != nil {
		got = s.Snapshot.Sequence
	}
	if got != sequence {
		a.t.Fatalf("serving %d, want %d", got, sequence)
	}
}

// must fails the test on an error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// largeSnapshot has so many sources of two weights each.
func largeSnapshot(sequence int64, sources int) *snapshot.Snapshot {
	s := testSnapshot(sequence)
	source := s.Sources[0]
	s.Classes, s.Sources = nil, nil
	for i := range sources {
		source.Class = fmt.Sprintf("k%05d", i)
		s.Classes = append(s.Classes, snapshot.Class{Name: source.Class})
		s.Sources = append(s.Sources, source)
	}
	return s
}
