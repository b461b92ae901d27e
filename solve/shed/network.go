package shed

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/irb-project/irb/solve/model"
)

// capacity is the network of everything that bounds the work served, whatever
// it costs: supply -> source sets -> groups -> engines -> caps -> sink. Sources
// without bounds of their own that may use the same engines share one node.
//
// A minimum (of a pair or a group) is work that must flow there: it enters
// behind the arc that it bounds, and what is left of the source's demand
// enters at its node.
type capacity struct {
	p       *model.Problem
	net     *flowNet
	sink    int32
	setOf   []int32   // node of each source
	supply  []int32   // per source: the arc supply -> its node, shared by the sources of a node
	must    []float64 // work/s that minima make each source send
	groups  []int32   // node of each group
	engines []int32   // node of each engine, -1: none
	caps    []int32   // node of each cap
	saved   []float64 // room of all arcs, before any flow
	forced  []int32   // arcs of minima
	total   float64
}

const supplyNode = 0

func newCapacity(p *model.Problem) (*capacity, error) {
	c := &capacity{p: p, must: make([]float64, len(p.Sources)), sink: 1}
	nodes := int32(2)
	take := func(n int) []int32 {
		list := make([]int32, n)
		for i := range list {
			list[i] = nodes
			nodes++
		}
		return list
	}
	c.engines, c.caps, c.groups = take(len(p.Engines)), take(len(p.Caps)), take(len(p.Groups))
	c.shareNodes(&nodes)
	c.net = newFlowNet(int(nodes))
	if err := c.addCaps(); err != nil {
		return nil, err
	}
	for s := range p.Sources {
		c.total += p.Sources[s].Work * p.Sources[s].DemandRPS
	}
	if err := c.addSources(); err != nil {
		return nil, err
	}
	c.net.eps = 1e-13 * c.total
	c.saved = slices.Clone(c.net.room)
	return c, nil
}

// shareNodes gives each source a node: one for all sources without bounds that
// may use the same engines.
func (c *capacity) shareNodes(nodes *int32) {
	bounded := make([]bool, len(c.p.Sources))
	for _, g := range c.p.Groups {
		bounded[g.Source] = true
	}
	c.setOf = make([]int32, len(c.p.Sources))
	sets := make(map[string]int32)
	var key []byte
	for s := range c.p.Sources {
		row := c.p.Col[c.p.Row[s]:c.p.Row[s+1]]
		if !bounded[s] && !c.hasBounds(s) {
			key = key[:0]
			for _, e := range row {
				key = binary.LittleEndian.AppendUint32(key, uint32(e))
			}
			if node, ok := sets[string(key)]; ok {
				c.setOf[s] = node
				continue
			}
			sets[string(key)] = *nodes
		}
		c.setOf[s] = *nodes
		*nodes++
	}
}

func (c *capacity) hasBounds(s int) bool {
	for k := c.p.Row[s]; k < c.p.Row[s+1]; k++ {
		if (c.p.Lower != nil && c.p.Lower[k] > 0) || (c.p.Upper != nil && !math.IsInf(c.p.Upper[k], 1)) {
			return true
		}
	}
	return false
}

// addCaps hangs engines below the smallest cap around them, caps below the
// next larger one, and the outermost on the sink.
func (c *capacity) addCaps() error {
	above := make([]int32, len(c.p.Engines))
	for e := range above {
		above[e] = c.sink
	}
	for _, i := range largestFirst(len(c.p.Caps), func(i int) int { return len(c.p.Caps[i].Engines) }) {
		limit := &c.p.Caps[i]
		if len(limit.Engines) == 0 {
			continue
		}
		outer := above[limit.Engines[0]]
		for _, e := range limit.Engines {
			if above[e] != outer {
				return fmt.Errorf("shed: %s cuts across another cap at engine %q; caps must be nested or disjoint where shed = \"allow\"", limit.Name, c.p.Engines[e].Name)
			}
			above[e] = c.caps[i]
		}
		c.net.addArc(c.caps[i], outer, limit.MaxWork)
	}
	for e := range c.p.Engines {
		if c.p.Engines[e].Limit > 0 {
			c.net.addArc(c.engines[e], above[e], c.p.Engines[e].Limit)
		}
	}
	return nil
}

// addSources adds, per node of sources, its supply, its groups and its pairs.
func (c *capacity) addSources() error {
	groupsOf := make([][]int, len(c.p.Sources))
	for i, g := range c.p.Groups {
		groupsOf[g.Source] = append(groupsOf[g.Source], i)
	}
	c.supply = make([]int32, len(c.p.Sources))
	arcOf := make(map[int32]int32)
	for s := range c.p.Sources {
		if arc, ok := arcOf[c.setOf[s]]; ok {
			c.supply[s] = arc
			continue
		}
		c.supply[s] = c.net.addArc(supplyNode, c.setOf[s], 0)
		arcOf[c.setOf[s]] = c.supply[s]
		if err := c.addPairs(s, groupsOf[s]); err != nil {
			return err
		}
	}
	return nil
}

func (c *capacity) addPairs(s int, groups []int) error {
	p, w := c.p, c.p.Sources[s].Work
	row := p.Col[p.Row[s]:p.Row[s+1]]
	from := slices.Repeat([]int32{c.setOf[s]}, len(row)) // per pair: the node that it leaves
	groupAt := make(map[int32]int)
	var nested []int
	for _, i := range largestFirst(len(groups), func(j int) int { return len(p.Groups[groups[j]].Engines) }) {
		g := groups[i]
		outer := int32(-1)
		for _, e := range p.Groups[g].Engines {
			j, ok := slices.BinarySearch(row, e)
			if !ok {
				continue
			}
			if outer >= 0 && from[j] != outer {
				return fmt.Errorf("shed: %s of %s/%s cuts across another group; groups must be nested or disjoint where shed = \"allow\"", p.Groups[g].Name, p.Sources[s].Cluster, p.Sources[s].Class)
			}
			outer = from[j]
			from[j] = c.groups[g]
		}
		if outer >= 0 {
			groupAt[c.groups[g]] = g
			nested = append(nested, g)
			c.net.addArc(outer, c.groups[g], 0) // its room follows from the minima inside
		}
	}
	inside := make(map[int32]float64) // per group node: minima of what is inside it
	for j, e := range row {
		k := p.Row[s] + j
		lower, upper := 0.0, math.Inf(1)
		if p.Lower != nil {
			lower, upper = p.Lower[k], p.Upper[k]
		} else if p.Upper != nil {
			upper = p.Upper[k]
		}
		c.net.addArc(from[j], c.engines[e], w*(upper-lower))
		c.force(s, c.engines[e], w*lower)
		inside[from[j]] += w * lower
	}
	slices.Reverse(nested) // the inner ones first
	for _, g := range nested {
		node := c.groups[g]
		more := max(0, w*p.Groups[g].MinRPS-inside[node])
		c.force(s, node, more)
		arc := c.arcInto(node)
		c.net.room[arc] = max(0, w*p.Groups[g].MaxRPS-inside[node]-more)
		inside[c.net.to[arc^1]] += inside[node] + more
	}
	return nil
}

// arcInto returns the arc from the outer node of a group to it.
func (c *capacity) arcInto(node int32) int32 {
	for a := c.net.first[node]; ; a = c.net.next[a] {
		if a&1 == 1 && c.net.to[a] != supplyNode {
			return a ^ 1
		}
	}
}

// force makes work enter at a node: part of a source's demand that must.
func (c *capacity) force(s int, node int32, work float64) {
	if work > 0 {
		c.must[s] += work
		c.forced = append(c.forced, c.net.addArc(supplyNode, node, work))
	}
}

// route sends supply[s] work/s of each source, its minima included, and says
// how much of the whole does not fit.
func (c *capacity) route(supply []float64) (short float64) {
	copy(c.net.room, c.saved)
	var total float64
	for s, work := range supply {
		c.net.room[c.supply[s]] += max(0, work-c.must[s])
		total += max(work, c.must[s])
	}
	return total - c.net.maximise(supplyNode, c.sink)
}

// cutSide says, after route, which nodes are on the supply side of a minimum
// cut.
func (c *capacity) cutSide(node int32) bool { return c.net.level[node] >= 0 }

func largestFirst(n int, size func(int) int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return size(b) - size(a) })
	return order
}
