package lint

import (
	"github.com/irb-project/irb/solve/model"
)

// rules looks for those that do nothing.
func (l *linter) rules() {
	rules := l.policy.Rules
	for i := range rules {
		r := &rules[i]
		sources, engines := l.covered(r)
		if sources == 0 {
			l.problem(CodeRuleIdle, r.Name, "it is about cluster %q and class %q, and no row of the demand is", r.Cluster, r.Class)
			continue
		}
		if engines == 0 {
			l.problem(CodeRuleIdle, r.Name, "nothing else lets its sources use engine %q or region %q, so that it forbids or bounds nothing", r.Engine, r.Region)
			continue
		}
		for j := range rules {
			if j != i && wider(&rules[j], r) && (!wider(r, &rules[j]) || j < i) && saysMore(&rules[j], r) {
				l.problem(CodeRuleRedundant, r.Name, "%s covers all that this one does and is as strict", rules[j].Name)
				break
			}
		}
	}
}

// covered counts the sources that a rule speaks of, and the engines that it
// speaks of and some of them may use but for it.
func (l *linter) covered(r *model.Rule) (sources, engines int) {
	seen := make(map[int]bool)
	for row, d := range l.c.Fleet.Demand {
		if (r.Cluster != "" && r.Cluster != d.Cluster) || (r.Class != "" && r.Class != d.Class) {
			continue
		}
		sources++
		for e, node := range l.c.Engines {
			if (r.Engine != "" && r.Engine != node.Name) || (r.Region != "" && r.Region != node.Region) {
				continue
			}
			why := l.c.Excluded(row, e)
			if why == "" || string(why) == r.Name+" forbids it" {
				seen[e] = true
			}
		}
	}
	return sources, len(seen)
}

// wider says whether rule a speaks of all that b speaks of.
func wider(a, b *model.Rule) bool {
	return (a.Cluster == "" || a.Cluster == b.Cluster) && (a.Class == "" || a.Class == b.Class) &&
		a.Engine == b.Engine && a.Region == b.Region
}

// saysMore says whether what a demands of a pair holds what b demands.
func saysMore(a, b *model.Rule) bool {
	switch {
	case b.Forbid || a.Forbid:
		return a.Forbid && b.Forbid
	case b.MinShare != nil:
		return a.MinShare != nil && *a.MinShare >= *b.MinShare
	case b.MaxShare != nil:
		return a.MaxShare != nil && *a.MaxShare <= *b.MaxShare
	}
	return false
}
