package certify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/irb-project/irb/solve/model"
)

// checkShed judges stages 1 and 2 of shedding: for every priority P of which
// something is refused, a cut proves that no more work of priority >= P can be
// served, and within P nobody refused could take the place of somebody better
// served.
func (c *checker) checkShed() error {
	refused := make(map[int]float64) // priority -> work/s
	for s := range c.p.Sources {
		src := &c.p.Sources[s]
		if w := src.Work * (src.DemandRPS - c.s.ServedRPS[s]); w > ResidualTol*c.totalWork {
			refused[src.Priority] += w
		}
	}
	var errs []error
	for _, priority := range sortedDown(refused) {
		errs = append(errs, c.checkCut(priority))
	}
	if len(refused) > 0 {
		errs = append(errs, newFairness(c).check(sortedDown(refused)))
	}
	return errors.Join(errs...)
}

func sortedDown(m map[int]float64) []int {
	var keys []int
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b int) int { return cmp.Compare(b, a) })
	return keys
}

// checkCut compares the work served of priority >= P with what the cut of P
// lets through.
func (c *checker) checkCut(priority int) error {
	i := slices.IndexFunc(c.s.ShedCuts, func(cut model.ShedCut) bool { return cut.Priority == priority })
	if i < 0 {
		return fmt.Errorf("certify: work of priority %d is shed without a cut that proves it must be", priority)
	}
	cut, err := newCut(c, &c.s.ShedCuts[i])
	if err != nil {
		return fmt.Errorf("certify: cut of priority %d: %w", priority, err)
	}
	bound := cut.bound()
	var served sum
	for s := range c.p.Sources {
		if c.p.Sources[s].Priority >= priority {
			served.add(c.p.Sources[s].Work * c.s.ServedRPS[s])
		}
	}
	if lack := bound - served.value(); !(lack <= GapTol*bound) {
		return fmt.Errorf("certify: %.9g work/s of priority >= %d are served, its cut proves only that at most %.9g can be: off by %.3g, want at most %.0e",
			served.value(), priority, bound, lack/bound, GapTol)
	}
	return nil
}

// cut bounds the work that sources of priority >= P can have served, by weak
// duality of maximum flow and minimum cut:
//
//	engines of the cut                 Limit_e
//	+ caps of the cut                  MaxWork_c
//	+ sources of the cut               the most that passes these engines and caps
//	+ other sources of priority >= P   demand less the least that cannot pass them
//	- sources of lower priority        the least that cannot pass them
//
// where an engine under a cap of the cut need not be counted again. What passes
// them is bounded by demand, by the bounds of pairs and groups, and by the
// maxima of groups of the cut (see span). It holds for any choice of sets; the
// solver's makes it tight. (Not where only the end of a split-work sink stops
// more work: such an end is no limit on work.)
type cut struct {
	*checker
	priority int
	sources  []bool
	caps     []bool
	groups   []bool
	covered  []bool // engines that are in the cut, or under a cap in it
	capped   []bool // engines under a cap in the cut
}

func newCut(c *checker, s *model.ShedCut) (*cut, error) {
	out := &cut{checker: c, priority: s.Priority}
	var engines []bool
	for _, l := range []struct {
		what string
		list []int
		n    int
		set  *[]bool
	}{
		{"source", s.Sources, len(c.p.Sources), &out.sources},
		{"engine", s.Engines, len(c.p.Engines), &engines},
		{"cap", s.Caps, len(c.p.Caps), &out.caps},
		{"group", s.Groups, len(c.p.Groups), &out.groups},
	} {
		*l.set = make([]bool, l.n)
		for _, x := range l.list {
			if x < 0 || x >= l.n {
				return nil, fmt.Errorf("it names %s %d of %d", l.what, x, l.n)
			}
			(*l.set)[x] = true
		}
	}
	out.covered, out.capped = engines, make([]bool, len(engines))
	for i, in := range out.caps {
		if !in {
			continue
		}
		for _, e := range c.p.Caps[i].Engines {
			out.covered[e], out.capped[e] = true, true
		}
	}
	return out, nil
}

func (c *cut) bound() float64 {
	var total sum
	for e := range c.p.Engines {
		if c.covered[e] && !c.capped[e] {
			total.add(c.p.Engines[e].Limit)
		}
	}
	for i, in := range c.caps {
		if in {
			total.add(c.p.Caps[i].MaxWork)
		}
	}
	for s := range c.p.Sources {
		src := &c.p.Sources[s]
		x := c.span(s)
		switch stuck := x.lo - x.free; { // what cannot pass the covered engines
		case src.Priority < c.priority:
			total.add(-src.Work * stuck)
		case c.sources[s]:
			total.add(src.Work * (x.free + x.more))
		default:
			total.add(src.Work * (src.DemandRPS - stuck))
		}
	}
	return max(0, total.value())
}
