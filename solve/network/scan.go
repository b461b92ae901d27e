package network

import (
	"math"

	"github.com/irb-project/irb/solve/chunk"
)

// offer is a pair and what its use would cost per unit of flow.
type offer struct {
	k     int
	price float64
}

// offers are at most most offers per source, the cheapest first.
type offers struct {
	most  int
	list  []offer
	count []int32
}

func newOffers(sources, most int) *offers {
	return &offers{most: most, list: make([]offer, sources*most), count: make([]int32, sources)}
}

func (o *offers) of(s int32) []offer {
	return o.list[int(s)*o.most:][:o.count[s]]
}

// bar is the price that a further offer of source s must be below.
func (o *offers) bar(s int32) float64 {
	if int(o.count[s]) < o.most {
		return math.Inf(1)
	}
	return o.list[int(s)*o.most+o.most-1].price
}

// add inserts an offer that is below the bar.
func (o *offers) add(s int32, x offer) {
	list := o.list[int(s)*o.most:][:o.most]
	i := int(o.count[s])
	if i == o.most {
		i--
	} else {
		o.count[s]++
	}
	for ; i > 0 && list[i-1].price > x.price; i-- {
		list[i] = list[i-1]
	}
	list[i] = x
}

// cheapest returns for each source the most pairs that cost the least at
// prices of engines.
func (p *program) cheapest(prices []float64, most int) *offers {
	out := newOffers(len(p.Sources), most)
	chunk.Each(p.Row, func(_, from, to int) {
		for s := from; s < to; s++ {
			f, bar := p.perWork[s], math.Inf(1)
			first := p.Row[s]
			col := p.Col[first:p.Row[s+1]]
			cost := p.CostMs[first:][:len(col)]
			for i, e := range col {
				if v := cost[i]*f + prices[e]; v < bar {
					out.add(int32(s), offer{first + i, v})
					bar = out.bar(int32(s))
				}
			}
		}
	})
	return out
}

// enginePrices returns the prices of the engines in order.
func (b *builder) enginePrices() []float64 {
	return b.graph.prices[b.engine(0):b.capNode(0)]
}

// better returns for each source the most pairs outside the graph that would
// lower the cost by more than tolerance per unit of flow.
func (b *builder) better(tolerance float64, most int) *offers {
	prices := b.enginePrices()
	out := newOffers(len(b.Sources), most)
	chunk.Each(b.Row, func(_, from, to int) {
		for s := from; s < to; s++ {
			b.betterRow(int32(s), prices, tolerance, out, int32(s))
		}
	})
	return out
}

// betterRow adds the better pairs of source s to slot of out.
func (b *builder) betterRow(s int32, prices []float64, tolerance float64, out *offers, slot int32) {
	if b.groupOf[s] == nil {
		b.betterPlain(s, prices, tolerance, out, slot)
	} else {
		b.betterGrouped(s, prices, tolerance, out, slot)
	}
}

// betterPlain is the loop that sees every pair of the program in each pass.
func (b *builder) betterPlain(s int32, prices []float64, tolerance float64, out *offers, slot int32) {
	f, bar := b.perWork[s], b.prices[s]-tolerance
	first := b.Row[s]
	col := b.Col[first:b.Row[s+1]]
	cost := b.CostMs[first:][:len(col)]
	for i, e := range col {
		if v := cost[i]*f + prices[e]; v < bar && !b.isActive(first+i) {
			out.add(slot, offer{first + i, v})
			bar = min(bar, out.bar(slot))
		}
	}
}

func (b *builder) betterGrouped(s int32, prices []float64, tolerance float64, out *offers, slot int32) {
	f, bar := b.perWork[s], -tolerance
	for k := b.Row[s]; k < b.Row[s+1]; k++ {
		v := b.CostMs[k]*f + prices[b.Col[k]] - b.prices[b.tail(s, k)]
		if v < bar && !b.isActive(k) {
			out.add(slot, offer{k, v})
			bar = min(bar, out.bar(slot))
		}
	}
}

// addBetter makes arcs of the best pairs that would lower the cost and
// returns how many it added.
func (b *builder) addBetter(tolerance float64) (added int) {
	const perSource = 3
	found := b.better(tolerance, perSource)
	for s := range b.Sources {
		for _, o := range found.of(int32(s)) {
			b.addPair(int32(s), o.k, 0)
			added++
		}
	}
	return added
}
