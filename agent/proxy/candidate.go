package proxy

import (
	"time"

	"github.com/irb-project/irb/agent/pick"
)

// endpointsPerEngine is how many endpoints of one engine a request tries before
// it goes to the next in rank: one that fails says little about its siblings,
// two say much.
const endpointsPerEngine = 2

// candidates gives the endpoints for one request, best first: inside the owner
// of its key, then inside the engines after it. Endpoints that are down are
// passed over, and come back at the end if nothing else is there: a mark is an
// opinion, and asking costs less than refusing.
type candidates struct {
	plan    *plan
	class   *pick.Class
	request pick.Request
	walk    pick.Walk

	step  pick.Step
	inner pick.EndpointWalk
	left  int // endpoints that the engine of step may still give

	pinned attempt // the only one there is, if its endpoint is not nil

	passed bool // some endpoint was passed over as down
	spent  bool // nothing is left, for good
	again  bool // second round: those that were passed over
}

func (x *exchange) startCandidates() {
	c := &x.candidates
	c.plan, c.class, c.request = x.plan, x.class, x.pickRequest()
	c.walk = c.class.Walk(c.request)
}

// next returns the next endpoint; ok is false when none is left.
func (c *candidates) next(now time.Time) (at attempt, ok bool) {
	if e := c.pinned.endpoint; e != nil {
		at, c.pinned = c.pinned, attempt{}
		c.spent = true
		return at, true
	}
	for !c.spent {
		if c.left > 0 {
			if i, more := c.inner.Next(); more {
				e := c.plan.pools[c.step.Engine].endpoints[i]
				if !c.request.Hard && e.down(now) != c.again {
					c.passed = true
					continue
				}
				c.left--
				return attempt{engine: c.step.Engine, rank: c.step.Rank, endpoint: e}, true
			}
			c.left = 0
		}
		step, more := c.walk.Next()
		if !more {
			if !c.passed || c.again {
				return attempt{}, false
			}
			c.again = true
			c.walk = c.class.Walk(c.request)
			continue
		}
		c.step = step
		c.left = endpointsPerEngine
		if c.request.Hard {
			c.left = 1 // the state is in one endpoint
		}
		c.inner = c.plan.pools[step.Engine].walk.Walk(c.request.Key)
	}
	return attempt{}, false
}
