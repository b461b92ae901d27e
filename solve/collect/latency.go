package collect

import (
	"math"
	"slices"

	"github.com/irb-project/irb/solve/model"
)

// LatencyTable is the round trips for the next solve, from clusters to engines.
type LatencyTable struct {
	From     []string    `json:"-"`
	To       []string    `json:"-"`
	RTTMs    [][]float64 `json:"-"` // by From, To; NaN: not reachable
	Measured int         `json:"measured"`
	Kept     int         `json:"kept"` // as the fleet has them
}

// latencyOf joins what is measured with the fleet's own round trips, which
// stay where agents have not connected. All columns become engines: round trips
// to the engines of one region differ. What the fleet has as not reachable stays
// so, whatever an agent could connect to: it may be a rule.
func latencyOf(s *Signals, fleet *model.Fleet) LatencyTable {
	column := map[string]int{}
	for j, name := range fleet.Latency.To {
		column[name] = j
	}
	t := LatencyTable{From: slices.Sorted(slices.Values(fleet.Latency.From))}
	row := map[string]int{}
	for i, name := range fleet.Latency.From {
		row[name] = i
	}
	engines := slices.Clone(fleet.Engines)
	slices.SortFunc(engines, func(a, b model.Engine) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	var columns []int
	for _, e := range engines {
		j, ok := column[e.Name]
		if !ok {
			j, ok = column[e.Region]
		}
		if !ok {
			continue // reachable from nowhere
		}
		t.To, columns = append(t.To, e.Name), append(columns, j)
	}
	for _, cluster := range t.From {
		cells := make([]float64, len(t.To))
		for k, engine := range t.To {
			given := float64(fleet.Latency.RTTMs[row[cluster]*len(fleet.Latency.To)+columns[k]])
			cells[k] = given
			switch ms, ok := s.RTTMs[Way{cluster, engine}]; {
			case math.IsNaN(given):
			case ok:
				cells[k] = round(ms, 3)
				t.Measured++
			default:
				cells[k] = round(given, 6) // it was read as a float32
				t.Kept++
			}
		}
		t.RTTMs = append(t.RTTMs, cells)
	}
	return t
}
