package guard

import (
	"fmt"
	"time"

	"github.com/irb-project/irb/agent/snapshot"
)

// start is when the clocks of tests begin.
var start = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// profile is that of a 70B model on a pool of GPUs.
func profile() snapshot.Profile {
	v := []float64{0, 0.25, 0.5, 0.75, 0.9, 1}
	return snapshot.Profile{
		Name: "p", PromptTokens: 1024, OutputTokens: 64,
		TTFTV: v, TTFTMs: []float64{80, 85, 100, 140, 220, 400},
		TBOTV: v, TBOTMs: []float64{12, 13, 15, 18, 22, 30},
	}
}

// fleet is n engines of one endpoint each that share every class evenly; each
// can do capacity reference requests/s and is planned at utilization v.
func fleet(n int, capacity, v float64, classes ...snapshot.Class) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Format: 1, Fleet: "test", Sequence: 1, Policy: snapshot.Policy{OutputTokenWork: 4}}
	s.Classes = classes
	if len(classes) == 0 {
		s.Classes = []snapshot.Class{{Name: "chat"}}
	}
	for i := range n {
		s.Engines = append(s.Engines, snapshot.Engine{
			Name: fmt.Sprintf("e%d", i), Endpoints: []string{fmt.Sprintf("http://e%d", i)},
			CapacityRPS: capacity, Utilization: v, PlannedRPS: v * capacity, Profile: profile(),
		})
	}
	for _, c := range s.Classes {
		rps := v * capacity * float64(n) / float64(len(s.Classes))
		src := snapshot.Source{
			Cluster: "here", Class: c.Name, OfferedRPS: rps, ServedRPS: rps, PromptTokens: 1024, OutputTokens: 64,
		}
		for _, e := range s.Engines {
			src.LayoutTo = append(src.LayoutTo, e.Name)
			src.Weights = append(src.Weights, snapshot.Weight{Engine: e.Name, Fraction: 1 / float64(n), RPS: rps / float64(n), RTTMs: 2})
		}
		s.Sources = append(s.Sources, src)
	}
	return s
}

// spec is the Spec of a snapshot whose endpoints are as named there.
func spec(s *snapshot.Snapshot) Spec {
	p := Spec{Snapshot: s, Cluster: "here"}
	for _, e := range s.Engines {
		p.Endpoints = append(p.Endpoints, e.Endpoints)
		p.Stay = append(p.Stay, stayAll)
	}
	return p
}
