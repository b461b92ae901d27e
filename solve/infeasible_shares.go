package solve

import (
	"fmt"
	"slices"

	"github.com/irb-project/irb/solve/model"
)

// bindingShare is one rule or class of the policy with all that its share keeps
// from being served: at most, or at least, so much of some sources on some
// engines.
type bindingShare struct {
	name    string
	least   bool
	rps     float64 // over sources and, where it bounds each by itself, engines
	sources []int
	engines []int
}

func (b *bindingShare) text(c *model.Compiled) string {
	if b.least {
		return fmt.Sprintf("%s wants at least %.6g req/s of %s on %s", b.name, b.rps, sourceNames(c, b.sources), engineNames(c, b.engines))
	}
	return fmt.Sprintf("%s allows %s at most %.6g req/s on %s", b.name, sourceNames(c, b.sources), b.rps, engineNames(c, b.engines))
}

// bindingShares gathers the groups and pairs of a binding set by what the policy
// calls them. A maximum binds a source that cannot be served in full, a minimum
// one that could be elsewhere, or whose minima contradict each other.
func bindingShares(c *model.Compiled, e *model.Infeasible) []*bindingShare {
	var shares []*bindingShare
	add := func(name string, least bool, rps float64, s int, engines ...int32) {
		i := slices.IndexFunc(shares, func(b *bindingShare) bool { return b.name == name && b.least == least })
		if i < 0 {
			i = len(shares)
			shares = append(shares, &bindingShare{name: name, least: least})
		}
		b := shares[i]
		b.rps += rps
		b.sources = append(b.sources, s)
		for _, engine := range engines {
			b.engines = append(b.engines, int(engine))
		}
	}
	short := make([]bool, len(c.Sources))
	for _, s := range e.Sources {
		short[s] = true
	}
	minima := c.MinimaRPS()
	least := func(s int, lo, hi float64) bool {
		demand := c.Sources[s].DemandRPS
		return lo > 0 && (hi >= demand || !short[s] || minima[s] > demand)
	}
	for _, i := range e.Groups {
		g := &c.Groups[i]
		if least(g.Source, g.MinRPS, g.MaxRPS) {
			add(g.Name, true, g.MinRPS, g.Source, g.Engines...)
		} else {
			add(g.Name, false, g.MaxRPS, g.Source, g.Engines...)
		}
	}
	for _, k := range e.Pairs {
		s, _ := slices.BinarySearch(c.Row, k+1)
		s--
		lower, upper := c.PairBounds(s, k)
		switch {
		case lower != "" && least(s, c.Lower[k], c.Upper[k]):
			add(lower, true, c.Lower[k], s, c.Col[k])
		case upper != "":
			add(upper, false, c.Upper[k], s, c.Col[k])
		}
	}
	for _, b := range shares {
		b.sources, b.engines = distinct(b.sources), distinct(b.engines)
	}
	return shares
}

func distinct(list []int) []int {
	slices.Sort(list)
	return slices.Compact(list)
}
