package model

import "fmt"

// Infeasible is the error of a Problem whose demand cannot be served: the
// binding set, as indices into the Problem, and by how much it falls short.
//
// The sources demand DemandWork together, and everything they can reach takes
// at most ReachWork of it: what the engines, caps and groups of the set let
// through. Served work can grow only if one of these limits does.
type Infeasible struct {
	Sources []int // those that cannot be served in full
	Engines []int // at their limit
	Caps    []int
	Groups  []int // at their maximum, or whose minimum cannot be met
	Pairs   []int // at their Upper bound, or whose Lower bound cannot be met

	DemandWork float64 // work/s that Sources demand
	ReachWork  float64 // work/s of it that can be served
	ShortWork  float64 // DemandWork - ReachWork, work/s
	ShortRPS   float64 // the same in req/s, by one best allotment
}

func (e *Infeasible) Error() string {
	if len(e.Engines)+len(e.Caps)+len(e.Groups)+len(e.Pairs) == 0 {
		return fmt.Sprintf("infeasible: %d sources demand %.6g work/s and no engine may serve them",
			len(e.Sources), e.DemandWork)
	}
	return fmt.Sprintf("infeasible: %d sources demand %.6g work/s, what they can reach takes %.6g: "+
		"short by %.6g req/s; at their limits: %d engines, %d caps, %d groups, %d route bounds",
		len(e.Sources), e.DemandWork, e.ReachWork, e.ShortRPS,
		len(e.Engines), len(e.Caps), len(e.Groups), len(e.Pairs))
}
