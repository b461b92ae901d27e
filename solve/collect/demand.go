package collect

import (
	"cmp"
	"slices"

	"github.com/irb-project/irb/solve/model"
)

// SourceDemand is one row of demand for the next solve.
type SourceDemand struct {
	Cluster        string    `json:"cluster"`
	Class          string    `json:"class"`
	RPS            float64   `json:"rps"`
	PromptTokens   float64   `json:"prompt_tokens"`
	OutputTokens   float64   `json:"output_tokens"`
	CachedFraction float64   `json:"cached_fraction"`
	RequestsPerKey float64   `json:"requests_per_key"`
	Forecast       *Forecast `json:"forecast"` // nil: not measured, RPS is as the fleet has it
	// Kept are the columns that are as the fleet has them, or by default.
	Kept []string `json:"kept"`
	// EstimatedShare is the part of the requests whose tokens the agents had
	// to estimate, since no usage told of them.
	EstimatedShare float64 `json:"estimated_share"`
}

// mostCached keeps a cached fraction below 1, which the model wants: the last
// tokens of a prompt are never cached.
const mostCached = 0.99

// demandOf makes the rows of demand: those of the fleet, and those that are
// measured under names that the fleet has.
func demandOf(s *Signals, fleet *model.Fleet, o Options) ([]SourceDemand, error) {
	rows := map[Pair]model.Demand{}
	for _, d := range fleet.Demand {
		rows[Pair{d.Cluster, d.Class}] = d
	}
	reference := fleet.Policy.Reference
	for pair := range s.Offered {
		if _, ok := rows[pair]; ok {
			continue
		}
		d := model.Demand{Cluster: pair.Cluster, Class: pair.Class, RequestsPerKey: 1}
		if reference != nil {
			d.PromptTokens, d.OutputTokens = reference.Prompt, reference.Output
		}
		rows[pair] = d
	}
	var list []SourceDemand
	measured := false
	for pair, d := range rows {
		row := SourceDemand{
			Cluster: d.Cluster, Class: d.Class, RPS: d.RPS, PromptTokens: d.PromptTokens, OutputTokens: d.OutputTokens,
			CachedFraction: d.CachedFraction, RequestsPerKey: d.RequestsPerKey,
		}
		if f, ok := forecast(s.Offered[pair], s.Step, o.Every, o.Quantile); ok {
			row.Forecast, row.RPS, measured = &f, round(f.RPS, 4), true
		} else {
			row.Kept = append(row.Kept, "rps")
		}
		row.tokens(s.Tokens[pair])
		if n, ok := s.RequestsPerKey[pair]; ok {
			row.RequestsPerKey = round(n, 3)
		} else {
			row.Kept = append(row.Kept, "requests_per_key")
		}
		list = append(list, row)
	}
	if !measured {
		return nil, ErrNothing
	}
	slices.SortFunc(list, func(a, b SourceDemand) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Class, b.Class))
	})
	return list, nil
}

// tokens sets the means that are known.
func (row *SourceDemand) tokens(t Tokens) {
	if prompt, ok := t.Prompt.Value(); ok {
		row.PromptTokens = max(1, round(prompt, 3))
		row.EstimatedShare = t.Prompt.Estimated / t.Prompt.Reports
	} else {
		row.Kept = append(row.Kept, "prompt_tokens")
	}
	if output, ok := t.Output.Value(); ok {
		row.OutputTokens = round(output, 3)
	} else {
		row.Kept = append(row.Kept, "output_tokens")
	}
	cached, known := t.Cached.Value()
	prompt, of := t.CachedOf.Value()
	if known && of && prompt > 0 {
		row.CachedFraction = round(min(cached/prompt, mostCached), 2)
	} else {
		row.Kept = append(row.Kept, "cached_fraction")
	}
}
