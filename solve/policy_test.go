package solve

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/input"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/proof"
)

// withPolicy reads the queueing example, a-1 of 90 req/s in region-a and c-1 of
// 72 in region-c, with another policy and demand.
func withPolicy(t *testing.T, policy, demand string) *model.Fleet {
	t.Helper()
	folder := t.TempDir()
	paths := input.Paths{
		Folder: "../examples/two-regions-queueing",
		Policy: filepath.Join(folder, "policy.toml"), Demand: filepath.Join(folder, "demand.csv"),
	}
	for path, text := range map[string]string{paths.Policy: policy, paths.Demand: demand} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fleet, err := input.Read(paths)
	if err != nil {
		t.Fatal(err)
	}
	return fleet
}

const (
	heavy = "cluster,rps\nus-east,120\nus-west,40\n"
	light = "cluster,rps\nus-east,20\nus-west,10\n"
)

// What binds is named with how much it lets through, and by how much that is
// short; whether shedding would help is known.
func TestInfeasibleInWords(t *testing.T) {
	for _, c := range []struct {
		name, policy, demand, want string
		sheddable                  bool
	}{
		{"max_share of a class", "[[class]]\nname = \"c\"\nmax_share = 0.4\n", heavy,
			"infeasible: us-east/c, us-west/c demand 160 req/s: max_share of class c allows us-east/c, us-west/c at most 128 req/s on a-1, c-1; short by 32 req/s", true},
		{"max_domain_share", "[[class]]\nname = \"c\"\nmax_domain_share = 0.4\n", heavy,
			"infeasible: us-east/c, us-west/c demand 160 req/s: max_domain_share of c in region region-a allows us-east/c, us-west/c at most 64 req/s on a-1; " +
				"max_domain_share of c in region region-c allows us-east/c, us-west/c at most 64 req/s on c-1; short by 32 req/s", true},
		{"a cap and an engine", "[[cap]]\nregion = \"region-a\"\nmax_rps = 50\n", heavy,
			"infeasible: us-east/default, us-west/default demand 160 req/s: c-1 takes at most 72 reference req/s; cap 1 (policy.toml:1) lets a-1 take at most 50 reference req/s; short by 38 req/s", true},
		{"a cap, in reference requests", "[[cap]]\nregion = \"region-a\"\nmax_rps = 5\n[[cap]]\nregion = \"region-c\"\nmax_rps = 5\n", "cluster,rps,prompt_tokens,output_tokens\nus-east,20,2048,512\n",
			"infeasible: us-east/default demands 20 req/s (40 reference req/s of work): cap 1 (policy.toml:1) lets a-1 take at most 5 reference req/s; cap 2 (policy.toml:4) lets c-1 take at most 5 reference req/s; short by 15 req/s", true},
		{"rules on an engine and a region",
			"[[rule]]\ncluster = \"us-east\"\nengine = \"a-1\"\nmax_share = 0.3\n[[rule]]\ncluster = \"us-east\"\nregion = \"region-c\"\nmax_share = 0.3\n", light,
			"infeasible: us-east/default demands 20 req/s: rule 2 (policy.toml:5) allows us-east/default at most 6 req/s on c-1; rule 1 (policy.toml:1) allows us-east/default at most 6 req/s on a-1; short by 8 req/s", true},
		{"minima beyond demand",
			"[[rule]]\ncluster = \"us-east\"\nengine = \"a-1\"\nmin_share = 0.7\n[[rule]]\ncluster = \"us-east\"\nengine = \"c-1\"\nmin_share = 0.6\n", light,
			"infeasible: us-east/default demands 20 req/s: rule 1 (policy.toml:1) wants at least 14 req/s of us-east/default on a-1; rule 2 (policy.toml:5) wants at least 12 req/s of us-east/default on c-1; short by 6 req/s", false},
		{"minima beyond an engine", "[[rule]]\nengine = \"c-1\"\nmin_share = 0.6\n", heavy,
			"infeasible: least shares ask for more than can be had: c-1 takes at most 72 reference req/s; rule 1 (policy.toml:1) wants at least 96 req/s of us-east/default, us-west/default on c-1; short by 24 req/s", false},
		{"minima beyond a cap", "[[rule]]\nregion = \"region-c\"\nmin_share = 0.5\n[[cap]]\nengine = \"c-1\"\nmax_rps = 3\n", light,
			"infeasible: least shares ask for more than can be had: cap 1 (policy.toml:4) lets c-1 take at most 3 reference req/s; rule 1 (policy.toml:1) wants at least 15 req/s of us-east/default, us-west/default on c-1; short by 12 req/s", false},
		{"nothing to use", "[[class]]\nname = \"c\"\nresidency = { region = \"region-a\" }\n[[rule]]\nengine = \"a-1\"\nmax_share = 0\n", light,
			`infeasible: us-east/c, us-west/c demand 30 req/s, and no engine may serve them; give them one or take them out; short by 30 req/s; engine "a-1" is out of reach of us-east/c: rule 1 (policy.toml:4) forbids it; ` +
				`engine "c-1" is out of reach of us-east/c: residency region = ["region-a"] excludes it: its region is "region-c"`, false},
		{"a cap of nothing", "[[cap]]\nengine = \"a-1\"\nmax_rps = 0\n", "cluster,rps\nus-east,80\n",
			`infeasible: us-east/default demands 80 req/s, and may only use c-1, which takes at most 72 reference req/s; short by 8 req/s; engine "a-1" is out of reach of us-east/default: cap 1 (policy.toml:1) lets it take nothing`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Solve(context.Background(), withPolicy(t, c.policy, c.demand), Options{})
			var infeasible *InfeasibleError
			if !errors.As(err, &infeasible) {
				t.Fatalf("error is %v, want an *InfeasibleError", err)
			}
			if err.Error() != c.want || infeasible.Sheddable != c.sheddable {
				t.Errorf("got  %v, sheddable %v\nwant %s, sheddable %v", err, infeasible.Sheddable, c.want, c.sheddable)
			}
		})
	}
}

func fallbackNames(s *snapshot.Source) (names []string) {
	for _, f := range s.Fallbacks {
		names = append(names, f.Engine)
	}
	return names
}

// What a rule or a cap allows nothing is no fallback and no engine of a source
// without demand, and a snapshot that says so has no proof.
func TestNothingGoesWhereNothingMay(t *testing.T) {
	for name, policy := range map[string]string{
		"a share of an engine": "[[rule]]\nengine = \"c-1\"\nmax_share = 0\n",
		"a share of a region":  "[[rule]]\nregion = \"region-c\"\nmax_share = 0\n",
		"a cap":                "[[cap]]\nengine = \"c-1\"\nmax_rps = 0\n",
	} {
		t.Run(name, func(t *testing.T) {
			fleet := withPolicy(t, policy, "cluster,rps\nus-east,20\nus-west,0\n")
			s := build(t, plan(t, fleet, nil), nil)
			for i := range s.Sources {
				if s.Sources[i].Weights[0].Engine != "a-1" || len(s.Sources[i].Fallbacks) != 0 {
					t.Errorf("%s goes to %s and falls back to %v", s.Sources[i].Cluster, s.Sources[i].Weights[0].Engine, fallbackNames(&s.Sources[i]))
				}
			}
			s.Sources[0].Fallbacks = []snapshot.Fallback{{Engine: "c-1"}}
			if _, err := proof.Check(fleet, s, nil); err == nil || !strings.Contains(err.Error(), `fallback on "c-1", which may not serve it`) {
				t.Errorf("a fallback where nothing may go: %v", err)
			}
		})
	}
}

// A fallback absorbs no more than shares, caps and what is free allow.
func TestFallbacksKeepToShares(t *testing.T) {
	for name, c := range map[string]struct {
		policy string
		most   float64
	}{
		"a share":       {"[[rule]]\nengine = \"c-1\"\nmax_share = 0.1\n", 0.2},
		"a region's":    {"[[rule]]\nregion = \"region-c\"\nmax_share = 0.1\n", 0.2},
		"a class's":     {"[[class]]\nname = \"c\"\nmax_share = 1\n[[rule]]\nengine = \"c-1\"\nmax_share = 0.05\n", 0.1},
		"a cap, in use": {"[[cap]]\nengine = \"c-1\"\nmax_rps = 4\n", (4 - 1) * 2.0 / 3},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(t, withPolicy(t, c.policy, "cluster,rps\nus-east,2\nus-west,1\n"), nil)
			s, err := p.Snapshot(Head{Now: created, ExpiresIn: 1}, nil)
			if err != nil {
				t.Fatal(err)
			}
			fallbacks := s.Sources[0].Fallbacks
			if len(fallbacks) != 1 || fallbacks[0].Engine != "c-1" {
				t.Fatalf("us-east falls back to %v, want c-1", fallbackNames(&s.Sources[0]))
			}
			near(t, "what c-1 absorbs", fallbacks[0].AbsorbRPS, c.most, 1e-6)
		})
	}
}

// A source of which all is shed still has a weight, a reason and fallbacks.
func TestAllShed(t *testing.T) {
	policy := "shed = \"allow\"\n[[class]]\nname = \"high\"\npriority = 1\n[[class]]\nname = \"low\"\n"
	fleet := withPolicy(t, policy, "cluster,class,rps\nus-east,high,200\nus-east,low,10\nus-west,low,10\n")
	s := build(t, plan(t, fleet, nil), nil)
	for _, source := range s.Sources[1:] {
		if source.ServedRPS != 0 || len(source.Weights) != 1 || source.Weights[0].Code != "shed" || len(source.Fallbacks) != 1 {
			t.Errorf("%s/%s: %+v", source.Cluster, source.Class, source)
		}
	}
	if _, err := proof.Check(fleet, s, nil); err != nil {
		t.Error(err)
	}
}

// A loss after which rules cannot be kept is no reason to refuse the plan: least
// shares give way, and the engine that is left takes over.
func TestLossThatBreaksRules(t *testing.T) {
	for name, policy := range map[string]string{
		"of a region":          "[[rule]]\nregion = \"region-a\"\nmin_share = 0.5\n",
		"of an engine, beyond": "[[rule]]\nengine = \"c-1\"\nmin_share = 0.6\n[[rule]]\nengine = \"c-1\"\nmax_share = 0.6\n",
	} {
		for _, work := range []model.WorkKind{model.WorkSingle, model.WorkSplit} {
			t.Run(name+"/"+string(work), func(t *testing.T) {
				fleet := withPolicy(t, policy, light)
				fleet.Policy.Work = work
				p := plan(t, fleet, nil)
				contingencies, err := p.Contingencies(context.Background(), 2)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range contingencies {
					if c.Unsolved != nil {
						t.Errorf("without %s: %v", p.Engines[c.Lost].Name, c.Unsolved)
					}
				}
			})
		}
	}
}

// A least share on an engine that is down gives way, with a warning.
func TestLeastShareOfWhatIsDown(t *testing.T) {
	for what, rule := range map[string]string{"a-1": "engine = \"a-1\"", "region region-a": "region = \"region-a\""} {
		fleet := withPolicy(t, "[[rule]]\n"+rule+"\nmin_share = 0.5\n", light)
		fleet.Engines[0].Health = 0
		p := plan(t, fleet, nil)
		want := "rule 1 (policy.toml:1): its min_share is left out for us-east/default and 1 other sources, which may not use " + what + " now"
		if len(p.Warnings) != 1 || p.Warnings[0] != want {
			t.Errorf("warnings are %q, want %q", p.Warnings, want)
		}
	}
}

// Fallbacks of a source without demand are in other failure domains, where it
// can reach them.
func TestIdleFallbackDomains(t *testing.T) {
	fleet := withPolicy(t, "fleet = \"test\"\n", "cluster,rps\nus-east,2\nus-west,1\n")
	copyEngine(fleet, 1, "c-2")
	fleet.Demand[1].RPS = 0 // us-west: c-1, then c-2 in the same region, then a-1
	s := build(t, plan(t, fleet, nil), nil)
	if got := fallbackNames(&s.Sources[1]); len(got) != 2 || got[0] != "a-1" {
		t.Errorf("us-west without demand uses %s and falls back to %v, want a-1 first", s.Sources[1].Weights[0].Engine, got)
	}
}

// Where a cap binds, its price is part of what a first request costs.
func TestIdleSourcePaysForCaps(t *testing.T) {
	fleet := withPolicy(t, "[[cap]]\nengine = \"c-1\"\nmax_rps = 30\n", "cluster,rps\nus-east,110\nus-west,0\n")
	s := build(t, plan(t, fleet, nil), nil)
	price := s.Sources[1].PriceMs
	fleet.Demand[1].RPS = 1e-6
	near(t, "one more request of us-west", price, build(t, plan(t, fleet, nil), nil).Sources[1].PriceMs, 1e-2)
}
