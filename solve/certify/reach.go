package certify

import (
	"cmp"
	"slices"
)

// span is what a set of routes of one source can carry: any total from lo to
// hi req/s. Of a total t at most
//
//	free + min(t-lo, more)
//
// passes the engines that a cut covers: routes past them are filled first, as
// far as bounds let them. The same holds for sets put together and for a set
// whose total is bounded, so that the spans of nested groups are exact.
type span struct {
	lo, hi     float64
	free, more float64
}

func (a *span) add(b span) {
	a.lo += b.lo
	a.hi += b.hi
	a.free += b.free
	a.more += b.more
}

// clip bounds the total.
func (a *span) clip(least, most float64) {
	if rise := least - a.lo; rise > 0 {
		free := min(rise, a.more)
		a.lo, a.free, a.more = least, a.free+free, a.more-free
	}
	a.hi = max(a.lo, min(a.hi, most))
	a.more = min(a.more, a.hi-a.lo)
}

// span returns that of all routes of source s: with its lower and upper bounds,
// the minima of its groups and the maxima of those in the cut. A group that
// cuts across another one is left out, which can only weaken the cut.
func (c *cut) span(s int) (total span) {
	demand := c.p.Sources[s].DemandRPS
	if len(c.groupsIn(s)) == 0 {
		for k := c.p.Row[s]; k < c.p.Row[s+1]; k++ {
			total.add(c.pairSpan(k, demand))
		}
		total.clip(0, demand)
		return total
	}
	n := newNesting(c, s, demand)
	groups := slices.Clone(c.groupsIn(s))
	slices.SortStableFunc(groups, func(a, b int) int { return cmp.Compare(len(c.p.Groups[a].Engines), len(c.p.Groups[b].Engines)) })
	for _, g := range groups {
		most := demand
		if c.groups[g] {
			most = c.p.Groups[g].MaxRPS
		}
		n.put(c.p.Groups[g].Engines, c.p.Groups[g].MinRPS, most)
	}
	return n.total(demand)
}

func (c *cut) pairSpan(k int, demand float64) span {
	x := span{hi: demand}
	if c.p.Upper != nil {
		x.lo, x.hi = c.p.Lower[k], min(demand, c.p.Upper[k])
	}
	if !c.covered[c.p.Col[k]] {
		x.free, x.more = x.lo, max(0, x.hi-x.lo)
	}
	return x
}

// nesting puts the pairs of one source together into ever larger groups.
type nesting struct {
	engines []int32
	parts   []span // of pairs, then of groups
	size    []int  // of each part, in pairs
	part    []int  // outermost one of each pair
}

func newNesting(c *cut, s int, demand float64) *nesting {
	first, end := c.p.Row[s], c.p.Row[s+1]
	n := &nesting{engines: c.p.Col[first:end]}
	for k := first; k < end; k++ {
		n.part = append(n.part, k-first)
		n.parts, n.size = append(n.parts, c.pairSpan(k, demand)), append(n.size, 1)
	}
	return n
}

// put makes a part of all pairs onto engines, unless that would tear another.
func (n *nesting) put(engines []int32, least, most float64) {
	var members []int
	inside := make(map[int]int) // pairs of each part
	for _, e := range engines {
		if j, ok := slices.BinarySearch(n.engines, e); ok {
			members = append(members, j)
			inside[n.part[j]]++
		}
	}
	for i, pairs := range inside {
		if pairs != n.size[i] {
			return
		}
	}
	var x span
	for _, j := range members {
		if i := n.part[j]; inside[i] > 0 {
			x.add(n.parts[i])
			inside[i] = 0
		}
		n.part[j] = len(n.parts)
	}
	x.clip(least, most)
	n.parts, n.size = append(n.parts, x), append(n.size, len(members))
}

func (n *nesting) total(demand float64) (total span) {
	seen := make([]bool, len(n.parts))
	for _, i := range n.part {
		if !seen[i] {
			seen[i] = true
			total.add(n.parts[i])
		}
	}
	total.clip(0, demand)
	return total
}
