package solve

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/certify"
	"github.com/irb-project/irb/solve/input"
	"github.com/irb-project/irb/solve/lp"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/proof"
)

var created = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func readFleet(t *testing.T, folder string) *model.Fleet {
	t.Helper()
	fleet, err := input.Read(input.Paths{Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	return fleet
}

func plan(t *testing.T, fleet *model.Fleet, previous *snapshot.Snapshot) *Plan {
	t.Helper()
	p, err := Solve(context.Background(), fleet, Options{Previous: proof.PreviousWeights(previous)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func build(t *testing.T, p *Plan, previous *snapshot.Snapshot) *snapshot.Snapshot {
	t.Helper()
	contingencies, err := p.Contingencies(context.Background(), 64)
	if err != nil {
		t.Fatal(err)
	}
	h := Head{Now: created, ExpiresIn: time.Hour, Previous: previous}
	if previous != nil {
		h.PreviousDigest = snapshot.Input{Role: "previous", File: "weights.toml", SHA256: strings.Repeat("0", 64)}
	}
	s, err := p.Snapshot(h, contingencies)
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Check(s); err != nil {
		t.Fatal(err)
	}
	return s
}

func weight(t *testing.T, s *snapshot.Snapshot, cluster, engine string) snapshot.Weight {
	t.Helper()
	for _, source := range s.Sources {
		for _, w := range source.Weights {
			if source.Cluster == cluster && w.Engine == engine {
				return w
			}
		}
	}
	t.Fatalf("no weight of %s on %s", cluster, engine)
	return snapshot.Weight{}
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// The talk's case, by hand: a-1 is full at 100, the rest pays 63 ms more.
func TestTwoRegions(t *testing.T) {
	s := build(t, plan(t, readFleet(t, "../examples/two-regions"), nil), nil)
	near(t, "us-east on a-1", weight(t, s, "us-east", "a-1").RPS, 100, 1e-9)
	near(t, "us-east on c-1", weight(t, s, "us-east", "c-1").RPS, 20, 1e-9)
	near(t, "us-west on c-1", weight(t, s, "us-west", "c-1").RPS, 40, 1e-9)
	near(t, "limit price of a-1", s.Engines[0].LimitPriceMs, 63, 1e-9)
	near(t, "limit in the cost of a-1", weight(t, s, "us-east", "a-1").Cost.Limit, 63, 1e-9)
	text := weight(t, s, "us-east", "a-1").Text
	for _, want := range []string{"a-1 is at its limit (100 of 100 req/s)", "63 limit price"} {
		if !strings.Contains(text, want) {
			t.Errorf("the reason of a-1 lacks %q: %s", want, text)
		}
	}
}

// By hand: 2 + 14720 v_a = 65 + 14720 v_c and 100 v_a + 80 v_c = 160.
func TestTwoRegionsQueueing(t *testing.T) {
	p := plan(t, readFleet(t, "../examples/two-regions-queueing"), nil)
	s := build(t, p, nil)
	near(t, "load of a-1", s.Engines[0].PlannedRPS, 89.0791, 5e-5)
	near(t, "load of c-1", s.Engines[1].PlannedRPS, 70.9209, 5e-5)
	near(t, "us-east on c-1", weight(t, s, "us-east", "c-1").RPS, 30.9209, 5e-5)
	near(t, "objective", s.Solver.Objective, 925509.5637, 5e-5)
	if p.Report.Gap > 1e-9 {
		t.Errorf("gap is %v, want at most 1e-9", p.Report.Gap)
	}
	if text := weight(t, s, "us-east", "a-1").Text; !strings.Contains(text, "not filled to its limit (89.0791 of 90 req/s)") {
		t.Errorf("the reason of a-1 does not say that spilling starts early: %s", text)
	}
}

// A second solve that shares nothing with the first but the model: plain CLP
// on a fine piecewise-linear program.
func TestFollowTheSunAgreesWithCLP(t *testing.T) {
	if !lp.Available {
		t.Skip(lp.ErrNoCLP)
	}
	p := plan(t, readFleet(t, "../examples/follow-the-sun"), nil)
	fine, err := lp.Fine(context.Background(), p.Problem, 4000)
	if err != nil {
		t.Fatal(err)
	}
	report, err := certify.Check(p.Problem, fine)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "objective", p.Report.ObjectiveMsRPS/report.ObjectiveMsRPS, 1, 1e-6)
	build(t, p, nil)
}

// The order of rows is in the digests of the files and nowhere else.
func TestRowOrderDoesNotMatter(t *testing.T) {
	for _, example := range []string{"two-regions-queueing", "follow-the-sun"} {
		fleet := readFleet(t, "../examples/"+example)
		want, err := snapshot.Encode(build(t, plan(t, fleet, nil), nil))
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, 2))
		for range 5 {
			random.Shuffle(len(fleet.Demand), func(i, j int) { fleet.Demand[i], fleet.Demand[j] = fleet.Demand[j], fleet.Demand[i] })
			random.Shuffle(len(fleet.Engines), func(i, j int) { fleet.Engines[i], fleet.Engines[j] = fleet.Engines[j], fleet.Engines[i] })
			random.Shuffle(len(fleet.Profiles), func(i, j int) {
				fleet.Profiles[i], fleet.Profiles[j] = fleet.Profiles[j], fleet.Profiles[i]
			})
			got, err := snapshot.Encode(build(t, plan(t, fleet, nil), nil))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("%s: another order of rows gives other bytes", example)
			}
		}
	}
}

func TestPreviousMovesExactlyTheDistance(t *testing.T) {
	fleet := readFleet(t, "../examples/two-regions-queueing")
	before := build(t, plan(t, fleet, nil), nil)
	for i := range fleet.Engines {
		if fleet.Engines[i].Name == "a-1" {
			fleet.Engines[i].CapacityRPS = 50
		}
	}
	for i := range fleet.Demand {
		fleet.Demand[i].RPS *= 0.7
	}
	after := build(t, plan(t, fleet, before), before)
	var distance, all float64
	for i := range after.Sources {
		quotas := make(map[string]int64)
		for _, w := range before.Sources[i].Weights {
			quotas[w.Engine] -= w.Quota
		}
		for _, w := range after.Sources[i].Weights {
			quotas[w.Engine] += w.Quota
		}
		for _, d := range quotas {
			distance += after.Sources[i].ServedRPS * math.Abs(float64(d)) / 2 / snapshot.QuotaSum
		}
		all += after.Sources[i].ServedRPS
	}
	if after.Solver.MovedShare == 0 {
		t.Error("nothing moved though a-1 lost half of its capacity")
	}
	near(t, "moved share", after.Solver.MovedShare, distance/all, 1e-12)
	if after.Sequence <= before.Sequence {
		t.Errorf("sequence went from %d to %d", before.Sequence, after.Sequence)
	}
	same := build(t, plan(t, fleet, after), after)
	if same.Solver.MovedShare != 0 {
		t.Errorf("solving again moved %v of the traffic", same.Solver.MovedShare)
	}
}

// A cache worth more than the detour keeps a conversation where it is.
func TestCachePenaltyKeepsWeights(t *testing.T) {
	fleet := readFleet(t, "../examples/two-regions")
	previous := build(t, plan(t, fleet, nil), nil)
	for i := range fleet.Demand {
		fleet.Demand[i].RPS *= 0.5 // now a-1 alone would do, 63 ms nearer
	}
	penalty := 100.0
	fleet.Policy.CachePenaltyMs = &penalty
	s := build(t, plan(t, fleet, previous), previous)
	near(t, "us-east on c-1", weight(t, s, "us-east", "c-1").RPS, 10, 1e-6)
	if code := weight(t, s, "us-east", "c-1").Code; code != "cache" {
		t.Errorf("the reason of c-1 is %q, want cache", code)
	}
	penalty = 10
	s = build(t, plan(t, fleet, previous), previous)
	near(t, "us-east on a-1", weight(t, s, "us-east", "a-1").RPS, 60, 1e-6)
}

// Fallbacks come from contingencies that touch the source, and reach two
// failure domains that it does not use where they can.
func TestFallbackDomains(t *testing.T) {
	fleet := readFleet(t, "../examples/follow-the-sun")
	s := build(t, plan(t, fleet, nil), nil)
	domain := make(map[string]string)
	for _, e := range s.Engines {
		domain[e.Name] = e.Domain
	}
	for _, source := range s.Sources {
		used, other := make(map[string]bool), make(map[string]bool)
		for _, w := range source.Weights {
			used[domain[w.Engine]] = true
		}
		for _, f := range source.Fallbacks {
			if !used[domain[f.Engine]] {
				other[domain[f.Engine]] = true
			}
			if _, lost, ok := strings.Cut(f.Text, "when "); ok {
				lost = strings.TrimSuffix(lost, " is lost")
				if !slices.ContainsFunc(source.Weights, func(w snapshot.Weight) bool { return w.Engine == lost }) {
					t.Errorf("%s/%s falls back to %s for the loss of %s, which it does not use", source.Cluster, source.Class, f.Engine, lost)
				}
			}
		}
		if source.Class == "chat" {
			if want := min(2, 4-len(used)); len(other) < want {
				t.Errorf("%s/%s uses %v and falls back to %v, want %d other domains", source.Cluster, source.Class, used, other, want)
			}
		}
	}
}

// The price of a source is the cost of one more request, also where what it
// has stays for its caches.
func TestPriceWhereConversationsStay(t *testing.T) {
	fleet := readFleet(t, "../examples/two-regions")
	previous := build(t, plan(t, fleet, nil), nil)
	penalty := 40.0
	fleet.Policy.CachePenaltyMs = &penalty
	s := build(t, plan(t, fleet, previous), previous)
	near(t, "one more request of us-west", s.Sources[1].PriceMs, 3154, 1e-6)
	w := weight(t, s, "us-west", "c-1")
	near(t, "its cost at c-1", w.Cost.Total, 3154, 1e-6)
}

func TestInfeasibleNamesTheBindingSet(t *testing.T) {
	fleet := readFleet(t, "../examples/two-regions")
	for i := range fleet.Demand {
		fleet.Demand[i].RPS *= 2
	}
	_, err := Solve(context.Background(), fleet, Options{})
	var infeasible *InfeasibleError
	if !errors.As(err, &infeasible) {
		t.Fatalf("error is %v, want an *InfeasibleError", err)
	}
	for _, want := range []string{"us-east/default", "us-west/default", "320 req/s", "a-1, c-1", "at most 180", "short by 140 req/s"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
}

// TestGuardTravels: what the policy says of a class's guards, at both ends of
// its ranges, is in a snapshot that agents accept.
func TestGuardTravels(t *testing.T) {
	for _, text := range []string{
		"retry_attempts = 1\nretry_budget_ratio = 0\nretry_budget_floor = 0\nttft_timeout_ms = 10\nidle_timeout_ms = 10\ntotal_timeout_ms = 10\n",
		"retry_attempts = 10\nretry_budget_ratio = 1\nretry_budget_floor = 1000\nttft_timeout_ms = 3600000\nidle_timeout_ms = 3600000\ntotal_timeout_ms = 86400000\n",
	} {
		policy := filepath.Join(t.TempDir(), "policy.toml")
		if err := os.WriteFile(policy, []byte("[[class]]\nname = \"chat\"\n[class.guard]\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		fleet, err := input.Read(input.Paths{Folder: "../examples/two-regions", Policy: policy})
		if err != nil {
			t.Fatal(err)
		}
		got := build(t, plan(t, fleet, nil), nil).Classes[0].Guard
		if diff := cmp.Diff(snapshot.Guard(fleet.Policy.Classes[0].Guard), got); diff != "" || got.RetryAttempts == 0 || got.RetryBudgetFloor == nil || got.TotalTimeoutMs == 0 {
			t.Errorf("guard is %+v: %s", got, diff)
		}
	}
}

func TestIdleSourceGetsItsCheapestEngine(t *testing.T) {
	fleet := readFleet(t, "../examples/two-regions")
	for i := range fleet.Demand {
		if fleet.Demand[i].Cluster == "us-west" {
			fleet.Demand[i].RPS = 0
		}
	}
	s := build(t, plan(t, fleet, nil), nil)
	if w := weight(t, s, "us-west", "c-1"); w.Fraction != 1 || w.Quota != snapshot.QuotaSum || w.Code != "idle" {
		t.Errorf("us-west without demand has %+v", w)
	}
}

// The proof that travels in the file holds against the inputs, and breaks when
// the file or the inputs say something else.
func TestProof(t *testing.T) {
	for _, example := range []string{"two-regions", "two-regions-queueing", "follow-the-sun"} {
		fleet := readFleet(t, "../examples/"+example)
		s := build(t, plan(t, fleet, nil), nil)
		if _, err := proof.Check(fleet, s, nil); err != nil {
			t.Errorf("%s: %v", example, err)
		}
		fleet.Engines[0].CapacityRPS *= 0.9
		if _, err := proof.Check(fleet, s, nil); err == nil {
			t.Errorf("%s: the proof holds for an engine that shrank", example)
		}
		fleet.Engines[0].CapacityRPS /= 0.9
		s.Sources[0].Weights[0].RPS *= 1.001
		if _, err := proof.Check(fleet, s, nil); err == nil {
			t.Errorf("%s: the proof holds for another rate", example)
		}
	}
}
