package main

import (
	"math"
	"slices"
	"sort"

	"github.com/irb-project/irb/solve/profile"
)

// A grid holds the loads of an engine between which a peer sees chords of the
// delay F instead of F itself: ascending, from 0 to the limit. A chord lies
// above F, so the best plan for chords costs at most what they add at the
// optimum.

// tolerantGrid has segments as wide as can be while no chord is more than
// tolerance, in ms x work/s, above F. On a segment of width h that is
// h (F'(right) - F'(left)) / 8, exact where F is quadratic.
func tolerantGrid(s *profile.Sink, tolerance float64) []float64 {
	grid := []float64{0}
	ends := append(s.Kinks(), s.Limit)
	for i, from := 0, 0.0; i < len(ends); {
		h := ends[i] - from
		// Narrow by what a quadratic would need; elsewhere this converges from
		// one side or the other in a few steps.
		for range 8 {
			_, left := s.Marginal(from)
			right, _ := s.Marginal(from + h)
			above := h * (right - left) / 8
			if above <= tolerance*1.01 {
				break
			}
			h *= math.Sqrt(tolerance / above)
		}
		if from += h; from >= ends[i]-h*1e-6 {
			from = ends[i]
			i++
		}
		grid = append(grid, from)
	}
	return grid
}

// aboveDelay returns how much the chord of a grid is above F at a load.
func aboveDelay(s *profile.Sink, grid []float64, load float64) float64 {
	at := min(sort.SearchFloat64s(grid, load), len(grid)-1)
	if at == 0 {
		return 0
	}
	from, to := grid[at-1], grid[at]
	left, right := s.Value(from), s.Value(to)
	return max(0, left+(right-left)*(load-from)/(to-from)-s.Value(load))
}

// windowGrid keeps the n points of a grid on either side of a load, and the
// ends.
func windowGrid(grid []float64, load float64, n int) []float64 {
	at := sort.SearchFloat64s(grid, load)
	from, to := max(0, at-n), min(len(grid), at+n)
	window := append([]float64{0}, grid[from:to]...)
	window = append(window, grid[len(grid)-1])
	return slices.Compact(window)
}

// evenGrid has n segments of equal width, and the kinks.
func evenGrid(s *profile.Sink, n int) []float64 {
	grid := s.Kinks()
	for i := range n + 1 {
		grid = append(grid, s.Limit*float64(i)/float64(n))
	}
	slices.Sort(grid)
	return slices.Compact(grid)
}

// refine cuts the segments within two of a load into parts equal parts each.
func refine(grid []float64, load float64, parts int) []float64 {
	at := sort.SearchFloat64s(grid, load)
	fine := grid[:1:1]
	for i := 1; i < len(grid); i++ {
		if at-2 < i && i <= at+2 {
			for k := 1; k < parts; k++ {
				fine = append(fine, grid[i-1]+(grid[i]-grid[i-1])*float64(k)/float64(parts))
			}
		}
		fine = append(fine, grid[i])
	}
	return fine
}
