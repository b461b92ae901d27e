package pool

import (
	"slices"
	"testing"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
)

// twins is a program in which engines 0 and 2 are the same, and sources 0 and 1
// but for their demands, 1 and 3 req/s.
func twins(t *testing.T) *model.Problem {
	p := &model.Problem{
		Work: model.WorkSingle, Row: []int{0, 3, 6, 8}, Col: []int32{0, 1, 2, 0, 1, 2, 1, 2},
		CostMs: []float64{5, 7, 5, 5, 7, 5, 1, 9},
	}
	for i, rps := range []float64{1, 3, 2} {
		p.Sources = append(p.Sources, model.Source{Cluster: string(rune('a' + i)), DemandRPS: rps, Work: 1})
	}
	for range 3 {
		sink, err := profile.NewSink(10, 9, 1, []profile.Curve{{V: []float64{0, 1}, Ms: []float64{1, 2}}}, []float64{1})
		if err != nil {
			t.Fatal(err)
		}
		p.Engines = append(p.Engines, model.EngineNode{Capacity: 10, Limit: 9, ReferenceWork: 1, Delay: sink})
	}
	return p
}

func TestOf(t *testing.T) {
	p := twins(t)
	// Source 2 tells engine 0 from engine 2: only the sources merge.
	merged := Of(p)
	if merged == nil || len(merged.Engines) != 3 || len(merged.Sources) != 2 || merged.Sources[0].DemandRPS != 4 {
		t.Fatalf("merged to %+v, want 3 engines and 2 sources, of 4 and 2 req/s", merged)
	}
	p.Row, p.Col, p.CostMs = []int{0, 3, 6, 9}, append(p.Col[:6], 0, 1, 2), append(p.CostMs[:6], 9, 1, 9)
	merged = Of(p)
	if merged == nil || len(merged.Engines) != 2 || merged.Engines[0].Limit != 18 || merged.Engines[1].Limit != 9 {
		t.Fatalf("merged to %+v, want engines that take 18 and 9", merged)
	}
	for name, differ := range map[string]func(){
		"limit":    func() { p.Engines[2].Limit = 8 },
		"cap":      func() { p.Caps = []model.WorkCap{{Engines: []int32{2}, MaxWork: 5}} },
		"group":    func() { p.Groups = []model.Group{{Source: 2, Engines: []int32{0}, MaxRPS: 1}} },
		"previous": func() { p.Stay, p.StayPenaltyMs = make([]float64, 9), make([]float64, 9); p.Stay[2] = 1 },
	} {
		whole := *p
		whole.Engines = slices.Clone(p.Engines)
		keep := *p
		*p = whole
		differ()
		if merged := Of(p); merged != nil && len(merged.Engines) != 3 {
			t.Errorf("engines with another %s are merged", name)
		}
		*p = keep
	}
}

func TestExpand(t *testing.T) {
	p := twins(t)
	p.Row, p.Col, p.CostMs = []int{0, 3, 6, 9}, append(p.Col[:6], 0, 1, 2), append(p.CostMs[:6], 9, 1, 9)
	merged := Of(p)
	x := merged.Expand(&model.Solution{
		Flows: []model.Flow{{Pair: 0, RPS: 4}, {Pair: 3, RPS: 2}}, ServedRPS: []float64{4, 2},
		SourcePriceMs: []float64{6, 2}, EnginePrice: []float64{1, 3},
		ShedCuts: []model.ShedCut{{Sources: []int{0}, Engines: []int{0}}},
	})
	// A quarter of 4 req/s is source 0's, half of that on each twin.
	want := []model.Flow{{Pair: 0, RPS: 0.5}, {Pair: 2, RPS: 0.5}, {Pair: 3, RPS: 1.5}, {Pair: 5, RPS: 1.5}, {Pair: 7, RPS: 2}}
	if !slices.Equal(x.Flows, want) {
		t.Errorf("flows are %v, want %v", x.Flows, want)
	}
	if !slices.Equal(x.ServedRPS, []float64{1, 3, 2}) || !slices.Equal(x.EnginePrice, []float64{1, 3, 1}) || !slices.Equal(x.SourcePriceMs, []float64{6, 6, 2}) {
		t.Errorf("served %v, prices %v and %v", x.ServedRPS, x.EnginePrice, x.SourcePriceMs)
	}
	if cut := x.ShedCuts[0]; !slices.Equal(cut.Sources, []int{0, 1}) || !slices.Equal(cut.Engines, []int{0, 2}) {
		t.Errorf("the cut names sources %v and engines %v, want both twins of each", cut.Sources, cut.Engines)
	}
	if back := merged.Gather(x.Flows); !slices.Equal(back, []model.Flow{{Pair: 0, RPS: 4}, {Pair: 3, RPS: 2}}) {
		t.Errorf("gathered to %v", back)
	}
	short := merged.ExpandError(&model.Infeasible{Sources: []int{0}, Engines: []int{0}, Pairs: []int{0}})
	if !slices.Equal(short.Sources, []int{0, 1}) || !slices.Equal(short.Engines, []int{0, 2}) || !slices.Equal(short.Pairs, []int{0, 2, 3, 5}) {
		t.Errorf("the error names %+v, want both twins of each", short)
	}
}
