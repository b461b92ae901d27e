package main

import (
	"os"
	"slices"

	"github.com/irb-project/irb/agent/snapshot"
)

// readPlan reads the weight file, which irbctl verify has checked.
func readPlan(path string) (*snapshot.Snapshot, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	body, _, err := snapshot.Split(file)
	if err != nil {
		return nil, err
	}
	return snapshot.Decode(body)
}

func source(s *snapshot.Snapshot, cluster string) *snapshot.Source {
	i := slices.IndexFunc(s.Sources, func(s snapshot.Source) bool { return s.Cluster == cluster })
	return &s.Sources[i]
}

// weights returns the planned share of each engine.
func weights(s *snapshot.Snapshot, cluster string) map[string]float64 {
	shares := map[string]float64{}
	for _, w := range source(s, cluster).Weights {
		shares[w.Engine] = w.Fraction
	}
	return shares
}

// quotaMoved returns half the sum of |quota change|: the total variation
// distance of two plans, the least that can move, in units of 2^-32.
func quotaMoved(before, after *snapshot.Source) int64 {
	change := map[string]int64{}
	for _, w := range before.Weights {
		change[w.Engine] -= w.Quota
	}
	for _, w := range after.Weights {
		change[w.Engine] += w.Quota
	}
	moved := int64(0)
	for _, c := range change {
		moved += max(0, c)
	}
	return moved
}

// keysMoved returns how much of the hash space has another engine than before,
// in the same units.
func keysMoved(before, after *snapshot.Source) (moved int64) {
	i, j := 0, 0
	for at := int64(0); at < snapshot.QuotaSum; {
		end := min(rangeEnd(before, i), rangeEnd(after, j))
		if before.LayoutTo[i] != after.LayoutTo[j] {
			moved += end - at
		}
		if rangeEnd(before, i) == end {
			i++
		}
		if rangeEnd(after, j) == end {
			j++
		}
		at = end
	}
	return moved
}

func rangeEnd(s *snapshot.Source, i int) int64 {
	if i+1 < len(s.LayoutFrom) {
		return int64(s.LayoutFrom[i+1])
	}
	return snapshot.QuotaSum
}

// fraction turns units of 2^-32 into a share.
func fraction(quota int64) float64 { return float64(quota) / snapshot.QuotaSum }
