package proxy

import (
	"slices"
	"time"

	"github.com/irb-project/irb/agent/guard"
	"github.com/irb-project/irb/agent/pick"
)

// endpointsPerEngine is how many endpoints of one engine a request tries before
// it goes to the next in rank: one that fails says little about its siblings,
// two say much.
const endpointsPerEngine = 2

// unreachable is the grade of an endpoint that refused to be connected to a
// moment ago: all others, ejected or not, may serve a request sooner.
const unreachable = guard.Out + 1

// candidates gives the endpoints for one request, best first: inside the owner
// of its key, then inside the engines after it. Endpoints that are down, ejected
// or full are passed over, and come back in further rounds if nothing better is
// there: a mark is an opinion, and asking costs less than refusing.
type candidates struct {
	plan    *plan
	class   *pick.Class
	guard   *guard.Class
	request pick.Request
	walk    pick.Walk

	step  pick.Step
	inner pick.EndpointWalk
	left  int // endpoints that the engine of step may still give

	home bool // the next endpoint is the home of the key
	away bool // an endpoint that is there was passed over

	pinned attempt // the only one there is, if its endpoint is not nil

	spent  bool        // nothing is left, for good
	round  guard.Grade // the worst that is taken now
	passed [unreachable + 1]bool
	given  [maxGiven]*endpoint
	n      int

	skipped [maxSkipped]skip // endpoints passed over in the first round, for the log
	skips   int
}

// skip is an endpoint that was passed over.
type skip struct {
	engine, index, rank int
	reason              string
}

// maxSkipped is how many of them are remembered.
const maxSkipped = 4

// maxGiven endpoints are tried by one request: the limit of retry.attempts.
const maxGiven = 10

func (x *exchange) startCandidates() {
	c := &x.candidates
	c.plan, c.class, c.guard, c.request = x.plan, x.class, x.guard, x.pickRequest()
	c.walk = c.class.Walk(c.request)
}

// next returns the next endpoint; ok is false when none is left.
func (c *candidates) next(now time.Time) (at attempt, ok bool) {
	if e := c.pinned.endpoint; e != nil {
		at, c.pinned = c.pinned, attempt{}
		c.spent = true
		return at, true
	}
	for !c.spent && c.n < maxGiven {
		if c.left > 0 {
			if i, more := c.inner.Next(); more {
				home := c.home
				c.home = false
				e := c.plan.pools[c.step.Engine].endpoints[i]
				if !c.takes(e, i, now) {
					continue
				}
				c.left--
				c.given[c.n] = e
				c.n++
				return attempt{engine: c.step.Engine, index: i, rank: c.step.Rank, endpoint: e, cold: !home}, true
			}
			c.left = 0
		}
		step, more := c.walk.Next()
		if !more {
			if !c.nextRound() {
				return attempt{}, false
			}
			continue
		}
		c.step, c.home = step, step.Rank == 0
		c.left = endpointsPerEngine
		if c.request.Hard {
			c.left = 1 // the state is in one endpoint
		}
		c.inner = c.plan.pools[step.Engine].walk.Walk(c.request.Key)
	}
	return attempt{}, false
}

// takes says whether an endpoint is for this round.
func (c *candidates) takes(e *endpoint, i int, now time.Time) bool {
	if c.request.Hard {
		return true
	}
	if slices.Contains(c.given[:c.n], e) {
		return false
	}
	grade, why := c.grade(e, i, now)
	if grade > c.round {
		c.passed[grade] = true
		if c.round == guard.Clear && why != "" && c.skips < maxSkipped {
			c.skipped[c.skips] = skip{c.step.Engine, i, c.step.Rank, why}
			c.skips++
		}
		return false
	}
	return true
}

// grade says how well an endpoint suits the request, and in a word why not
// better; nothing where the walk has said it already.
func (c *candidates) grade(e *endpoint, i int, now time.Time) (grade guard.Grade, why string) {
	switch {
	case e.down(now):
		return unreachable, "unreachable"
	case c.step.Reason == pick.ReasonPenalty:
		return guard.Out, ""
	}
	g := c.guard.Grade(c.step.Engine, i, c.request.Key, c.away, now)
	c.away = c.away || g != guard.Out
	switch {
	case g != guard.Clear:
		return g, c.guard.WhySpared(c.step.Engine, i, c.request.Key, now)
	// What a fallback may absorb is a bound of what is sent there instead; that
	// of retries is their budget.
	case c.step.Fallback && c.n == 0 && !c.guard.Absorb(c.step.Engine):
		return guard.Spared, "absorb"
	}
	return g, ""
}

// nextRound starts the walk again for those that were passed over, the better
// ones first.
func (c *candidates) nextRound() bool {
	for c.round < unreachable {
		c.round++
		if c.passed[c.round] {
			c.walk, c.away = c.class.Walk(c.request), false
			return true
		}
	}
	return false
}
