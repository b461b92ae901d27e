package main

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/irb-project/irb/solve/certify"
)

func TestParseSize(t *testing.T) {
	for _, c := range []struct {
		text string
		want size // zero: refused
	}{
		{"20x50", size{20, 50, 1}},
		{"5000x10000:0.5", size{5000, 10000, 0.005}},
		{"20", size{}},
		{"0x50", size{}},
		{"20x2", size{}},
		{"20x50:0", size{}},
		{"20x50:101", size{}},
		{"20x50:NaN", size{}},
		{"20x50x3", size{}},
	} {
		got, err := parseSize(c.text)
		if c.want == (size{}) {
			if err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("parseSize(%q): error %v, want one that names it", c.text, err)
			}
		} else if err != nil || got != c.want {
			t.Errorf("parseSize(%q) = %v, %v, want %v", c.text, got, err, c.want)
		}
	}
}

func TestParseOptions(t *testing.T) {
	for _, c := range []struct {
		args string
		want string // part of the error; "": none
	}{
		{"", ""},
		{"-sizes= -peers=highs,clp -growth= -cases=50,120t", ""},
		{"-cases 75x", `-cases: load "75x"`},
		{"-against -5", `-against: load "-5"`},
		{"-peers cplex", `-peers: peer "cplex"`},
		{"-growth 20x50", "-growth: 1 fleets"},
		{"-runs 0", "-runs: 0"},
		{"-periods 0", "-periods: 0"},
		{"-limit 10ms", "-limit: 10ms"},
		{"more", `unexpected argument "more"`},
	} {
		_, err := parseOptions(strings.Fields(c.args), io.Discard)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: error %v, want %q", c.args, err, c.want)
		}
	}
}

func smallInstance(t *testing.T, l load) *instance {
	t.Helper()
	in, err := newInstance(context.Background(), fleet{Size: size{8, 12, 1}, Load: l, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// The grids hold the promise that the tables of the peers rest on: from 0 to
// the limit, ascending, and chords at the optimum within the gap.
func TestGrids(t *testing.T) {
	for _, l := range []load{{Percent: 75}, {Percent: 95, Tight: true}, {Percent: 120}} {
		in := smallInstance(t, l)
		for _, g := range givens() {
			above := 0.0
			for e, grid := range in.grids(g) {
				sink := in.problem.Engines[e].Delay
				if grid[0] != 0 || grid[len(grid)-1] != sink.Limit || !slices.IsSortedFunc(grid, strictly) {
					t.Errorf("%s, %s: grid of engine %d does not ascend from 0 to %v: %v", l, g, e, sink.Limit, grid)
				}
				above += aboveDelay(sink, grid, in.loads[e])
			}
			report, err := certify.Check(in.problem, in.optimum)
			if err != nil {
				t.Fatal(err)
			}
			if g != rounds && above > certify.GapTol*report.ObjectiveMsRPS {
				t.Errorf("%s, %s: chords are %.2e of the objective above the delays at the optimum", l, g, above/report.ObjectiveMsRPS)
			}
		}
	}
}

// strictly compares so that equal neighbours are out of order.
func strictly(a, b float64) int {
	if a > b {
		return 1
	}
	return -1
}

func TestTolerantGridHoldsTolerance(t *testing.T) {
	p := fleet{Size: size{3, 60, 1}, Load: load{Percent: 50}, Seed: 5}.problem()
	for e := range p.Engines {
		sink := p.Engines[e].Delay
		tolerance := sink.Value(sink.Limit) * 1e-5
		grid := tolerantGrid(sink, tolerance)
		if len(grid) > 2000 {
			t.Errorf("engine %d: %d points", e, len(grid))
		}
		for i := 1; i < len(grid); i++ {
			for _, at := range []float64{0.25, 0.5, 0.75} {
				load := grid[i-1] + at*(grid[i]-grid[i-1])
				if above := aboveDelay(sink, grid, load); above > 1.05*tolerance {
					t.Errorf("engine %d: chord is %.3g above the delay at %v, tolerance %.3g", e, above, load, tolerance)
				}
			}
		}
	}
}

func TestRefineCutsAroundLoad(t *testing.T) {
	grid := []float64{0, 1, 2, 3, 4, 5}
	got := refine(grid, 2.5, 2)
	want := []float64{0, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5}
	if !slices.Equal(got, want) {
		t.Errorf("refine: %v, want %v", got, want)
	}
	if !slices.Equal(grid, []float64{0, 1, 2, 3, 4, 5}) {
		t.Errorf("refine changed its input: %v", grid)
	}
	if got := windowGrid(grid, 2.5, 1); !slices.Equal(got, []float64{0, 2, 3, 5}) {
		t.Errorf("windowGrid: %v", got)
	}
}

// The optimum itself, told in a peer's units, must pass; flows that are not
// optimal or leave a source short must not.
func TestJudge(t *testing.T) {
	in := smallInstance(t, load{Percent: 75})
	flow := make([]float64, in.problem.Pairs())
	s := 0
	for _, f := range in.optimum.Flows {
		for f.Pair >= in.problem.Row[s+1] {
			s++
		}
		flow[f.Pair] = f.RPS * in.problem.Sources[s].Work / in.transport.workUnit
	}
	if _, gap, err := in.judge(flow); err != nil || math.Abs(gap) > 1e-9 {
		t.Errorf("the optimum has gap %v, error %v", gap, err)
	}

	worse := slices.Clone(flow)
	best, worst := in.problem.Row[0], in.problem.Row[0]
	for k := in.problem.Row[0]; k < in.problem.Row[1]; k++ {
		if flow[k] > flow[best] {
			best = k
		}
		if flow[k] < flow[worst] {
			worst = k
		}
	}
	worse[worst], worse[best] = worse[worst]+0.1*worse[best], 0.9*worse[best]
	if _, gap, err := in.judge(worse); err == nil && gap <= certify.GapTol {
		t.Errorf("a tenth of a flow on another engine has gap %v", gap)
	}

	clear(worse[in.problem.Row[0]:in.problem.Row[1]])
	if _, _, err := in.judge(worse); err == nil {
		t.Error("a source without flow is no error")
	}
}

func TestDecodeAnswer(t *testing.T) {
	var data []byte
	for _, v := range []float64{0.25, 5, 1e6, 0, 0.5} {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
	}
	a, err := decodeAnswer(data, 2)
	if err != nil || a.Seconds != 0.25 || a.Runs != 5 || a.PeakBytes != 1e6 || !slices.Equal(a.flow, []float64{0, 0.5}) {
		t.Errorf("decodeAnswer: %v, %v", a, err)
	}
	if _, err := decodeAnswer(data, 3); err == nil {
		t.Error("an answer that is cut short is no error")
	}
}

func TestParsePeak(t *testing.T) {
	for text, want := range map[string]float64{
		"Name:\tx\nVmHWM:\t    2048 kB\nVmRSS: 1 kB\n": 2048 * 1024,
		"Name: x\n":   -1,
		"VmHWM: kB\n": -1,
		"VmHWM:":      -1,
	} {
		if got := parsePeak(text); got != want {
			t.Errorf("parsePeak(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestHopelessOnlyForLargerFleets(t *testing.T) {
	late := overdue{"clp": {100, 100, 10000}}
	for _, c := range []struct {
		how   string
		shape fleetShape
		want  bool
	}{
		{"clp", fleetShape{200, 200, 40000}, true},
		{"clp", fleetShape{100, 100, 7000}, true},
		{"clp", fleetShape{500, 1000, 4000}, false}, // larger, but sparse
		{"clp", fleetShape{99, 100, 9900}, false},
		{"lemon", fleetShape{200, 200, 40000}, false},
	} {
		if got := late.hopeless(c.how, c.shape); got != c.want {
			t.Errorf("hopeless(%s, %v) = %v, want %v", c.how, c.shape, got, c.want)
		}
	}
}

func TestBefore(t *testing.T) {
	fast := &attempt{timing: timing{Seconds: 1}}
	slow := &attempt{timing: timing{Seconds: 2}}
	late := &attempt{over: time.Second}
	guess := &attempt{over: time.Second, guess: true}
	failed := &attempt{err: io.EOF}
	if guess.before(fast) || guess.before(late) || guess.answered() || guess.String() != "(> 1 s)" {
		t.Errorf("a guess counts: %s", guess)
	}
	order := []*attempt{fast, slow, late, failed}
	for i, a := range order {
		for j, o := range order {
			if got := a.before(o); got != (i < j) {
				t.Errorf("%s before %s: %v", a, o, got)
			}
		}
	}
}

// Every peer that is installed must agree with ours, whatever it is given.
func TestPeersAgree(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the peers' programs")
	}
	folder := t.TempDir()
	if err := unpackPrograms(folder); err != nil {
		t.Fatal(err)
	}
	b := &bench{options: options{runs: 1, limit: time.Minute}}
	for _, name := range []string{"lemon", "clp", "highs"} {
		t.Run(name, func(t *testing.T) {
			p, err := preparePeer(t.Context(), folder, name)
			if err != nil {
				t.Skip(err)
			}
			in := smallInstance(t, load{Percent: 120, Tight: true})
			for i, setting := range p.settings {
				for _, g := range givens() {
					if i > 0 && g != window {
						continue // tells nothing new, and starting SciPy is slow
					}
					if a := b.attempt(t.Context(), p, setting, in, g, b.limit); !a.answered() {
						t.Errorf("%s given %s: %s", setting, g, a.sentence())
					}
				}
			}
		})
	}
}

// A peer that is not there is a sentence, not a failure.
func TestMissingPeerSaysPackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := preparePeer(t.Context(), t.TempDir(), "lemon")
	if err == nil || !strings.Contains(err.Error(), "liblemon-dev") {
		t.Errorf("error %v, want one that names the package", err)
	}
}

// Without a penalty plans follow demand; with a large one they stay.
func TestDriftMovesLessWithPenalty(t *testing.T) {
	arms, err := driftArms(t.Context(), fleet{Size: size{6, 8, 1}, Load: load{Percent: 75}, Seed: 2}, 5)
	if err != nil {
		t.Fatal(err)
	}
	first, last := arms[0], arms[len(arms)-1]
	if !(mean(last.moved) < mean(first.moved)) {
		t.Errorf("moved %v with a penalty of %v ms, %v without", mean(last.moved), last.penaltyMs, mean(first.moved))
	}
	if mean(last.meanMs) < mean(first.meanMs)*(1-certify.GapTol) {
		t.Errorf("latency %v ms with a penalty is below the least, %v ms", mean(last.meanMs), mean(first.meanMs))
	}
}
