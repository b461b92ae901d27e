package network

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/irb-project/irb/solve/model"
)

// Minimums come before any demand, however little of it can be served: what is
// refused costs less than what nothing may refuse.
func TestServeBesideMinimums(t *testing.T) {
	for _, limit := range []float64{1e-3, 3, 7.7, 10, 1e3} {
		for _, rps := range []float64{1, 100, 1e4, 1e6, 1e9} {
			for _, part := range []float64{1, 0.999999999, 0.9} {
				p := problem([]float64{limit, 5}, demand{0, limit, []int32{0}}, demand{0, rps, []int32{0}}, demand{1, rps / 3, both()})
				p.Lower = []float64{part * limit, 0, 0, 0}
				p.Upper = []float64{math.Inf(1), math.Inf(1), math.Inf(1), math.Inf(1)}
				if _, _, err := Serve(context.Background(), p); err != nil {
					t.Errorf("limit %g, demand %g, minimum %g of the limit: %v", limit, rps, part, err)
				}
			}
		}
	}
}

// demand is one source of a test: what it wants and the engines it may use.
type demand struct {
	priority int
	rps      float64
	engines  []int32
}

// problem makes a problem of work 1 per request; limits are per engine.
func problem(limits []float64, demands ...demand) *model.Problem {
	p := &model.Problem{Work: model.WorkSingle, Shed: true, Row: []int{0}}
	for _, limit := range limits {
		p.Engines = append(p.Engines, model.EngineNode{Limit: limit, Capacity: limit, ReferenceWork: 1})
	}
	for _, d := range demands {
		p.Sources = append(p.Sources, model.Source{Priority: d.priority, DemandRPS: d.rps, Work: 1})
		p.Col = append(p.Col, d.engines...)
		p.Row = append(p.Row, len(p.Col))
	}
	p.CostMs = make([]float64, len(p.Col))
	return p
}

func both() []int32 { return []int32{0, 1} }

func TestServe(t *testing.T) {
	for _, test := range []struct {
		name   string
		p      *model.Problem
		served []float64
		cuts   []model.ShedCut
	}{
		{"all fits", problem([]float64{10, 10}, demand{0, 8, both()}, demand{1, 12, both()}), []float64{8, 12}, nil},
		{
			"higher priority first",
			problem([]float64{10}, demand{0, 8, []int32{0}}, demand{1, 6, []int32{0}}),
			[]float64{4, 6},
			[]model.ShedCut{{Priority: 0, Sources: []int{0, 1}, Engines: []int{0}}},
		},
		{
			"the highest alone is too much",
			problem([]float64{10}, demand{0, 8, []int32{0}}, demand{1, 16, []int32{0}}),
			[]float64{0, 10},
			[]model.ShedCut{{Priority: 1, Sources: []int{1}, Engines: []int{0}}, {Priority: 0, Sources: []int{0, 1}, Engines: []int{0}}},
		},
		{
			"equal fractions",
			problem([]float64{9}, demand{0, 6, []int32{0}}, demand{0, 12, []int32{0}}),
			[]float64{3, 6},
			[]model.ShedCut{{Priority: 0, Sources: []int{0, 1}, Engines: []int{0}}},
		},
		{
			"equal where reachable: the free engine serves its own in full",
			problem([]float64{5, 20}, demand{0, 10, []int32{0}}, demand{0, 10, []int32{1}}),
			[]float64{5, 10},
			[]model.ShedCut{{Priority: 0, Sources: []int{0}, Engines: []int{0}}},
		},
		{
			"two bottlenecks, two fractions",
			problem([]float64{2, 6}, demand{0, 10, []int32{0}}, demand{0, 10, []int32{1}}),
			[]float64{2, 6},
			[]model.ShedCut{{Priority: 0, Sources: []int{0, 1}, Engines: []int{0, 1}}},
		},
		{
			"a higher priority makes way without losing",
			problem([]float64{10, 10}, demand{1, 10, both()}, demand{0, 10, []int32{0}}),
			[]float64{10, 10},
			nil,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			served, cuts, err := Serve(context.Background(), test.p)
			if err != nil {
				t.Fatal(err)
			}
			for s := range served {
				if math.Abs(served[s]-test.served[s]) > 1e-8 {
					t.Errorf("served %v, want %v", served, test.served)
					break
				}
			}
			if !slices.EqualFunc(cuts, test.cuts, func(a, b model.ShedCut) bool {
				return a.Priority == b.Priority && slices.Equal(a.Sources, b.Sources) && slices.Equal(a.Engines, b.Engines)
			}) {
				t.Errorf("cuts %+v, want %+v", cuts, test.cuts)
			}
		})
	}
}

func TestServeBounds(t *testing.T) {
	// An upper bound of 3 on the only other engine, and a minimum of 4 of the
	// lower priority on the contested one.
	p := problem([]float64{10, 10}, demand{1, 12, both()}, demand{0, 8, []int32{0}})
	p.Lower = []float64{0, 0, 4}
	p.Upper = []float64{math.Inf(1), 3, math.Inf(1)}
	served, cuts, err := Serve(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{9, 4}; math.Abs(served[0]-want[0]) > 1e-8 || math.Abs(served[1]-want[1]) > 1e-8 {
		t.Errorf("served %v, want %v", served, want)
	}
	if len(cuts) != 2 {
		t.Errorf("cuts %+v, want one per priority", cuts)
	}
	p.Lower[0], p.Lower[2] = 3, 8
	var infeasible *model.Infeasible
	if _, _, err := Serve(context.Background(), p); !errors.As(err, &infeasible) || !slices.Equal(infeasible.Engines, []int{0}) {
		t.Errorf("minima above the limit give %v, want engine 0 named", err)
	}
}

func TestServeGroupsAndCaps(t *testing.T) {
	p := problem([]float64{10, 10, 10}, demand{0, 20, []int32{0, 1, 2}}, demand{0, 20, []int32{0, 1, 2}})
	p.Caps = []model.WorkCap{{Name: "cap", Engines: []int32{0, 1}, MaxWork: 12}}
	p.Groups = []model.Group{{Name: "share", Source: 0, Engines: []int32{0, 1}, MaxRPS: 1}}
	served, cuts, err := Serve(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	// 22 in all; source 0 has at most 1 under the cap and 10 on engine 2.
	if math.Abs(served[0]+served[1]-22) > 1e-7 || math.Abs(served[0]-11) > 1e-7 {
		t.Errorf("served %v, want 11 and 11", served)
	}
	if len(cuts) != 1 || !slices.Equal(cuts[0].Caps, []int{0}) || !slices.Equal(cuts[0].Engines, []int{2}) {
		t.Errorf("cuts %+v, want the cap and engine 2", cuts)
	}
	p.Caps = append(p.Caps, model.WorkCap{Name: "other", Engines: []int32{1, 2}, MaxWork: 12})
	if _, _, err := Serve(context.Background(), p); err == nil {
		t.Error("overlapping caps are accepted")
	}
}

func TestServeNothingEligible(t *testing.T) {
	p := problem([]float64{10}, demand{0, 5, []int32{0}}, demand{3, 5, nil})
	var infeasible *model.Infeasible
	if _, _, err := Serve(context.Background(), p); !errors.As(err, &infeasible) || !slices.Equal(infeasible.Sources, []int{1}) {
		t.Errorf("error is %v, want source 1 named", err)
	}
}
