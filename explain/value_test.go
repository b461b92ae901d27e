package explain

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"

	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/model"
)

// mixed is follow-the-sun with requests of two mixes, which split work tells
// apart.
func mixed(t *testing.T) *model.Fleet {
	fleet := readFleet(t, "follow-the-sun")
	for i := range fleet.Demand {
		if i%2 == 0 {
			fleet.Demand[i].PromptTokens, fleet.Demand[i].OutputTokens = 3000, 500
		}
	}
	return fleet
}

// The slope of capacity bounds what a finite addition saves, and is what a tiny
// one saves; so for single and split work, at limits and below.
func TestValueOfCapacityIsTheSlope(t *testing.T) {
	for name, fleet := range map[string]*model.Fleet{
		"two regions": readFleet(t, "two-regions"), "queueing": readFleet(t, "two-regions-queueing"),
		"single": readFleet(t, "follow-the-sun"), "split": mixed(t),
	} {
		tiny, err := ValueCapacity(context.Background(), fleet, solve.Options{}, "+0.01%")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := tiny.Now.plan.Work; (got == model.WorkSplit) != (name == "split") {
			t.Fatalf("%s: solved with %s work", name, got)
		}
		for _, v := range tiny.Values {
			if math.Abs(v.SavesMsRPS-v.AtMostMsRPS) > 0.01*v.AtMostMsRPS+1e-6*tiny.Now.ObjectiveMsRPS*1e-2 {
				t.Errorf("%s: a little more at %s saves %v ms x req/s, the slope says %v", name, v.Engine, v.SavesMsRPS, v.AtMostMsRPS)
			}
		}
		large, err := ValueCapacity(context.Background(), fleet, solve.Options{}, "+50%")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, v := range large.Values {
			if v.SavesMsRPS > v.AtMostMsRPS+1e-6*large.Now.ObjectiveMsRPS || v.SavesMsRPS < -1e-6*large.Now.ObjectiveMsRPS {
				t.Errorf("%s: 50 %% more at %s saves %v ms x req/s, want 0 to %v", name, v.Engine, v.SavesMsRPS, v.AtMostMsRPS)
			}
		}
	}
}

func TestWhatBinds(t *testing.T) {
	fleet := readFleet(t, "two-regions")
	share := 0.75
	fleet.Policy.Rules = []model.Rule{{Name: "rule 1", Cluster: "us-east", Engine: "a-1", MaxShare: &share}}
	v, err := ValueCapacity(context.Background(), fleet, solve.Options{}, "10")
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Binding) != 1 || v.Binding[0].What != "a share holds us-east/default at 90 req/s on a-1" || math.Abs(v.Binding[0].PriceMs-63) > 1e-9 {
		t.Errorf("binding are %+v, want the rule at 63 ms", v.Binding)
	}
	s, err := Sensitivity(context.Background(), fleet, solve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// Without the rule 10 req/s more fit on a-1, 63 ms nearer.
	if len(s.Knobs) != 1 || s.Knobs[0].Name != "rule 1" || math.Abs(s.Knobs[0].CostsMsRPS-630) > 1e-6 {
		t.Errorf("knobs are %+v, want the rule at 630 ms x req/s", s.Knobs)
	}
	var out bytes.Buffer
	if err := s.Report().WriteText(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "rule 1  no such rule               630   +3.938") {
		t.Errorf("text is\n%s", &out)
	}
}

// Of 200 req/s at two engines of 100 and 80 without queues 20 are shed; 10 more
// at either serve 10 of them.
func TestValueOfCapacityWhereDemandIsShed(t *testing.T) {
	fleet := readFleet(t, "two-regions")
	fleet.Policy.Shed = true
	for i := range fleet.Demand {
		fleet.Demand[i].RPS *= 200.0 / 160
	}
	v, err := ValueCapacity(context.Background(), fleet, solve.Options{}, "10")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range v.Values {
		if math.Abs(x.ServesRPS-10) > 1e-6 || x.SavesMsRPS >= 0 {
			t.Errorf("10 req/s more at %s serve %v more and save %v ms x req/s, want 10 and below 0", x.Engine, x.ServesRPS, x.SavesMsRPS)
		}
	}
	var out bytes.Buffer
	if err := v.Report().WriteText(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "20 req/s are shed now") || !strings.Contains(out.String(), "serves 10 req/s more of what is shed now") {
		t.Errorf("text is\n%s", &out)
	}
}
