package certify

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
)

const (
	refPrompt = 1024
	refOutput = 256
	refWork   = refPrompt + 4*refOutput
	baseMs    = 80 + refOutput*12 // of both profiles below
)

// The h100-70b table of the design, and the same without queueing.
var (
	tableV = []float64{0, .25, .5, .75, .9, 1}
	ttft   = profile.Curve{V: tableV, Ms: []float64{80, 85, 100, 140, 220, 400}}
	tbot   = profile.Curve{V: tableV, Ms: []float64{12, 13, 15, 18, 22, 30}}
	flat   = profile.Curve{V: []float64{0}, Ms: []float64{1}}
)

func engine(t testing.TB, name string, rps, maxUtilization float64, work model.WorkKind, ttft, tbot profile.Curve) model.EngineNode {
	t.Helper()
	capacity := rps * refWork
	e := model.EngineNode{Name: name, ReferenceWork: refWork, Capacity: capacity, Limit: capacity * maxUtilization}
	sink := func(capacity, limit, scale float64, weight []float64, curves ...profile.Curve) *profile.Sink {
		s, err := profile.NewSink(capacity, limit, scale, curves, weight)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if work == model.WorkSplit {
		e.Prefill = sink(rps*refPrompt, e.Limit, 1.0/refPrompt, []float64{1}, ttft)
		e.Output = sink(rps*refOutput, e.Limit/4, 1, []float64{1}, tbot)
	} else {
		e.Delay = sink(capacity, e.Limit, 1.0/refWork, []float64{1, refOutput}, ttft, tbot)
	}
	return e
}

// twoRegions is the case of the examples of that name: us-east offers 120
// req/s, us-west 40; a-1 of 100 req/s is near us-east, c-1 of 80 near us-west.
// The solution is the one with onA req/s of us-east at a-1, and engine prices
// that are the marginal delays there.
func twoRegions(t testing.TB, work model.WorkKind, maxUtilization float64, ttft, tbot profile.Curve, onA float64) (*model.Problem, *model.Solution) {
	p := &model.Problem{
		Work: work,
		Engines: []model.EngineNode{
			engine(t, "a-1", 100, maxUtilization, work, ttft, tbot),
			engine(t, "c-1", 80, maxUtilization, work, ttft, tbot),
		},
		Row: []int{0, 2, 4}, Col: []int32{0, 1, 0, 1},
		CostMs: []float64{2 + baseMs, 65 + baseMs, 65 + baseMs, 2 + baseMs},
	}
	for _, s := range []struct {
		cluster string
		rps     float64
	}{{"us-east", 120}, {"us-west", 40}} {
		p.Sources = append(p.Sources, model.Source{
			Cluster: s.cluster, Class: "chat", DemandRPS: s.rps,
			PromptTokens: refPrompt, OutputTokens: refOutput, Work: refWork,
		})
	}
	s := &model.Solution{
		Flows:     []model.Flow{{Pair: 0, RPS: onA}, {Pair: 1, RPS: 120 - onA}, {Pair: 3, RPS: 40}},
		ServedRPS: []float64{120, 40}, EnginePrice: make([]float64, 2),
	}
	perRequest := make([]float64, 2)
	for e, rps := range []float64{onA, 160 - onA} {
		node := &p.Engines[e]
		if work == model.WorkSplit {
			a, _ := node.Prefill.Marginal(rps * refPrompt)
			b, _ := node.Output.Marginal(rps * refOutput)
			s.PrefillPrice, s.OutputPrice = append(s.PrefillPrice, a), append(s.OutputPrice, b)
			perRequest[e] = refPrompt*a + refOutput*b
		} else {
			s.EnginePrice[e], _ = node.Delay.Marginal(rps * refWork)
			perRequest[e] = refWork * s.EnginePrice[e]
		}
	}
	s.SourcePriceMs = []float64{
		min(p.CostMs[0]+perRequest[0], p.CostMs[1]+perRequest[1]),
		min(p.CostMs[2]+perRequest[0], p.CostMs[3]+perRequest[1]),
	}
	return p, s
}

// flatRegions is the talk's case: 100 and 20 req/s, a-1 at its limit at 63 ms.
func flatRegions(t testing.TB) (*model.Problem, *model.Solution) {
	p, s := twoRegions(t, model.WorkSingle, 1, flat, flat, 100)
	s.EnginePrice = []float64{63.0 / refWork, 0}
	s.SourcePriceMs = []float64{65 + baseMs, 2 + baseMs}
	return p, s
}

// queueingOnA is where 2 + 14720 v_a = 65 + 14720 v_c and 100 v_a + 80 v_c = 160:
// 14720 is the slope of the marginal, ms per unit of utilization, of the table
// from 0.75 to 0.9.
const queueingOnA = 100 * (160 + 80*63.0/14720) / 180

func TestTwoRegions(t *testing.T) {
	fp, fs := flatRegions(t)
	qp, qs := twoRegions(t, model.WorkSingle, .9, ttft, tbot, queueingOnA)
	sp, ss := twoRegions(t, model.WorkSplit, .9, ttft, tbot, queueingOnA)
	for _, tc := range []struct {
		name string
		p    *model.Problem
		s    *model.Solution
		want float64
	}{
		{"flat", fp, fs, 100*2 + 20*65 + 40*2 + 160*baseMs},
		{"queueing", qp, qs, 925509.5637},
		{"split work at the reference mix", sp, ss, 925509.5637},
	} {
		r, err := Check(tc.p, tc.s)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if math.Abs(r.ObjectiveMsRPS-tc.want) > 1e-4 || math.Abs(r.BoundMsRPS-tc.want) > 1e-4 {
			t.Errorf("%s: objective %.6f, bound %.6f, want %.4f", tc.name, r.ObjectiveMsRPS, r.BoundMsRPS, tc.want)
		}
		if r.Gap > 1e-13 || r.MaxResidual > 1e-15 || r.PriceGap > 1e-13 || r.ChurnMsRPS != 0 || r.LatencyMsRPS != r.ObjectiveMsRPS {
			t.Errorf("%s: %+v", tc.name, r)
		}
	}
	if math.Abs(queueingOnA-89.0791) > 5e-5 {
		t.Errorf("a-1 carries %v, want 89.0791", queueingOnA)
	}
}

// TestStay: us-west was all at a-1. Leaving costs 10 ms per req/s: not enough
// to stay, so all of 400 ms x req/s is paid. At 200 ms it stays by what fits.
func TestStay(t *testing.T) {
	p, s := flatRegions(t)
	p.Stay = []float64{0, 0, 40, 0}
	p.StayPenaltyMs = []float64{0, 0, 10, 0}
	r, err := Check(p, s)
	if err != nil || r.ChurnMsRPS != 400 || r.ObjectiveMsRPS != r.LatencyMsRPS+400 || r.Gap > 1e-13 {
		t.Errorf("%+v, %v; want churn 400", r, err)
	}
	p.StayPenaltyMs[2] = 200
	if _, err = Check(p, s); err == nil || !strings.Contains(err.Error(), "gap") {
		t.Errorf("leaving at 200 ms: %v, want a gap", err)
	}
	// us-west stays, us-east yields 40 at a-1: both sit between 100 and 40.
	s.Flows = []model.Flow{{Pair: 0, RPS: 60}, {Pair: 1, RPS: 60}, {Pair: 2, RPS: 40}}
	r, err = Check(p, s)
	if err != nil || r.ChurnMsRPS != 0 {
		t.Errorf("%+v, %v; want no churn", r, err)
	}
}

// TestBoundsGroupsCaps: the flat case with one more rule each, by hand.
func TestBoundsGroupsCaps(t *testing.T) {
	for _, tc := range []struct {
		name string
		add  func(*model.Problem, *model.Solution)
		want float64 // latency beyond base
	}{
		{"max_share", func(p *model.Problem, s *model.Solution) {
			p.Lower, p.Upper = make([]float64, 4), []float64{90, 120, 40, 40}
			s.EnginePrice[0] = 0
			s.Flows[0].RPS, s.Flows[1].RPS = 90, 30
		}, 90*2 + 30*65 + 40*2},
		{"min_share", func(p *model.Problem, s *model.Solution) {
			p.Lower, p.Upper = []float64{0, 30, 0, 0}, []float64{120, 120, 40, 40}
			s.EnginePrice[0] = 0
			s.SourcePriceMs[0] = 2 + baseMs
			s.Flows[0].RPS, s.Flows[1].RPS = 90, 30
		}, 90*2 + 30*65 + 40*2},
		{"group maximum", func(p *model.Problem, s *model.Solution) {
			p.Groups = []model.Group{{Name: "max_share of us-east in region-a", Engines: []int32{0}, MaxRPS: 90}}
			s.EnginePrice[0] = 0
			s.GroupPriceMs = []float64{63}
			s.Flows[0].RPS, s.Flows[1].RPS = 90, 30
		}, 90*2 + 30*65 + 40*2},
		{"group minimum", func(p *model.Problem, s *model.Solution) {
			p.Groups = []model.Group{{Name: "min_share of us-east in region-c", Engines: []int32{1}, MinRPS: 30, MaxRPS: math.Inf(1)}}
			s.EnginePrice[0] = 0
			s.GroupPriceMs = []float64{-63}
			s.SourcePriceMs[0] = 2 + baseMs
			s.Flows[0].RPS, s.Flows[1].RPS = 90, 30
		}, 90*2 + 30*65 + 40*2},
		{"cap", func(p *model.Problem, s *model.Solution) {
			p.Caps = []model.WorkCap{{Name: "cap 1", Engines: []int32{0}, MaxWork: 90 * refWork}}
			s.EnginePrice[0], s.CapPrice = 0, []float64{63.0 / refWork}
			s.Flows[0].RPS, s.Flows[1].RPS = 90, 30
		}, 90*2 + 30*65 + 40*2},
	} {
		p, s := flatRegions(t)
		tc.add(p, s)
		r, err := Check(p, s)
		if err != nil || math.Abs(r.ObjectiveMsRPS-tc.want-160*baseMs) > 1e-6 {
			t.Errorf("%s: %+v, %v; want %v and base", tc.name, r, err, tc.want)
		}
		// 1 req/s further breaks exactly that rule.
		s.Flows[0].RPS++
		s.Flows[1].RPS--
		r, err = Check(p, s)
		if err == nil || !strings.Contains(err.Error(), " by 1 req/s") && !strings.Contains(err.Error(), " by 2.05e+03 work/s") {
			t.Errorf("%s broken: %+v, %v", tc.name, r, err)
		}
	}
}

// TestCorrupted: whatever part of an answer is wrong is found, and named.
func TestCorrupted(t *testing.T) {
	for _, tc := range []struct {
		name    string
		corrupt func(*model.Problem, *model.Solution)
		want    string
	}{
		{"flow over the limit", func(_ *model.Problem, s *model.Solution) { s.Flows[0].RPS += 3.1e-4; s.Flows[1].RPS -= 3.1e-4 },
			`certify: row "capacity/a-1" exceeded by 0.00031 req/s (tolerance 2e-07)`},
		{"flow lost", func(_ *model.Problem, s *model.Solution) { s.Flows[2].RPS = 39 },
			`certify: row "served/us-west/chat" missed by 1 req/s (tolerance 8e-08)`},
		{"flow negative", func(_ *model.Problem, s *model.Solution) {
			s.Flows = slices.Insert(s.Flows, 2, model.Flow{Pair: 2, RPS: -1})
			s.Flows[3].RPS = 41
		}, `certify: row "flow/us-west/chat/a-1" exceeded by 1 req/s`},
		{"served less than demand", func(_ *model.Problem, s *model.Solution) { s.ServedRPS[1] = 39; s.Flows[2].RPS = 39 },
			`certify: row "demand/us-west/chat" missed by 1 req/s`},
		{"worse flows", func(_ *model.Problem, s *model.Solution) { s.Flows[0].RPS, s.Flows[1].RPS = 99, 21 },
			`certify: objective 505963 ms x req/s, bound 505900: gap 0.000125, want at most 1e-06`},
		{"engine price", func(_ *model.Problem, s *model.Solution) { s.EnginePrice[0] *= .99; s.SourcePriceMs[0] -= .63 }, "gap"},
		{"engine price negative", func(_ *model.Problem, s *model.Solution) { s.EnginePrice[0] = -1 }, "gap"},
		{"source price", func(_ *model.Problem, s *model.Solution) { s.SourcePriceMs[0] += 1 },
			`certify: the price of source us-east/chat is 3218 ms, by the prices of engines it is from 3217 to 3217`},
		{"cost", func(p *model.Problem, s *model.Solution) { p.CostMs[3] += 100 },
			"certify: the price of source us-west/chat is 3154 ms, by the prices of engines it is from 3254 to 3254"},
		{"NaN", func(_ *model.Problem, s *model.Solution) { s.EnginePrice[1] = math.NaN() },
			"certify: EnginePrice[1] is NaN, want a finite number"},
		{"infinite flow", func(_ *model.Problem, s *model.Solution) { s.Flows[1].RPS = math.Inf(1) }, "flow 1 is +Inf req/s"},
		{"pair out of range", func(_ *model.Problem, s *model.Solution) { s.Flows[2].Pair = 4 }, "flow 2 is on pair 4 of 4"},
		{"pair twice", func(_ *model.Problem, s *model.Solution) { s.Flows[1].Pair = 0 }, "flow 1 is on pair 0 after pair 0"},
		{"too few prices", func(_ *model.Problem, s *model.Solution) { s.EnginePrice = s.EnginePrice[:1] }, "EnginePrice has 1 values, want 2"},
		{"engine without capacity", func(p *model.Problem, _ *model.Solution) { p.Engines[1].Delay = nil }, `flow 1 is on engine "c-1", which has no capacity`},
		{"half a stay", func(p *model.Problem, _ *model.Solution) { p.Stay = make([]float64, 4) }, "only one of Stay and StayPenaltyMs is set"},
		{"short bounds", func(p *model.Problem, _ *model.Solution) { p.Upper = make([]float64, 3) }, "Upper has 3 values, want 4"},
		{"broken rows", func(p *model.Problem, _ *model.Solution) { p.Row[2] = 3 }, "the rows of pairs do not fit the sources"},
	} {
		p, s := flatRegions(t)
		tc.corrupt(p, s)
		_, err := Check(p, s)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", tc.name, err, tc.want)
		}
	}
}
