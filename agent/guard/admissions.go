package guard

import (
	"cmp"
	"slices"
	"time"
)

// addAdmissions puts classes that share an engine, directly or through others,
// into one admission.
func (p *Plan) addAdmissions(last *Plan) {
	owner := make([]int, len(p.engines)) // engine -> admission + 1
	var groups [][]*Class
	for _, c := range p.classes {
		if c.peers == nil {
			continue
		}
		group := []*Class{c}
		for _, n := range c.reach() {
			if at := owner[n]; at > 0 && groups[at-1] != nil {
				group = append(group, groups[at-1]...)
				groups[at-1] = nil
			}
		}
		groups = append(groups, group)
		for _, member := range group {
			for _, n := range member.reach() {
				owner[n] = len(groups)
			}
		}
	}
	for _, group := range groups {
		if group == nil {
			continue
		}
		slices.SortStableFunc(group, func(x, y *Class) int { return cmp.Compare(y.priority, x.priority) })
		a := &admission{
			plan: p, classes: group,
			demand: make([][levels]float64, len(group)), last: make([][levels]int64, len(group)),
			pressedAt: make([]time.Time, len(group)),
			closed:    make([]time.Time, len(group)*levels),
			served:    make([]float64, len(group)), lastServed: make([]int64, len(group)),
		}
		for i, c := range group {
			c.admission = a
			a.inherit(i, last.classNamed(c.name))
		}
		p.admissions = append(p.admissions, a)
	}
}

func (p *Plan) classNamed(name string) *Class {
	if p == nil {
		return nil
	}
	for _, c := range p.classes {
		if c.name == name {
			return c
		}
	}
	return nil
}

// inherit keeps rates and gates over a reload: a new weight file must not open
// them on a fleet that is saturated.
func (a *admission) inherit(i int, old *Class) {
	if old == nil || old.admission == nil {
		return
	}
	was := old.admission
	j := slices.Index(was.classes, old)
	a.demand[i], a.served[i] = was.demand[j], was.served[j]
	a.shedding = a.shedding || was.shedding
	a.pressedAt[i] = was.pressedAt[j]
	for l := range levels {
		a.classes[i].gates[l].part.Store(old.gates[l].part.Load())
		a.classes[i].gates[l].retryAfter.Store(old.gates[l].retryAfter.Load())
	}
}
