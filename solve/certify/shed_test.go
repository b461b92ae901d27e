package certify

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/irb-project/irb/solve/model"
)

// shedCase is a program in words: sources with demand, what is served and
// priority, engines with capacities in req/s, and flows; work is refWork per
// request, all latencies are 0.
type shedCase struct {
	demand, served []float64
	priority       []int
	capacity       []float64
	pairs          [][]int // engines per source
	flows          [][]float64
	cuts           []model.ShedCut
}

func (c shedCase) build(t testing.TB) (*model.Problem, *model.Solution) {
	p := &model.Problem{Work: model.WorkSingle, Shed: true, Row: []int{0}}
	s := &model.Solution{ServedRPS: c.served, ShedCuts: c.cuts}
	for e, rps := range c.capacity {
		p.Engines = append(p.Engines, engine(t, string(rune('a'+e)), rps, 1, model.WorkSingle, flat, flat))
	}
	for i := range c.demand {
		p.Sources = append(p.Sources, model.Source{Cluster: string(rune('x' + i)), Class: "c", Priority: c.priority[i], DemandRPS: c.demand[i], Work: refWork})
		for j, e := range c.pairs[i] {
			if c.flows[i][j] > 0 {
				s.Flows = append(s.Flows, model.Flow{Pair: len(p.Col), RPS: c.flows[i][j]})
			}
			p.Col = append(p.Col, int32(e))
			p.CostMs = append(p.CostMs, 0)
		}
		p.Row = append(p.Row, len(p.Col))
	}
	s.SourcePriceMs, s.EnginePrice = make([]float64, len(p.Sources)), make([]float64, len(p.Engines))
	return p, s
}

func all(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// x and y share engine a; only y reaches b too, but so does z, of a lower
// priority. 100 + 30 at the top: x 60/80, y 60/80, of which 30 are at b.
func staged() shedCase {
	return shedCase{
		demand: []float64{80, 80, 40}, served: []float64{60 + 5, 60 + 5, 0},
		priority: []int{1, 1, 0}, capacity: []float64{100, 30},
		pairs: [][]int{{0}, {0, 1}, {1}}, flows: [][]float64{{65}, {35, 30}, {0}},
		cuts: []model.ShedCut{
			{Priority: 1, Sources: []int{0, 1}, Engines: []int{0, 1}},
			{Priority: 0, Sources: all(3), Engines: []int{0, 1}},
		},
	}
}

func TestShed(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(*shedCase)
		rule func(*model.Problem)
		want string // "" certified
	}{
		{name: "staged optimum", edit: func(*shedCase) {}},
		{name: "no cut", edit: func(c *shedCase) { c.cuts = c.cuts[1:] },
			want: "certify: work of priority 1 is shed without a cut that proves it must be"},
		{name: "source missing from a cut", edit: func(c *shedCase) { c.cuts[0].Sources = []int{0} },
			want: "work/s of priority >= 1 are served, its cut proves only that at most"},
		{name: "engine missing from a cut", edit: func(c *shedCase) { c.cuts[0].Engines = []int{0} },
			want: "off by"},
		{name: "cut names an engine that there is not", edit: func(c *shedCase) { c.cuts[0].Engines = []int{0, 7} },
			want: "cut of priority 1: it names engine 7 of 2"},
		{name: "more could be served", edit: func(c *shedCase) { c.served[0], c.flows[0][0] = 64, 64 },
			want: "off by 0.00769"},
		{name: "a lower priority first", edit: func(c *shedCase) {
			c.served = []float64{65, 55, 10}
			c.flows = [][]float64{{65}, {35, 20}, {10}}
		}, want: "of priority >= 1 are served"},
		{name: "served above demand", edit: func(c *shedCase) { c.demand[0] = 60 },
			want: `row "demand/x/c" exceeded by 5 req/s`},
		{name: "unequal, could take its place", edit: func(c *shedCase) {
			c.served = []float64{50, 80, 0}
			c.flows = [][]float64{{50}, {50, 30}, {0}}
		}, want: "shed unfairly: x/c is served 0.625 of its demand while y/c of the same priority, whose place it could take, is served 1"},
		{name: "unequal, not reachable", edit: func(c *shedCase) {
			c.pairs = [][]int{{0}, {1}, {1}}
			c.served = []float64{80, 30, 0}
			c.flows = [][]float64{{80}, {30}, {0}}
			c.cuts[0] = model.ShedCut{Priority: 1, Sources: []int{1}, Engines: []int{1}}
			c.cuts[1] = model.ShedCut{Priority: 0, Sources: []int{1, 2}, Engines: []int{1}}
		}},
		{name: "unequal over a chain through a higher priority", edit: func(c *shedCase) {
			// x is at a with y, which can move to b, where z of x's priority is.
			c.demand, c.priority = []float64{80, 60, 40}, []int{0, 1, 0}
			c.pairs, c.capacity = [][]int{{0}, {0, 1}, {1}}, []float64{60, 40}
			c.served = []float64{10, 60, 30}
			c.flows = [][]float64{{10}, {50, 10}, {30}}
			c.cuts = []model.ShedCut{{Priority: 0, Sources: all(3), Engines: []int{0, 1}}}
		}, want: "shed unfairly: x/c is served 0.125"},
		{name: "unequal, held by a minimum", edit: func(c *shedCase) {
			c.served = []float64{50, 80, 0}
			c.flows = [][]float64{{50}, {50, 30}, {0}}
		}, rule: func(p *model.Problem) {
			p.Lower, p.Upper = []float64{0, 50, 0, 0}, []float64{80, 80, 80, 40}
		}},
		{name: "unequal, held by a maximum share", edit: func(c *shedCase) {
			c.served = []float64{50, 80, 0}
			c.flows = [][]float64{{50}, {50, 30}, {0}}
			c.cuts[0] = model.ShedCut{Priority: 1, Sources: []int{0}}
		}, rule: func(p *model.Problem) {
			p.Lower, p.Upper = make([]float64, 4), []float64{50, 80, 80, 40}
		}},
		{name: "unequal, held by a group", edit: func(c *shedCase) {
			c.served = []float64{50, 80, 0}
			c.flows = [][]float64{{50}, {50, 30}, {0}}
			c.cuts[0] = model.ShedCut{Priority: 1, Sources: []int{0}, Groups: []int{0}}
		}, rule: func(p *model.Problem) {
			p.Groups = []model.Group{{Name: "g", Source: 0, Engines: []int32{0}, MaxRPS: 50}}
		}},
		{name: "minima of two groups onto full engines", edit: func(c *shedCase) {
			// y must send 30 to a and 20 to b, all of b; the rest of a is x's.
			c.demand, c.served = []float64{80, 80, 40}, []float64{70, 80, 0}
			c.capacity, c.pairs = []float64{100, 20, 50}, [][]int{{0}, {0, 1, 2}, {1}}
			c.flows = [][]float64{{70}, {30, 20, 30}, {0}}
			c.cuts[0] = model.ShedCut{Priority: 1, Sources: []int{0}, Engines: []int{0, 1}}
			c.cuts[1] = model.ShedCut{Priority: 0, Sources: []int{0, 2}, Engines: []int{0, 1}}
		}, rule: func(p *model.Problem) {
			p.Groups = []model.Group{
				{Name: "g", Source: 1, Engines: []int32{0}, MinRPS: 30, MaxRPS: 80},
				{Name: "h", Source: 1, Engines: []int32{1}, MinRPS: 20, MaxRPS: 80},
			}
		}},
		{name: "nested groups in a cut", edit: func(c *shedCase) {
			// x may send 40 to a and b, 10 of them to b; a minimum of 5 at b counts.
			c.capacity, c.pairs = []float64{100, 100}, [][]int{{0, 1}, {0}, {0}}
			c.demand, c.served, c.priority = []float64{80, 10, 10}, []float64{40, 10, 10}, []int{1, 1, 0}
			c.flows = [][]float64{{35, 5}, {10}, {10}}
			c.cuts = []model.ShedCut{{Priority: 1, Sources: []int{0}, Groups: []int{0, 1}}}
		}, rule: func(p *model.Problem) {
			p.Groups = []model.Group{
				{Name: "outer", Source: 0, Engines: []int32{0, 1}, MaxRPS: 40},
				{Name: "inner", Source: 0, Engines: []int32{1}, MinRPS: 5, MaxRPS: 10},
			}
		}},
		{name: "rounding of a source beside which all others are vast", edit: func(c *shedCase) {
			c.demand, c.served = []float64{80e9, 8e-9, 1e9}, []float64{60e9, 8e-9, 0}
			c.capacity = []float64{60e9, 60e9}
			c.flows = [][]float64{{60e9}, {4e-9, 4e-9}, {0}}
			c.pairs[2] = []int{0}
			c.cuts = []model.ShedCut{
				{Priority: 1, Sources: []int{0}, Engines: []int{0}},
				{Priority: 0, Sources: []int{0, 2}, Engines: []int{0}},
			}
		}},
		{name: "unequal over a cap", edit: func(c *shedCase) {
			c.capacity = []float64{200, 200}
			c.pairs = [][]int{{0}, {1}, {1}}
			c.served = []float64{80, 20, 0}
			c.flows = [][]float64{{80}, {20}, {0}}
			c.cuts[0].Engines, c.cuts[0].Caps = nil, []int{0}
			c.cuts[1].Engines, c.cuts[1].Caps = nil, []int{0}
		}, rule: func(p *model.Problem) {
			p.Caps = []model.WorkCap{{Name: "cap", Engines: []int32{0, 1}, MaxWork: 100 * refWork}}
		}, want: "shed unfairly: y/c is served 0.25"},
		{name: "equal over a cap", edit: func(c *shedCase) {
			c.capacity = []float64{200, 200}
			c.pairs = [][]int{{0}, {1}, {1}}
			c.served = []float64{50, 50, 0}
			c.flows = [][]float64{{50}, {50}, {0}}
			c.cuts[0].Engines, c.cuts[0].Caps = nil, []int{0}
			c.cuts[1].Engines, c.cuts[1].Caps = nil, []int{0}
		}, rule: func(p *model.Problem) {
			p.Caps = []model.WorkCap{{Name: "cap", Engines: []int32{0, 1}, MaxWork: 100 * refWork}}
		}},
		{name: "nothing shed needs no cut", edit: func(c *shedCase) {
			c.demand = []float64{65, 65, 0.001}
			c.served = []float64{65, 64.999, 0.001}
			c.demand[1] = 64.999
			c.flows = [][]float64{{65}, {35, 29.999}, {0.001}}
			c.cuts = nil
		}},
	} {
		c := staged()
		tc.edit(&c)
		p, s := c.build(t)
		if tc.rule != nil {
			tc.rule(p)
			s.GroupPriceMs, s.CapPrice = make([]float64, len(p.Groups)), make([]float64, len(p.Caps))
		}
		_, err := Check(p, s)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
}

// TestCutsBound: no feasible answer serves more than any cut lets through,
// whatever sets it names.
func TestCutsBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	tight := 0
	for trial := range 3000 {
		p, s := randomAnswer(t, rng, model.WorkSingle, 1+rng.IntN(5), 1+rng.IntN(5))
		for i := range p.Sources {
			p.Sources[i].Priority = rng.IntN(3)
			p.Sources[i].DemandRPS *= 1 + rng.Float64()*float64(rng.IntN(2))
		}
		some := func(n int) (out []int) {
			for i := range n {
				if rng.IntN(3) > 0 {
					out = append(out, i)
				}
			}
			return out
		}
		c := newChecker(p, s)
		cut, err := newCut(c, &model.ShedCut{
			Priority: rng.IntN(3), Sources: some(len(p.Sources)), Engines: some(len(p.Engines)),
			Groups: some(len(p.Groups)), Caps: some(len(p.Caps)),
		})
		if err != nil {
			t.Fatal(err)
		}
		served := 0.0
		for i := range p.Sources {
			if p.Sources[i].Priority >= cut.priority {
				served += p.Sources[i].Work * s.ServedRPS[i]
			}
		}
		bound := cut.bound()
		if served > bound*(1+1e-12) {
			t.Fatalf("trial %d: %v served, cut %v", trial, served, bound)
		}
		if served > 0 && served > bound*(1-1e-12) {
			tight++
		}
	}
	if tight < 100 {
		t.Errorf("%d cuts were tight: the test tells too little", tight)
	}
}

// TestFairAgainstPairs: on one shared full engine, unfair is any difference.
func TestFairAgainstPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for trial := range 200 {
		n := 2 + rng.IntN(6)
		c := shedCase{cuts: []model.ShedCut{{Priority: 0, Sources: all(n), Engines: []int{0}}}}
		equal := trial%2 == 0
		sum := 0.0
		for range n {
			fraction := 0.5
			if !equal {
				fraction = rng.Float64()
			}
			d := 1 + rng.Float64()
			c.demand, c.served = append(c.demand, d), append(c.served, d*fraction)
			c.priority, c.pairs = append(c.priority, 0), append(c.pairs, []int{0})
			c.flows = append(c.flows, []float64{d * fraction})
			sum += d * fraction
		}
		c.capacity = []float64{sum}
		p, s := c.build(t)
		_, err := Check(p, s)
		if equal != (err == nil) {
			t.Fatalf("trial %d: fractions equal %v, got %v", trial, equal, err)
		}
	}
}

func TestKnapsack(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	var k knapsack
	for trial := range 2000 {
		n := 1 + rng.IntN(12)
		segments, total := make([]segment, n), 0.0
		for i := range segments {
			segments[i] = segment{float64(rng.IntN(8)) - 2, float64(rng.IntN(5))}
			total += segments[i].length
		}
		need := math.Floor(total * rng.Float64())
		k.reset(need)
		for _, s := range segments {
			k.add(s.cost, s.length)
		}
		cost, lo, hi := k.fill()
		slices.SortFunc(segments, func(a, b segment) int { return int(a.cost - b.cost) })
		want, left := 0.0, need
		wantLo, wantHi := math.Inf(-1), math.Inf(1)
		for _, s := range segments {
			part := min(left, s.length)
			want += s.cost * part
			left -= part
			if part > 0 {
				wantLo = s.cost
			}
			if part < s.length && math.IsInf(wantHi, 1) {
				wantHi = s.cost
			}
		}
		if cost.value() != want || lo != wantLo || hi != wantHi {
			t.Fatalf("trial %d: need %v of %v costs %v, margin [%v, %v]; want %v, [%v, %v]", trial, need, segments, cost.value(), lo, hi, want, wantLo, wantHi)
		}
	}
}
