package input

import (
	"reflect"
	"slices"

	"github.com/irb-project/irb/solve/model"
)

// checkPolicy checks classes, rules and caps against what they refer to.
func (in *inputs) checkPolicy() {
	in.checkMatches()
	if in.engines != nil {
		in.checkClasses()
		in.checkFailureDomain()
	}
	clusters, classes := in.clusters(), sorted(in.classes)
	engines, regions := sorted(in.engineByName), sorted(in.regions)
	check := func(at *lines, key, name string, names []string) {
		if name == "" || names == nil {
			return
		}
		if _, ok := slices.BinarySearch(names, name); !ok {
			in.policyFile.add(at.key(key).line, didYouMean(name, names), "%s %s is not there", key, quote(name))
		}
	}
	for i, rule := range in.policy.Rules {
		at := in.policy.ruleAt[i]
		check(at, "cluster", rule.Cluster, clusters)
		check(at, "class", rule.Class, classes)
		check(at, "engine", rule.Engine, engines)
		check(at, "region", rule.Region, regions)
	}
	for i, limit := range in.policy.Caps {
		check(in.policy.capAt[i], "engine", limit.Engine, engines)
		check(in.policy.capAt[i], "region", limit.Region, regions)
	}
	if in.demand != nil {
		in.checkContradictions()
	}
}

// clusters returns the names of all clusters in order, nil if not all are known.
func (in *inputs) clusters() []string {
	if in.demand == nil || in.latency == nil || in.demandFile.partial || in.latencyFile.partial {
		return nil
	}
	names := slices.Clone(in.latency.From)
	for _, d := range in.demand {
		names = append(names, d.Cluster)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// checkMatches warns of classes that an agent never meets: the first class
// that matches a request takes it.
func (in *inputs) checkMatches() {
	classes := in.policy.Classes
	for i := range classes {
		for _, before := range classes[:i] {
			if reflect.DeepEqual(before.Match, model.Match{}) || reflect.DeepEqual(before.Match, classes[i].Match) {
				in.policyFile.warnf(in.policy.classAt[i].line, "class %s takes no request: class %s before it matches all that it matches",
					quote(classes[i].Name), quote(before.Name))
				break
			}
		}
	}
}

// checkClasses reports models, capabilities and labels that no engine has.
func (in *inputs) checkClasses() {
	r := &in.policyFile.report
	models, anyModel := in.models()
	capabilities := in.capabilities()
	labels := in.labels()
	for i, c := range in.policy.Classes {
		at := in.policy.classAt[i]
		if c.Model != "" && !anyModel && !models[c.Model] {
			r.add(at.key("model").line, didYouMeanKey(c.Model, models), "no engine serves model %s", quote(c.Model))
		}
		for j, capability := range c.Requires {
			if !capabilities[capability] {
				r.add(at.key("requires").element(j).line, didYouMeanKey(capability, capabilities), "no engine has the capability %s", quote(capability))
			}
		}
		for _, label := range sorted(c.Residency) {
			line := at.key("residency").key(label).line
			if labels[label] == nil {
				r.add(line, didYouMeanKey(label, labels), "residency asks for the label %s, which no engine has", quote(label))
				continue
			}
			in.checkResidency(line, label, c.Residency[label], labels[label])
		}
	}
}

// checkResidency checks the values that a class allows for a label against
// those that engines have: none in common is an error, some without an engine
// a warning.
func (in *inputs) checkResidency(line int, label string, allowed []string, values map[string]bool) {
	var missing []string
	for _, value := range allowed {
		if !values[value] {
			missing = append(missing, value)
		}
	}
	switch {
	case len(missing) == 0:
	case len(missing) == len(allowed):
		in.policyFile.add(line, didYouMeanKey(missing[0], values), "residency allows %s = %s, which no engine has", label, list(missing))
	default:
		in.policyFile.warnf(line, "residency allows %s = %s, which no engine has", label, list(missing))
	}
}

// checkFailureDomain checks that engines have the label that tells failure
// domains apart.
func (in *inputs) checkFailureDomain() {
	label := in.policy.FailureDomain
	if label == defaultFailureDomain {
		return // every engine has a region
	}
	line := in.policy.root.key("failure_domain").line
	missing := tally{}
	for _, e := range in.engines {
		if e.Label(label) == "" {
			missing.add(e.Name, line)
		}
	}
	if len(missing.names) == len(in.engines) {
		in.policyFile.add(line, didYouMeanKey(label, in.labels()), "failure_domain is %s, a label that no engine has", quote(label))
		return
	}
	missing.warn(&in.policyFile.report, "engine lacks the label of failure_domain, "+quote(label), "engines lack the label of failure_domain, "+quote(label),
		"; together they count as one domain")
}

// checkContradictions reports rules that ask for more than another rule, or a
// class, allows for the same engine and some source.
func (in *inputs) checkContradictions() {
	// Every source under its own name and under the names that leave one or
	// both parts open, as rules do.
	sources := make(map[source]bool, 4*len(in.demand))
	for _, d := range in.demand {
		for _, key := range []source{{d.Cluster, d.Class}, {d.Cluster, ""}, {"", d.Class}, {}} {
			sources[key] = true
		}
	}
	for i, rule := range in.policy.Rules {
		if rule.MinShare == nil {
			continue
		}
		line := in.policy.ruleAt[i].key("min_share").line
		for j := range in.policy.Rules {
			if most, name := in.allows(&in.policy.Rules[j], &rule, sources); most < *rule.MinShare {
				in.policyFile.problemf(line, "min_share is %s, but %s allows at most %s", number(*rule.MinShare), name, number(most))
				break
			}
		}
		for _, c := range in.policy.Classes {
			if rule.Engine != "" && c.MaxShare > 0 && c.MaxShare < *rule.MinShare && (rule.Class == "" || rule.Class == c.Name) &&
				sources[source{rule.Cluster, c.Name}] {
				in.policyFile.problemf(line, "min_share is %s, but class %s has max_share %s", number(*rule.MinShare), quote(c.Name), number(c.MaxShare))
				break
			}
		}
	}
}

// allows returns the largest share that rule limit leaves to some source of
// rule other on other's engine or region, 1 if they do not meet.
func (in *inputs) allows(limit, other *model.Rule, sources map[source]bool) (most float64, name string) {
	switch {
	case limit.Forbid:
		most = 0
	case limit.MaxShare != nil:
		most = *limit.MaxShare
	default:
		return 1, ""
	}
	cluster, sameCluster := meet(limit.Cluster, other.Cluster)
	class, sameClass := meet(limit.Class, other.Class)
	if !sameCluster || !sameClass || !sources[source{cluster, class}] {
		return 1, ""
	}
	sameEngine := limit.Engine != "" && limit.Engine == other.Engine
	region := other.Region
	if e, ok := in.engineByName[other.Engine]; ok {
		region = in.engines[e].Region
	}
	if sameEngine || limit.Region != "" && limit.Region == region {
		return most, limit.Name
	}
	return 1, ""
}

// meet returns the name that two selectors have in common, "" standing for
// every name, and whether they have one.
func meet(a, b string) (string, bool) {
	if a == "" {
		return b, true
	}
	return a, b == "" || a == b
}
