// Package examples checks what the README of follow-the-sun says of its plans.
// Those of the two-region fleets are known by hand and tested with package solve.
package examples

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/input"
)

// plan solves a fleet, with another demand file if one is named.
func plan(t *testing.T, folder, demand string) *solve.Plan {
	t.Helper()
	paths := input.Paths{Folder: folder}
	if demand != "" {
		paths.Demand = filepath.Join(folder, demand)
	}
	fleet, err := input.Read(paths)
	if err != nil {
		t.Fatal(err)
	}
	p, err := solve.Solve(t.Context(), fleet, solve.Options{})
	if err != nil {
		t.Fatalf("%s %s: %v", folder, demand, err)
	}
	return p
}

// source returns the index of a source.
func source(p *solve.Plan, cluster, class string) int {
	for s, src := range p.Sources {
		if src.Cluster == cluster && src.Class == class {
			return s
		}
	}
	panic("no source " + cluster + "/" + class)
}

// flows returns the req/s from a source to each engine.
func flows(p *solve.Plan, cluster, class string) map[string]float64 {
	s := source(p, cluster, class)
	rps := map[string]float64{}
	for _, f := range p.Solution.Flows {
		if f.Pair >= p.Row[s] && f.Pair < p.Row[s+1] {
			rps[p.Engines[p.Col[f.Pair]].Name] += f.RPS
		}
	}
	return rps
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestFollowTheSun(t *testing.T) {
	p := plan(t, "follow-the-sun", "")
	west := flows(p, "West Europe", "chat")
	near(t, "West Europe's chat to Singapore", west["asia-b200"], 8.4, 0.05)
	near(t, "West Europe's chat to Virginia", west["us-h100"], 2.2, 0.05)
	eu := flows(p, "West Europe", "chat-eu")["eu-h200"] + flows(p, "East US 2", "chat-eu")["eu-h200"]
	near(t, "chat-eu at eu-h200", eu, 9.5, 0.05)
	near(t, "what residency costs", p.Solution.SourcePriceMs[source(p, "East US 2", "chat-eu")]-
		p.Solution.SourcePriceMs[source(p, "East US 2", "chat")], 176, 0.5)

	// Each row of the table in the README.
	for hour, want := range map[string]string{
		"02": "us-h100 77 asia-b200 22 eu-h200 1; eu-h200 100; asia-b200 100; au-h100 52 asia-b200 48",
		"08": "us-h100 100; us-h100 47 asia-b200 40 eu-h200 13; asia-b200 100; asia-b200 51 au-h100 49",
		"14": "us-h100 100; eu-h200 44 asia-b200 34 us-h100 22; asia-b200 100; au-h100 82 asia-b200 18",
		"20": "us-h100 100; asia-b200 74 us-h100 19 eu-h200 7; asia-b200 100; au-h100 80 asia-b200 20",
	} {
		p := plan(t, "follow-the-sun", "hours/demand-"+hour+".csv")
		clusters := []string{"East US 2", "West Europe", "Southeast Asia", "Australia East"}
		for i, row := range strings.Split(want, "; ") {
			got, fields := flows(p, clusters[i], "chat"), strings.Fields(row)
			total := p.Sources[source(p, clusters[i], "chat")].DemandRPS
			if len(got) != len(fields)/2 {
				t.Errorf("%s:00, %s: goes to %v, want %s", hour, clusters[i], got, row)
			}
			for j := 0; j < len(fields); j += 2 {
				if percent := fmt.Sprintf("%.0f", 100*got[fields[j]]/total); percent != fields[j+1] {
					t.Errorf("%s:00, %s: %s %% at %s, want %s", hour, clusters[i], percent, fields[j], fields[j+1])
				}
			}
		}
	}
}

// Every hour of the day can be served, by engines between half and full use.
func TestFollowTheSunAllDay(t *testing.T) {
	for hour := range 24 {
		p := plan(t, "follow-the-sun", fmt.Sprintf("hours/demand-%02d.csv", hour))
		load := make([]float64, len(p.Engines))
		for s, src := range p.Sources {
			for _, f := range p.Solution.Flows {
				if f.Pair >= p.Row[s] && f.Pair < p.Row[s+1] {
					load[p.Col[f.Pair]] += f.RPS * src.Work
				}
			}
		}
		for e, engine := range p.Engines {
			if v := load[e] / engine.Capacity; v < 0.45 || v > 0.9+1e-9 {
				t.Errorf("%02d:00: %s is at utilization %.3f, want 0.45 to 0.9", hour, engine.Name, v)
			}
		}
	}
}
