package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// These tests judge explanations from outside: they write the files of random
// fleets, half of them degenerate, read what irbctl says as JSON, and compute
// everything anew from the files with formulas of their own.

// town is a random fleet as it is written to files.
type town struct {
	names    []string // engines
	capacity []float64
	profile  []int
	clusters []string
	rps      []float64
	rtt      [][]float64 // cluster, engine
	cached   float64
}

// townPrompt and townOutput are the reference request and every request.
const townPrompt, townOutput, townMaxUtilization = 1000.0, 100.0, 0.8

// townV and townT are the profiles: utilization and TTFT in ms, convex, with
// kinks; an output token takes 1 ms whatever the load.
var townV = []float64{0, 0.25, 0.5, 0.75, 1}
var townT = [][]float64{{100, 110, 140, 200, 400}, {150, 152, 180, 300, 900}, {120, 150, 190, 260, 500}}

// newTown makes a fleet. Degenerate ones have few different numbers, so that
// loads end on kinks and at limits, and costs tie.
func newTown(random *rand.Rand, degenerate bool) *town {
	f := &town{}
	number := func(lo, hi float64, round float64) float64 {
		v := lo + (hi-lo)*random.Float64()
		if degenerate {
			v = math.Round(v/round) * round
		}
		return v
	}
	var limit float64
	for e := range 2 + random.IntN(4) {
		f.names = append(f.names, fmt.Sprintf("e%d", e))
		f.capacity = append(f.capacity, number(40, 160, 40))
		kind := random.IntN(len(townT))
		if degenerate {
			kind = random.IntN(2)
		}
		f.profile = append(f.profile, kind)
		limit += townMaxUtilization * f.capacity[e]
	}
	n := 1 + random.IntN(5)
	for s := range n {
		f.clusters = append(f.clusters, fmt.Sprintf("c%d", s))
		f.rps = append(f.rps, min(number(0.4, 1.2, 0.25)*limit/float64(n), 0.98*limit/float64(n)))
		row := make([]float64, len(f.names))
		for e := range row {
			row[e] = math.Round(64*number(1, 161, 40)) / 64 // exact in single precision
		}
		f.rtt = append(f.rtt, row)
	}
	if random.IntN(2) == 0 {
		f.cached = 0.5
	}
	return f
}

// write puts the files of the fleet into a folder.
func (f *town) write(t *testing.T, folder string) {
	t.Helper()
	var demand, latency, engines strings.Builder
	demand.WriteString("cluster,rps,prompt_tokens,output_tokens,cached_fraction\n")
	latency.WriteString("rtt_ms," + strings.Join(f.names, ",") + "\n")
	for s, cluster := range f.clusters {
		// The prompt is longer by what is cached, so that the work is the same.
		fmt.Fprintf(&demand, "%s,%v,%v,%v,%v\n", cluster, f.rps[s], townPrompt/(1-f.cached), townOutput, f.cached)
		latency.WriteString(cluster)
		for _, ms := range f.rtt[s] {
			fmt.Fprintf(&latency, ",%v", ms)
		}
		latency.WriteString("\n")
	}
	list := func(v []float64) string { return strings.ReplaceAll(fmt.Sprint(v), " ", ", ") }
	for i, ms := range townT {
		fmt.Fprintf(&engines, "[profile.p%d]\nprompt_tokens = %v\noutput_tokens = %v\nutilization = %s\nttft_ms = %s\ntbot_ms = [1, 1, 1, 1, 1]\n",
			i, townPrompt, townOutput, list(townV), list(ms))
	}
	for e, name := range f.names {
		fmt.Fprintf(&engines, "[[engine]]\nname = %q\nregion = \"r%d\"\nendpoints = [\"http://127.0.0.1:%d\"]\nprofile = \"p%d\"\ncapacity_rps = %v\n", name, e, 9000+e, f.profile[e], f.capacity[e])
	}
	for name, text := range map[string]string{
		"demand.csv": demand.String(), "latency.csv": latency.String(), "engines.toml": engines.String(),
		"policy.toml": fmt.Sprintf("fleet = \"town\"\nmax_utilization = %v\n", townMaxUtilization),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// at returns the TTFT of an engine and its slopes left and right of v.
func (f *town) at(e int, v float64) (ms, left, right float64) {
	table := townT[f.profile[e]]
	slope := func(i int) float64 { return (table[i+1] - table[i]) / (townV[i+1] - townV[i]) }
	for i := range len(townV) - 1 {
		if v > townV[i+1]+1e-9 {
			continue
		}
		ms = table[i] + slope(i)*(v-townV[i])
		left, right = slope(i), slope(i)
		switch {
		case math.Abs(v-townV[i+1]) <= 1e-9 && i+2 < len(townV):
			right = slope(i + 1)
		case math.Abs(v-townV[i]) <= 1e-9 && i > 0:
			left = slope(i - 1)
		}
		return ms, left, right
	}
	panic("utilization beyond the table")
}

// told is what irbctl explain says, as far as it is judged here.
type told struct {
	Sources []struct {
		Cluster      string     `json:"cluster"`
		PriceMs      float64    `json:"price_ms"`
		Weights      []toldPair `json:"weight"`
		Alternatives []toldPair `json:"alternative"`
	} `json:"source"`
}

type toldPair struct {
	Engine string  `json:"engine"`
	RPS    float64 `json:"rps"`
	Loses  float64 `json:"loses_by_ms"`
	Cost   struct {
		Net, Base, Delay, Externality, Kink, Limit, Share, Cache, Total float64
		OneLess                                                         float64 `json:"one_less"`
		OneMore                                                         float64 `json:"one_more"`
	} `json:"cost_ms"`
	Code   string `json:"code"`
	Reason string `json:"reason"`
}

func explained(t *testing.T, folder string, args ...string) *told {
	t.Helper()
	var r run
	if code := r.irbctl(append([]string{"explain", folder, "--format", "json"}, args...)...); code != exitOK {
		t.Fatalf("explain: exit %d: %s", code, r.stderr)
	}
	out := &told{}
	if err := json.Unmarshal([]byte(r.stdout), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func near6(got, want float64) bool { return math.Abs(got-want) <= 1e-6 }

// edges counts pairs whose price is an interval.
type edges struct{ kinks, limits, arcs int }

// judge computes every component of every pair anew. Stay is what each pair had
// before, nil for none.
func (f *town) judge(t *testing.T, seed uint64, x *told, stay [][]float64, seen *edges) {
	t.Helper()
	load := make([]float64, len(f.names))
	for _, s := range x.Sources {
		for _, w := range s.Weights {
			load[f.engine(w.Engine)] += w.RPS
		}
	}
	for _, s := range x.Sources {
		c := f.cluster(s.Cluster)
		for i, w := range append(s.Weights, s.Alternatives...) {
			where := fmt.Sprintf("seed %d: %s on %s", seed, s.Cluster, w.Engine)
			e := f.engine(w.Engine)
			p := f.expect(c, e, load[e], w.RPS, stay)
			p.judgeParts(t, where, w)
			switch used := i < len(s.Weights); {
			case used && !near6(w.Cost.Total, s.PriceMs):
				t.Errorf("%s: costs %v ms, the price is %v", where, w.Cost.Total, s.PriceMs)
			case used:
				p.judgeInterval(t, where, w, seen)
			case w.Cost.Total < s.PriceMs-1e-6 || !near6(w.Loses, w.Cost.Total-s.PriceMs) || (w.Code == "tie") != (w.Loses <= 1e-6):
				t.Errorf("%s: not used at %v ms, price %v, loses by %v, code %s", where, w.Cost.Total, s.PriceMs, w.Loses, w.Code)
			}
		}
	}
}

// expected is what the parts of a pair's cost must be, in ms.
type expected struct {
	net, base, delay, externality float64
	step                          float64 // from one less to one more on the engine, at a kink
	full                          bool
	cacheLess, cacheMore          float64
}

func (f *town) expect(c, e int, load, rps float64, stay [][]float64) expected {
	v := min(load/f.capacity[e], townMaxUtilization)
	ms, left, right := f.at(e, v)
	unloaded := townT[f.profile[e]][0]
	p := expected{
		net: f.rtt[c][e], base: unloaded + townOutput, delay: ms - unloaded, externality: v * left,
		step: v * (right - left), full: load >= townMaxUtilization*f.capacity[e]*(1-1e-9),
	}
	if stay == nil {
		return p
	}
	penalty := f.cached * townPrompt / (1 - f.cached) * unloaded / townPrompt
	had, slack := stay[c][e], 1e-6*f.rps[c]
	if had > 0 && rps <= had+slack {
		p.cacheLess = -penalty
	}
	if had > 0 && rps < had-slack {
		p.cacheMore = -penalty
	}
	return p
}

func (p expected) judgeParts(t *testing.T, where string, w toldPair) {
	t.Helper()
	cost := w.Cost
	if !near6(cost.Net, p.net) || !near6(cost.Base, p.base) || !near6(cost.Delay, p.delay) || !near6(cost.Externality, p.externality) {
		t.Errorf("%s: parts are %+v, want %+v", where, cost, p)
	}
	if cost.Kink < 0 || cost.Kink > p.step+1e-6 || cost.Limit < 0 || cost.Limit > 0 && !p.full || cost.Share != 0 {
		t.Errorf("%s: kink, limit or share of %+v, want %+v", where, cost, p)
	}
	if cost.Cache < p.cacheLess-1e-6 || cost.Cache > p.cacheMore+1e-6 {
		t.Errorf("%s: cache is %v ms, want one in [%v, %v]", where, cost.Cache, p.cacheLess, p.cacheMore)
	}
	if parts := cost.Net + cost.Base + cost.Delay + cost.Externality + cost.Kink + cost.Limit + cost.Share + cost.Cache; !near6(parts, cost.Total) {
		t.Errorf("%s: the parts sum to %v, total is %v", where, parts, cost.Total)
	}
	if w.Reason == "" {
		t.Errorf("%s: no reason", where)
	}
}

func (p expected) judgeInterval(t *testing.T, where string, w toldPair, seen *edges) {
	t.Helper()
	plain := p.net + p.base + p.delay + p.externality
	less, more := plain+p.cacheLess, plain+p.step+p.cacheMore
	if p.full {
		more = 0 // no more fits
	} else if more-less <= 1e-6 {
		less, more = 0, 0
	}
	if !near6(w.Cost.OneLess, less) || !near6(w.Cost.OneMore, more) {
		t.Errorf("%s: the interval is [%v, %v], want [%v, %v]", where, w.Cost.OneLess, w.Cost.OneMore, less, more)
	}
	switch {
	case p.full:
		seen.limits++
	case p.step > 1e-6:
		seen.kinks++
	}
	if p.cacheMore-p.cacheLess > 1e-6 {
		seen.arcs++
	}
}

func (f *town) engine(name string) int {
	for e, n := range f.names {
		if n == name {
			return e
		}
	}
	panic("no engine " + name)
}

func (f *town) cluster(name string) int {
	for c, n := range f.clusters {
		if n == name {
			return c
		}
	}
	panic("no cluster " + name)
}

// fleets is how many random fleets the tests below make, a quarter as many for
// break-evens and split work: go test -fleets 4000.
var fleets = flag.Int("fleets", fleetsByDefault(), "random fleets whose explanations are judged")

func fleetsByDefault() int {
	if raceDetector {
		return 250
	}
	return 1000
}

func TestCostsOfRandomFleets(t *testing.T) {
	folder, dir := t.TempDir(), newKeys(t)
	weights := filepath.Join(dir, "weights.toml")
	var seen edges
	for seed := range uint64(*fleets) {
		random := rand.New(rand.NewPCG(seed, 11))
		f := newTown(random, seed%2 == 0)
		f.write(t, folder)
		f.judge(t, seed, explained(t, folder), nil, &seen)
		if f.cached == 0 || t.Failed() {
			continue
		}
		// Once more with a plan in service, after demand has changed a little.
		var r run
		r.expect(t, exitOK, "", "solve", folder, "-o", weights, "--key", filepath.Join(dir, "irb.key"), "--contingencies", "0")
		before := explained(t, weights)
		stay := make([][]float64, len(f.clusters))
		was := f.rps
		f.rps = make([]float64, len(was))
		for c := range f.rps {
			f.rps[c] = was[c] * (0.9 + 0.1*random.Float64())
		}
		for _, s := range before.Sources {
			c := f.cluster(s.Cluster)
			stay[c] = make([]float64, len(f.names))
			for _, w := range s.Weights {
				stay[c][f.engine(w.Engine)] = w.RPS / was[c] * f.rps[c]
			}
		}
		f.write(t, folder)
		f.judge(t, seed, explained(t, folder, "--previous", weights), stay, &seen)
	}
	if seen.kinks < 100 || seen.limits < 10 || seen.arcs < 50 {
		t.Errorf("pairs seen: %+v: the generator has lost its aim", seen)
	}
}

// toldFlip is a break-even as irbctl tells it.
type toldFlip struct {
	Of     string
	Now    float64
	Up     bool
	At     *float64
	Before float64
	After  float64
}

// Just inside a break-even the pair is as now, just outside it has flipped, by
// solving the changed files.
func TestBreakEvensOfRandomFleets(t *testing.T) {
	folder := t.TempDir()
	flips := map[string]int{}
	for seed := range uint64(*fleets / 4) {
		random := rand.New(rand.NewPCG(seed, 12))
		f := newTown(random, seed%2 == 0)
		f.write(t, folder)
		c, e := random.IntN(len(f.clusters)), random.IntN(len(f.names))
		var r run
		r.expect(t, exitOK, "", "explain", folder, "--format", "json", "--break-even", fmt.Sprintf("%s/default %s", f.clusters[c], f.names[e]))
		var tree struct {
			BreakEven struct {
				RPS   float64
				Flips []toldFlip
			} `json:"break_even"`
		}
		if err := json.Unmarshal([]byte(r.stdout), &tree); err != nil {
			t.Fatal(err)
		}
		used := tree.BreakEven.RPS > 0
		for _, flip := range tree.BreakEven.Flips {
			// Where costs tie, several plans are best and any of them may use the
			// pair; only its own round trip parts them for sure.
			if flip.At == nil || seed%2 == 0 && flip.Of != "round trip" {
				continue
			}
			out := 1e-5 * max(1, flip.Now)
			if !flip.Up {
				out = -out
			}
			if got, ok := f.uses(t, folder, flip.Of, c, e, flip.Before-out); !ok || got != used {
				t.Errorf("seed %d: %s on %s, %s %v -> %v: just inside the pair has flipped", seed, f.clusters[c], f.names[e], flip.Of, flip.Now, *flip.At)
			}
			// A little farther outside demand may be more than what fits.
			if got, ok := f.uses(t, folder, flip.Of, c, e, flip.After+out); ok && got == used {
				t.Errorf("seed %d: %s on %s, %s %v -> %v: just outside the pair has not flipped", seed, f.clusters[c], f.names[e], flip.Of, flip.Now, *flip.At)
			}
			if flip.Of == "round trip" && flip.Up != used {
				t.Errorf("seed %d: the use of a pair grew with its round trip", seed)
			}
			flips[flip.Of]++
		}
	}
	if flips["round trip"] < 20 || flips["demand"] < 5 || flips["capacity"] < 5 {
		t.Errorf("break-evens found: %v: the generator has lost its aim", flips)
	}
}

// uses solves the fleet with one number changed and says whether cluster c uses
// engine e; not ok if there is no plan.
func (f *town) uses(t *testing.T, folder, of string, c, e int, value float64) (used, ok bool) {
	t.Helper()
	number := map[string]*float64{"round trip": &f.rtt[c][e], "demand": &f.rps[c], "capacity": &f.capacity[e]}[of]
	was := *number
	*number = value
	f.write(t, folder)
	*number = was
	var r run
	if r.irbctl("explain", folder) == exitInfeasible {
		return false, false
	}
	for _, s := range explained(t, folder).Sources {
		for _, w := range s.Weights {
			if s.Cluster == f.clusters[c] && w.Engine == f.names[e] {
				return w.RPS > 0, true
			}
		}
	}
	return false, true
}
