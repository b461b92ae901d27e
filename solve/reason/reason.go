// Package reason reads the optimality conditions of a certified solution: what
// one more request costs on each engine, part by part, and why each weight is
// what it is, as a stable code and as a sentence.
//
// All engines that a source uses have the same marginal cost, its price; one
// that it does not use loses by its reduced cost. A marginal cost in ms is
//
//	net + base + delay + externality + kink + limit + share + cache
//
//	net, base    the network and the engine without load
//	delay        w D(v): what the request itself waits at plan
//	externality  w v D'(v-): what it adds to the delay of all others
//	kink         the part of the engine's price between the left and the right
//	             derivative, where the plan sits on a kink of the profile
//	limit        the price of the engine's limit, if it is at its limit
//	share        prices of shares (rules, max_share, domains) and caps
//	cache        -penalty per request where a conversation would come home
package reason

import (
	"math"
	"slices"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
)

// snap is how near, relative to an engine's limit, a load counts as being at
// the limit or on a kink.
const snap = 1e-9

// atAmount is how near, relative to its source's demand, a flow counts as being
// at a bound or at what it was before. It is wider than snap: a certified flow
// may be off by more than rounding, and a price, not the flow, says where in
// its interval the term of such an amount lies.
const atAmount = 1e-6

// Reader reads one solution.
type Reader struct {
	c        *model.Compiled
	sol      *model.Solution
	first    []int   // sol.Flows[first[s]:first[s+1]] are those of source s
	load     []Load  // per engine
	groupsOf [][]int // groups of each source
	capsOf   [][]int // caps of each engine
	groupHas []map[int32]bool
}

// Load is what an engine carries at plan, in its own units per second.
type Load struct {
	RPS    float64 // requests
	Work   float64 // Y
	Prompt float64 // P, prompt tokens to compute
	Output float64 // O, output tokens
}

// NewReader prepares to read sol, an answer to c.
func NewReader(c *model.Compiled, sol *model.Solution) *Reader {
	r := &Reader{c: c, sol: sol, load: make([]Load, len(c.Engines))}
	r.first = make([]int, len(c.Sources)+1)
	s := 0
	for i, f := range sol.Flows {
		for f.Pair >= c.Row[s+1] {
			s++
			r.first[s] = i
		}
		source, l := &c.Sources[s], &r.load[c.Col[f.Pair]]
		l.RPS += f.RPS
		l.Work += f.RPS * source.Work
		l.Prompt += f.RPS * source.PromptTokens
		l.Output += f.RPS * source.OutputTokens
	}
	for s++; s <= len(c.Sources); s++ {
		r.first[s] = len(sol.Flows)
	}
	r.indexBounds()
	return r
}

func (r *Reader) indexBounds() {
	r.groupsOf = make([][]int, len(r.c.Sources))
	r.groupHas = make([]map[int32]bool, len(r.c.Groups))
	for g, group := range r.c.Groups {
		r.groupsOf[group.Source] = append(r.groupsOf[group.Source], g)
		r.groupHas[g] = make(map[int32]bool, len(group.Engines))
		for _, e := range group.Engines {
			r.groupHas[g][e] = true
		}
	}
	r.capsOf = make([][]int, len(r.c.Engines))
	for i, limit := range r.c.Caps {
		for _, e := range limit.Engines {
			r.capsOf[e] = append(r.capsOf[e], i)
		}
	}
}

// Flows returns the positive flows of a source, in order of engine.
func (r *Reader) Flows(s int) []model.Flow { return r.sol.Flows[r.first[s]:r.first[s+1]] }

// Load returns what an engine carries at plan.
func (r *Reader) Load(e int) Load { return r.load[e] }

// AtLimit says whether an engine carries all that may be planned on it.
func (r *Reader) AtLimit(e int) bool {
	return r.load[e].Work >= r.c.Engines[e].Limit*(1-snap)
}

// FreeWork returns how much work/s more an engine may take at plan under its
// limit and its caps.
func (r *Reader) FreeWork(e int) float64 {
	free := r.c.Engines[e].Limit - r.load[e].Work
	for _, i := range r.capsOf[e] {
		left := r.c.Caps[i].MaxWork
		for _, other := range r.c.Caps[i].Engines {
			left -= r.load[other].Work
		}
		free = min(free, left)
	}
	return max(0, free)
}

// ShareLeft returns how many req/s more the shares of source s let it send to
// an engine that it may use, +Inf where there are none.
func (r *Reader) ShareLeft(s, e int) float64 {
	left := math.Inf(1)
	if r.c.Upper != nil {
		first := r.c.Row[s]
		i, _ := slices.BinarySearch(r.c.Col[first:r.c.Row[s+1]], int32(e))
		left = r.c.Upper[first+i] - r.rps(s, first+i)
	}
	for _, g := range r.groupsOf[s] {
		if !r.groupHas[g][int32(e)] {
			continue
		}
		room := r.c.Groups[g].MaxRPS
		for _, f := range r.Flows(s) {
			if r.groupHas[g][r.c.Col[f.Pair]] {
				room -= f.RPS
			}
		}
		left = min(left, room)
	}
	return max(0, left)
}

// Utilization returns v of an engine at plan; its limit where it is at it.
func (r *Reader) Utilization(e int) float64 {
	if node := r.c.Engines[e]; node.Capacity > 0 {
		return r.load[e].Work / node.Capacity
	}
	return 0
}

// Cost returns the marginal cost of pair k in ms by component, each from
// prices and profiles on its own. Total is their sum; for a used pair it equals
// the source's price within the certificate.
func (r *Reader) Cost(s, k int) snapshot.Cost {
	source, e := r.c.Sources[s], int(r.c.Col[k])
	cost, step := r.engineCost(source, e)
	cost.Net = r.c.NetMs(r.c.SourceDemand[s], e)
	cost.Base = r.c.BaseMs(source, e)
	cost.Cache = r.cachePrice(s, k)
	cost.Share = r.sharePrice(s, e) + r.BoundPrice(s, k)
	cost.Total = sum(cost)
	cost.OneLess, cost.OneMore = r.interval(s, k, cost, step)
	return cost
}

func sum(c snapshot.Cost) float64 {
	return c.Net + c.Base + c.Delay + c.Externality + c.Kink + c.Limit + c.Share + c.Cache
}

// EngineCost returns the parts of a request's marginal cost that its engine
// makes: delay, externality, kink, limit.
func (r *Reader) EngineCost(source model.Source, e int) snapshot.Cost {
	cost, _ := r.engineCost(source, e)
	return cost
}

// engineCost returns EngineCost and the step from what one request less would
// save on the engine to what one more would cost: 0 but at a kink, +Inf where
// no more fits.
func (r *Reader) engineCost(source model.Source, e int) (cost snapshot.Cost, step float64) {
	node, l := &r.c.Engines[e], r.load[e]
	add := func(sink *profile.Sink, load, amount, price float64) {
		if amount == 0 {
			return
		}
		load = snapLoad(sink, load, price)
		delay := sink.Delay(load)
		left, right := sink.Marginal(load)
		cost.Delay += amount * delay
		cost.Externality += amount * (left - delay)
		step += amount * (right - left)
		if math.IsInf(right, 1) {
			cost.Limit += amount * max(0, price-left)
		} else {
			cost.Kink += amount * min(max(0, price-left), right-left)
		}
	}
	switch {
	case node.Limit <= 0:
	case r.c.Work == model.WorkSplit:
		add(node.Prefill, l.Prompt, source.PromptTokens, r.sol.PrefillPrice[e])
		add(node.Output, l.Output, source.OutputTokens, r.sol.OutputPrice[e])
		cost.Limit += source.Work * r.sol.EnginePrice[e]
		if r.AtLimit(e) {
			step = math.Inf(1)
		}
	default:
		add(node.Delay, l.Work, source.Work, r.sol.EnginePrice[e])
	}
	return cost, step
}

// snapLoad moves a load that is within rounding of a kink or the limit onto it.
// Loads of the interior point method are less exact than snap; near a kink the
// price tells where they belong: on it if it lies between the two slopes.
func snapLoad(sink *profile.Sink, y, price float64) float64 {
	const near = 1e-6
	for _, kink := range sink.Kinks() {
		off := math.Abs(y-kink) / sink.Limit
		if off > near {
			continue
		}
		left, right := sink.Marginal(kink)
		if off <= snap || price > left*(1+snap) && price < right*(1-snap) {
			return kink
		}
	}
	if y >= sink.Limit*(1-snap) {
		return sink.Limit
	}
	return max(0, y)
}

// sharePrice is what the groups of a source and the caps of an engine add, in
// ms per request.
func (r *Reader) sharePrice(s, e int) float64 {
	var price float64
	for _, g := range r.groupsOf[s] {
		if r.groupHas[g][int32(e)] {
			price += r.sol.GroupPriceMs[g]
		}
	}
	for _, i := range r.capsOf[e] {
		price += r.c.Sources[s].Work * r.sol.CapPrice[i]
	}
	return price
}

// cachePrice is the cache term of a pair in ms: -penalty below what it had, as
// one more request there brings a conversation home, 0 above. Exactly at it the
// term lies between, and complementary slackness says where: it is the reduced
// cost of the pair without it.
func (r *Reader) cachePrice(s, k int) float64 {
	below, above := r.cacheSlopes(s, k)
	if below == above {
		return below
	}
	return min(above, max(below, -r.reduced(s, k)))
}

// cacheSlopes returns the cache term for one request less and for one more.
func (r *Reader) cacheSlopes(s, k int) (less, more float64) {
	if r.c.Stay == nil || r.c.Stay[k] <= 0 {
		return 0, 0
	}
	x, tolerance := r.rps(s, k), atAmount*r.c.Sources[s].DemandRPS
	if x <= r.c.Stay[k]+tolerance {
		less = -r.c.StayPenaltyMs[k]
	}
	if x < r.c.Stay[k]-tolerance {
		more = -r.c.StayPenaltyMs[k]
	}
	return less, more
}

// BoundPrice is the price in ms of a pair's own bounds: at its maximum > 0, at
// its minimum < 0. By complementary slackness it is the reduced cost of the
// pair by the prices of everything else.
func (r *Reader) BoundPrice(s, k int) float64 {
	atLower, atUpper := r.atBounds(s, k)
	switch reduced := r.reduced(s, k) + r.cachePrice(s, k); {
	case atUpper && reduced < 0, atLower && reduced > 0:
		return -reduced
	}
	return 0
}

// atBounds says whether a pair carries as little or as much as its own bounds
// allow. A minimum of 0 is none.
func (r *Reader) atBounds(s, k int) (lower, upper bool) {
	if r.c.Upper == nil {
		return false, false
	}
	x, tolerance := r.rps(s, k), atAmount*r.c.Sources[s].DemandRPS
	return r.c.Lower[k] > 0 && x <= r.c.Lower[k]+tolerance, x >= r.c.Upper[k]-tolerance
}

// reduced is the reduced cost of pair k in ms by the prices of engine, groups
// and caps, without its own bounds and cache.
func (r *Reader) reduced(s, k int) float64 { return r.priced(s, k) - r.sol.SourcePriceMs[s] }

func (r *Reader) rps(s, k int) float64 {
	for _, f := range r.Flows(s) {
		if f.Pair == k {
			return f.RPS
		}
	}
	return 0
}
