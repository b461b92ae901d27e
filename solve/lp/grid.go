//go:build cgo

package lp

import (
	"slices"

	"github.com/irb-project/irb/solve/rows"
)

// A grid holds the points between which a delay is replaced by chords,
// ascending, from 0 to the row's maximum. The kinks of the profile are always
// points: without them no refinement converges.

// uniformGrid has n equal segments.
func uniformGrid(r *rows.Row, n int) []float64 {
	points := r.Sink.Kinks()
	for i := range n + 1 {
		points = append(points, r.Max*float64(i)/float64(n))
	}
	return tidy(points, r.Max)
}

// focusedGrid has 8 equal segments of span/8 on either side of a load, and
// outside ones that grow by 4.
func focusedGrid(r *rows.Row, load, span float64) []float64 {
	points := append(r.Sink.Kinks(), 0, r.Max)
	for i := -8; i <= 8; i++ {
		points = append(points, load+span*float64(i)/8)
	}
	for ; span < r.Max; span *= 4 {
		points = append(points, load-span, load+span)
	}
	return tidy(points, r.Max)
}

// pointGrid has steps that shrink by 4 towards a load from both sides, down to
// 1e-9 of the maximum: the slopes next to the load are its marginal cost.
func pointGrid(r *rows.Row, load float64) []float64 {
	points := append(r.Sink.Kinks(), 0, load, r.Max)
	for step := r.Max; step > 1e-9*r.Max; step /= 4 {
		points = append(points, load-step, load+step)
	}
	return tidy(points, r.Max)
}

// tidy sorts points, and drops those outside [0, limit] and those closer than
// 1e-10 of the limit to the one before: their chord would be rounding.
func tidy(points []float64, limit float64) []float64 {
	slices.Sort(points)
	kept := points[:0]
	for _, p := range points {
		if p < 0 || p > limit || (len(kept) > 0 && p-kept[len(kept)-1] < 1e-10*limit) {
			continue
		}
		kept = append(kept, p)
	}
	// The last point is the limit itself, whatever was next to it.
	kept[len(kept)-1] = limit
	return kept
}

func uniformGrids(g *rows.Program, n int) [][]float64 {
	grids := make([][]float64, len(g.Rows))
	for j := range grids {
		if g.Rows[j].Sink != nil {
			grids[j] = uniformGrid(&g.Rows[j], n)
		}
	}
	return grids
}
