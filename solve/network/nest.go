package network

import (
	"fmt"
	"slices"

	"github.com/irb-project/irb/solve/model"
)

// Supports returns why a problem is no network that Solve can take, nil if it
// is one: split work makes an engine's delay depend on two flows, and groups
// of one source (or caps) must be nested or disjoint to be layers of nodes.
func Supports(m *model.Problem) error {
	if m.Work == model.WorkSplit {
		return fmt.Errorf("network: work is %q, want %q", model.WorkSplit, model.WorkSingle)
	}
	p := program{Problem: m}
	return p.nest()
}

// nest arranges caps above engines and groups below sources as trees.
func (p *program) nest() error {
	p.above = make([]int32, p.rootNode())
	p.groupOf = make([][]int32, len(p.Sources))
	if err := p.nestCaps(); err != nil {
		return err
	}
	return p.nestGroups()
}

// nestCaps hangs every engine and cap below the smallest cap around it. Caps
// are laid from the outside in: all engines of a cap must then be in the same
// cap so far, or it cuts across another one.
func (p *program) nestCaps() error {
	for e := range p.Engines {
		p.above[p.engine(int32(e))] = p.rootNode()
	}
	order := bySize(len(p.Caps), func(c int) int { return len(p.Caps[c].Engines) })
	for _, c := range order {
		outer := p.rootNode()
		for i, e := range p.Caps[c].Engines {
			v := p.engine(e)
			if i > 0 && p.above[v] != outer {
				return fmt.Errorf("network: %s cuts across another cap at engine %q, want caps nested or disjoint",
					p.Caps[c].Name, p.Engines[e].Name)
			}
			outer = p.above[v]
			p.above[v] = p.capNode(c)
		}
		p.above[p.capNode(c)] = outer
	}
	return nil
}

// nestGroups does the same for the groups of each source over the engines
// that it may use.
func (p *program) nestGroups() error {
	members := make([][]int, len(p.Groups)) // pairs
	for i := range p.Groups {
		members[i] = p.groupPairs(i)
	}
	order := bySize(len(p.Groups), func(i int) int { return len(members[i]) })
	for _, i := range order {
		s := int32(p.Groups[i].Source)
		outer := s
		for j, k := range members[i] {
			if p.groupOf[s] == nil {
				p.groupOf[s] = slices.Repeat([]int32{s}, p.Row[s+1]-p.Row[s])
			}
			inner := &p.groupOf[s][k-p.Row[s]]
			if j > 0 && *inner != outer {
				return fmt.Errorf("network: %s of source %s/%s cuts across another group at engine %q, want groups nested or disjoint",
					p.Groups[i].Name, p.Sources[s].Cluster, p.Sources[s].Class, p.Engines[p.Col[k]].Name)
			}
			outer = *inner
			*inner = p.group(i)
		}
		p.above[p.group(i)] = outer
	}
	slices.Reverse(order)
	p.inner = order
	return nil
}

// groupPairs returns the pairs of a group: those of its engines that its
// source may use.
func (p *program) groupPairs(i int) []int {
	g := &p.Groups[i]
	row := p.Col[p.Row[g.Source]:p.Row[g.Source+1]]
	var pairs []int
	for _, e := range g.Engines {
		if j, ok := slices.BinarySearch(row, e); ok {
			pairs = append(pairs, p.Row[g.Source]+j)
		}
	}
	return pairs
}

// bySize returns 0 to n-1, the largest first, equal ones in order.
func bySize(n int, size func(int) int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return size(b) - size(a) })
	return order
}
