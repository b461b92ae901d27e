package guard

import (
	"cmp"
	"slices"
	"time"
)

// addAdmissions puts classes that share an engine, directly or through others,
// into one admission.
func (p *Plan) addAdmissions(last *Plan) {
	for _, group := range p.connected() {
		slices.SortStableFunc(group, func(x, y *Class) int { return cmp.Compare(y.priority, x.priority) })
		a := &admission{
			plan: p, classes: group,
			demand: make([][levels]float64, len(group)), last: make([][levels]int64, len(group)),
			pressedAt: make([]time.Time, len(group)),
			closed:    make([]time.Time, len(group)*levels),
			served:    make([]float64, len(group)), lastServed: make([]int64, len(group)),
		}
		for i, c := range group {
			c.admission, c.place = a, i
			a.inherit(i, last.classNamed(c.name))
			p.spec.Pause()
		}
		p.admissions = append(p.admissions, a)
	}
}

// connected returns the classes in groups that share no engine with each other,
// in time that grows with the number of weights: union-find over the engines.
func (p *Plan) connected() (groups [][]*Class) {
	up := make([]int, len(p.engines)) // an engine nearer to the root of its set
	for n := range up {
		up[n] = n
	}
	root := func(n int) int {
		for up[n] != n {
			up[n] = up[up[n]]
			n = up[n]
		}
		return n
	}
	first := make([]int, len(p.classes)) // engine of each class; -1: it has none
	for i, c := range p.classes {
		first[i] = -1
		p.spec.Pause()
		if c.peers == nil {
			continue
		}
		for _, n := range c.reach() {
			if first[i] < 0 {
				first[i] = n
			}
			up[root(n)] = root(first[i])
		}
	}
	group := make(map[int]int, len(p.engines)) // root -> place in groups
	for i, c := range p.classes {
		if first[i] < 0 {
			if c.peers != nil {
				groups = append(groups, []*Class{c})
			}
			continue
		}
		at, ok := group[root(first[i])]
		if !ok {
			at = len(groups)
			group[root(first[i])] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], c)
	}
	return groups
}

func (p *Plan) classNamed(name string) *Class {
	if p == nil {
		return nil
	}
	return p.byClass[name]
}

// inherit keeps rates and gates over a reload: a new weight file must not open
// them on a fleet that is saturated.
func (a *admission) inherit(i int, old *Class) {
	if old == nil || old.admission == nil {
		return
	}
	was := old.admission
	j := old.place
	a.demand[i], a.served[i] = was.demand[j], was.served[j]
	a.shedding = a.shedding || was.shedding
	a.pressedAt[i] = was.pressedAt[j]
	for l := range levels {
		a.classes[i].gates[l].part.Store(old.gates[l].part.Load())
		a.classes[i].gates[l].retryAfter.Store(old.gates[l].retryAfter.Load())
	}
}
