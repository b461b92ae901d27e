package proof

import (
	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/model"
)

// PreviousWeights returns what a snapshot did, for model.CompileOptions; nil
// for nil. Solver and proof must read the same from it.
func PreviousWeights(s *snapshot.Snapshot) model.Previous {
	if s == nil {
		return nil
	}
	previous := make(model.Previous, len(s.Sources))
	for _, source := range s.Sources {
		weights := make(map[string]float64, len(source.Weights))
		for _, w := range source.Weights {
			weights[w.Engine] = float64(w.Quota) / snapshot.QuotaSum
		}
		previous[model.SourceKey{Cluster: source.Cluster, Class: source.Class}] = weights
	}
	return previous
}
