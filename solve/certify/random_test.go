package certify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
)

// randomAnswer makes the answer first and a program around it that the answer
// is feasible for, with every kind of row.
func randomAnswer(t testing.TB, rng *rand.Rand, work model.WorkKind, sources, engines int) (*model.Problem, *model.Solution) {
	p := &model.Problem{Work: work, Row: []int{0}}
	s := &model.Solution{}
	rate := math.Pow(10, 12*rng.Float64()-6)
	cost := math.Pow(10, 12*rng.Float64()-6)
	for i := range sources {
		addRandomSource(rng, p, s, fmt.Sprint("s", i), engines, rate, cost)
	}
	load, prompts, outputs := loads(p, s, engines)
	for e := range engines {
		// One unit where nothing flows, so that there is a sink.
		limit := max(load[e], rate) * (1 + rng.Float64()*float64(rng.IntN(2)))
		n := model.EngineNode{Name: fmt.Sprint("e", e), ReferenceWork: 1, Limit: limit, Capacity: 1.2 * limit}
		if work == model.WorkSplit {
			n.Prefill = randomSink(t, rng, 2*max(prompts[e], rate), cost)
			n.Output = randomSink(t, rng, 2*max(outputs[e], rate), cost)
		} else {
			n.Delay = randomSink(t, rng, limit, cost)
		}
		p.Engines = append(p.Engines, n)
	}
	for i := range sources {
		addRandomGroup(rng, p, s, i)
	}
	p.Caps = []model.WorkCap{{Name: "cap", Engines: []int32{0}, MaxWork: load[0]}}
	if last := engines - 1; last > 0 {
		p.Caps[0].Engines = append(p.Caps[0].Engines, int32(last))
		p.Caps[0].MaxWork += load[last]
	}
	randomPrices(rng, cost, p, s)
	return p, s
}

// addRandomSource adds a source with flows, bounds and stay terms around them.
func addRandomSource(rng *rand.Rand, p *model.Problem, s *model.Solution, name string, engines int, rate, cost float64) {
	src := model.Source{Cluster: name, Class: "c", PromptTokens: 100 * rng.Float64(), OutputTokens: 30 * rng.Float64()}
	src.Work = src.PromptTokens + 4*src.OutputTokens
	for e := range engines {
		if rng.IntN(4) == 0 && e > 0 {
			continue
		}
		x := 0.0
		if rng.IntN(2) == 0 || e == 0 {
			x = rate * rng.Float64()
			s.Flows = append(s.Flows, model.Flow{Pair: len(p.Col), RPS: x})
		}
		src.DemandRPS += x
		p.Col = append(p.Col, int32(e))
		p.CostMs = append(p.CostMs, cost*rng.Float64())
		p.Lower = append(p.Lower, x*rng.Float64()*float64(rng.IntN(2)))
		p.Upper = append(p.Upper, []float64{x, x + rate*rng.Float64(), math.Inf(1)}[rng.IntN(3)])
		p.Stay = append(p.Stay, []float64{0, x, rate * rng.Float64()}[rng.IntN(3)])
		p.StayPenaltyMs = append(p.StayPenaltyMs, cost*rng.Float64()*float64(rng.IntN(2)))
	}
	p.Sources = append(p.Sources, src)
	p.Row = append(p.Row, len(p.Col))
	s.ServedRPS = append(s.ServedRPS, src.DemandRPS)
}

// loads returns the work, prompt tokens and output tokens per engine.
func loads(p *model.Problem, s *model.Solution, engines int) (work, prompts, outputs []float64) {
	work, prompts, outputs = make([]float64, engines), make([]float64, engines), make([]float64, engines)
	source := 0
	for _, f := range s.Flows {
		for f.Pair >= p.Row[source+1] {
			source++
		}
		src, e := p.Sources[source], p.Col[f.Pair]
		work[e] += src.Work * f.RPS
		prompts[e] += src.PromptTokens * f.RPS
		outputs[e] += src.OutputTokens * f.RPS
	}
	return work, prompts, outputs
}

func randomSink(t testing.TB, rng *rand.Rand, limit, cost float64) *profile.Sink {
	curve := func() profile.Curve {
		c := profile.Curve{V: []float64{0}, Ms: []float64{cost * rng.Float64()}}
		slope := 0.0
		for range rng.IntN(5) {
			slope += cost * rng.ExpFloat64() * float64(rng.IntN(3))
			v := rng.Float64() + .05
			c.V = append(c.V, c.V[len(c.V)-1]+v)
			c.Ms = append(c.Ms, c.Ms[len(c.Ms)-1]+slope*v)
		}
		return c
	}
	s, err := profile.NewSink(1.2*limit, limit, 0.01, []profile.Curve{curve(), curve()}, []float64{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// addRandomGroup adds a group of source i over some of its engines, bounded by
// what flows there.
func addRandomGroup(rng *rand.Rand, p *model.Problem, s *model.Solution, i int) {
	g := model.Group{Name: "g", Source: i, MaxRPS: math.Inf(1)}
	flow := make(map[int]float64)
	for _, f := range s.Flows {
		flow[f.Pair] = f.RPS
	}
	in := 0.0
	for k := p.Row[i]; k < p.Row[i+1]; k++ {
		if rng.IntN(2) == 0 {
			g.Engines = append(g.Engines, p.Col[k])
			in += flow[k]
		}
	}
	g.MinRPS = in * float64(rng.IntN(2))
	if rng.IntN(2) == 0 {
		g.MaxRPS = in
	}
	p.Groups = append(p.Groups, g)
}

func randomPrices(rng *rand.Rand, cost float64, p *model.Problem, s *model.Solution) {
	price := func() float64 { return cost * rng.NormFloat64() * math.Pow(10, -3*rng.Float64()) }
	fill := func(n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = price()
		}
		return out
	}
	s.SourcePriceMs, s.EnginePrice = fill(len(p.Sources)), fill(len(p.Engines))
	s.GroupPriceMs, s.CapPrice = fill(len(p.Groups)), fill(len(p.Caps))
	if p.Work == model.WorkSplit {
		s.PrefillPrice, s.OutputPrice = fill(len(p.Engines)), fill(len(p.Engines))
	}
}

// plainObjective adds up the program's objective as model.Problem states it.
func plainObjective(p *model.Problem, s *model.Solution) float64 {
	x := make([]float64, p.Pairs())
	for _, f := range s.Flows {
		x[f.Pair] = f.RPS
	}
	total := 0.0
	work, prompts, outputs := loads(p, s, len(p.Engines))
	for e := range p.Engines {
		if p.Work == model.WorkSplit {
			total += p.Engines[e].Prefill.Value(prompts[e]) + p.Engines[e].Output.Value(outputs[e])
		} else {
			total += p.Engines[e].Delay.Value(work[e])
		}
	}
	for k := range x {
		total += p.CostMs[k]*x[k] + p.StayPenaltyMs[k]*max(0, p.Stay[k]-x[k])
	}
	return total
}

// TestWeakDuality: whatever the prices, no bound is above the objective of a
// feasible answer; and the objective is the program's.
func TestWeakDuality(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for trial := range 4000 {
		work := []model.WorkKind{model.WorkSingle, model.WorkSplit}[trial%2]
		p, s := randomAnswer(t, rng, work, 1+rng.IntN(5), 1+rng.IntN(5))
		r, _ := Check(p, s)
		want := plainObjective(p, s)
		if math.Abs(r.ObjectiveMsRPS-want) > 1e-12*want {
			t.Fatalf("trial %d: objective %v, want %v", trial, r.ObjectiveMsRPS, want)
		}
		if r.MaxResidual > 1e-14 {
			t.Fatalf("trial %d: residual %v of %s in a feasible answer", trial, r.MaxResidual, r.WorstResidual)
		}
		if r.BoundMsRPS > want*(1+1e-12) {
			t.Fatalf("trial %d: bound %v above the objective %v", trial, r.BoundMsRPS, want)
		}
	}
}

// makeOptimal bends the costs of p until the answer is optimal at the prices:
// loads are where the engines' prices are marginal, rows with a price bind, and
// each pair's reduced cost fits where its flow is.
func makeOptimal(rng *rand.Rand, p *model.Problem, s *model.Solution) {
	load, prompts, outputs := loads(p, s, len(p.Engines))
	x := make([]float64, p.Pairs())
	for _, f := range s.Flows {
		x[f.Pair] = f.RPS
	}
	full := func(load, limit float64) bool { return load >= limit*(1-1e-14) }
	for e := range p.Engines {
		n := &p.Engines[e]
		extra := 0.0
		if full(load[e], n.Limit) {
			extra = math.Abs(s.EnginePrice[e])
		}
		if n.Delay != nil {
			left, _ := n.Delay.Marginal(min(load[e], n.Limit))
			s.EnginePrice[e] = left + extra
			continue
		}
		s.EnginePrice[e] = extra
		s.PrefillPrice[e], _ = n.Prefill.Marginal(prompts[e])
		s.OutputPrice[e], _ = n.Output.Marginal(outputs[e])
	}
	for i, k := range p.Caps {
		s.CapPrice[i] = math.Abs(s.CapPrice[i])
		sum := 0.0
		for _, e := range k.Engines {
			sum += load[e]
		}
		if !full(sum, k.MaxWork) {
			s.CapPrice[i] = 0
		}
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		if s.GroupPriceMs[i] > 0 && math.IsInf(g.MaxRPS, 1) || s.GroupPriceMs[i] < 0 && g.MinRPS == 0 {
			s.GroupPriceMs[i] = 0
		}
	}
	settleCosts(rng, p, s, x)
}

// settleCosts chooses the costs of pairs so that each reduced cost is 0, or on
// the side that a bound, a zero flow or a stay kink at x allows.
func settleCosts(rng *rand.Rand, p *model.Problem, s *model.Solution, x []float64) {
	c := newChecker(p, s)
	for i := range p.Sources {
		src := &p.Sources[i]
		for k := p.Row[i]; k < p.Row[i+1]; k++ {
			p.CostMs[k] = -pairPrice(c, i, k)
			slope := 0.0 // wanted: the right side's slope r_k - price
			penalty := p.StayPenaltyMs[k]
			switch {
			case x[k] < p.Stay[k]:
				slope = penalty // left of the kink: r - penalty = price
			case x[k] == p.Stay[k] && x[k] > 0:
				slope = penalty * rng.Float64()
			}
			if x[k] <= p.Lower[k] || x[k] == 0 {
				slope += src.Work * rng.Float64()
			} else if x[k] >= p.Upper[k] {
				slope -= min(slope, src.Work*rng.Float64())
				slope -= src.Work * rng.Float64()
			}
			p.CostMs[k] += slope
		}
		// Costs are >= 0: lift them all, and the source's price with them.
		lift := 0.0
		for k := p.Row[i]; k < p.Row[i+1]; k++ {
			lift = max(lift, -p.CostMs[k])
		}
		for k := p.Row[i]; k < p.Row[i+1]; k++ {
			p.CostMs[k] += lift
		}
		s.SourcePriceMs[i] = lift
	}
}

// pairPrice is what a request on pair k pays by prices, without its own cost.
func pairPrice(c *checker, source, k int) float64 {
	src, e := &c.p.Sources[source], c.p.Col[k]
	price := src.Work * c.workPrice[e]
	if c.prefill != nil {
		price += src.PromptTokens*c.prefill[e] + src.OutputTokens*c.output[e]
	}
	for g := range c.p.Groups {
		for _, in := range c.p.Groups[g].Engines {
			if c.p.Groups[g].Source == source && in == e {
				price += c.groupPrice(g)
			}
		}
	}
	return price
}

// TestKnownOptima: at an optimum with its prices the gap closes to rounding,
// at every scale and with every kind of row.
func TestKnownOptima(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for trial := range 3000 {
		work := []model.WorkKind{model.WorkSingle, model.WorkSplit}[trial%2]
		p, s := randomAnswer(t, rng, work, 1+rng.IntN(5), 1+rng.IntN(5))
		makeOptimal(rng, p, s)
		r, err := Check(p, s)
		if err != nil {
			t.Fatalf("trial %d: %v; %+v", trial, err, r)
		}
		tol := 1e-11
		if r.ObjectiveMsRPS == 0 {
			tol = 1e-7 // of what cancels, 1e-8: see grossRounding
		}
		if r.Gap > tol || r.PriceGap > tol {
			t.Fatalf("trial %d: %+v", trial, r)
		}
	}
}

// TestGapIsScaleFree: no unit of rates or of time changes a verdict, and
// costs that are all 0 certify.
func TestGapIsScaleFree(t *testing.T) {
	for _, scale := range []float64{1e-150, 1e-9, 1, 1e9, 1e150, 0} {
		p, s := flatRegions(t)
		s.Flows[0].RPS, s.Flows[1].RPS = 99, 21 // gap 1.2e-4 by TestCorrupted
		for k := range p.CostMs {
			p.CostMs[k] *= scale
		}
		for _, x := range [][]float64{s.EnginePrice, s.SourcePriceMs} {
			for i := range x {
				x[i] *= scale
			}
		}
		r, err := Check(p, s)
		if scale == 0 {
			if err != nil || r.Gap != 0 {
				t.Errorf("costs 0: %+v, %v", r, err)
			}
			continue
		}
		if err == nil || math.Abs(r.Gap-63.0/505963) > 1e-12 {
			t.Errorf("scale %g: gap %v, want %v", scale, r.Gap, 63.0/505963)
		}
	}
	// All costs 0 but prices that cancel: demand is exactly the capacity.
	p, s := flatRegions(t)
	clear(p.CostMs)
	for e := range s.EnginePrice {
		s.EnginePrice[e] = 1.0 / 3
	}
	s.SourcePriceMs = []float64{refWork / 3.0, refWork / 3.0}
	p.Sources[1].DemandRPS, s.ServedRPS[1], s.Flows[2].RPS = 60, 60, 60
	if r, err := Check(p, s); err != nil || r.ObjectiveMsRPS != 0 {
		t.Errorf("prices that cancel: %+v, %v", r, err)
	}
	// The same with huge prices certifies no wrong flow.
	p, s = flatRegions(t)
	for e := range s.EnginePrice {
		s.EnginePrice[e] += 1e6
	}
	for i := range s.SourcePriceMs {
		s.SourcePriceMs[i] += 1e6 * refWork
	}
	p.Sources[1].DemandRPS, s.ServedRPS[1], s.Flows[2].RPS = 60, 60, 60
	if r, err := Check(p, s); err != nil {
		t.Errorf("huge prices, right flows: %+v, %v", r, err)
	}
	s.Flows = []model.Flow{{Pair: 0, RPS: 99}, {Pair: 1, RPS: 21}, {Pair: 2, RPS: 1}, {Pair: 3, RPS: 59}}
	if r, err := Check(p, s); err == nil {
		t.Errorf("huge prices, wrong flows: %+v", r)
	}
}

// dense is a single-work program of the given size with an answer of one flow
// per source.
func dense(t testing.TB, sources, engines int) (*model.Problem, *model.Solution) {
	rng := rand.New(rand.NewPCG(3, 3))
	p := &model.Problem{Work: model.WorkSingle, Row: []int{0}}
	s := &model.Solution{EnginePrice: make([]float64, engines)}
	for e := range engines {
		p.Engines = append(p.Engines, engine(t, fmt.Sprint("e", e), 1000, .9, model.WorkSingle, ttft, tbot))
		s.EnginePrice[e] = rng.Float64()
	}
	for i := range sources {
		p.Sources = append(p.Sources, model.Source{Cluster: fmt.Sprint("s", i), Class: "c", DemandRPS: 1 + rng.Float64(), Work: 1000 + rng.Float64()})
		s.ServedRPS = append(s.ServedRPS, p.Sources[i].DemandRPS)
		s.SourcePriceMs = append(s.SourcePriceMs, 0)
		s.Flows = append(s.Flows, model.Flow{Pair: len(p.Col) + rng.IntN(engines), RPS: p.Sources[i].DemandRPS})
		for e := range engines {
			p.Col = append(p.Col, int32(e))
			p.CostMs = append(p.CostMs, 300*rng.Float64())
		}
		p.Row = append(p.Row, len(p.Col))
	}
	return p, s
}

func TestSameBytesAtAnyNumberOfThreads(t *testing.T) {
	p, s := dense(t, 700, 600)
	var want Report
	for i, n := range []int{1, 2, 3, 8} {
		before := runtime.GOMAXPROCS(n)
		r, _ := Check(p, s)
		runtime.GOMAXPROCS(before)
		if i == 0 {
			want = r
		}
		if !reflect.DeepEqual(r, want) {
			t.Errorf("with %d threads %+v, with one %+v", n, r, want)
		}
	}
}

func BenchmarkCheckDense2000(b *testing.B) {
	p, s := dense(b, 2000, 2000)
	for b.Loop() {
		if r, _ := Check(p, s); r.BoundMsRPS == 0 {
			b.Fatal("no bound")
		}
	}
}

func BenchmarkCheckDense2000WithStay(b *testing.B) {
	p, s := dense(b, 2000, 2000)
	p.Stay, p.StayPenaltyMs = make([]float64, p.Pairs()), make([]float64, p.Pairs())
	for _, f := range s.Flows {
		p.Stay[f.Pair], p.StayPenaltyMs[f.Pair] = f.RPS, 10
	}
	for b.Loop() {
		if r, _ := Check(p, s); r.BoundMsRPS == 0 {
			b.Fatal("no bound")
		}
	}
}
