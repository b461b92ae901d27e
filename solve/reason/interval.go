package reason

import (
	"math"

	"github.com/irb-project/irb/agent/snapshot"
)

// interval returns what one request less on pair k would save and one more
// would cost, in ms, where these differ; both 0 where they do not. Step is the
// engine's, see engineCost.
//
// The price of the pair lies between them: below, where the plan could shrink,
// and above, where it could grow. A side that has no end is 0: no more fits
// (the engine is full, a share or cap binds), or none may go (a minimum binds,
// none is there).
func (r *Reader) interval(s, k int, cost snapshot.Cost, step float64) (less, more float64) {
	cacheLess, cacheMore := r.cacheSlopes(s, k)
	plain := cost.Net + cost.Base + cost.Delay + cost.Externality
	less, more = plain+cacheLess, plain+step+cacheMore
	atLower, atUpper := r.atBounds(s, k)
	groups := r.sharePrice(s, int(r.c.Col[k]))
	full := math.IsInf(step, 1) || atUpper || groups > tieMs
	unused := r.rps(s, k) == 0
	stuck := unused || atLower || groups < -tieMs
	switch {
	case unused && (full || math.Abs(more-cost.Total) <= tieMs):
		return 0, 0
	case !full && !stuck && more-less <= tieMs:
		return 0, 0
	}
	if full {
		more = 0
	}
	if stuck {
		less = 0
	}
	return less, more
}

// stays says whether a pair carries exactly what it had before.
func (r *Reader) stays(s, k int) bool {
	less, more := r.cacheSlopes(s, k)
	return less != more
}
