package input

import "github.com/irb-project/irb/solve/profile"

// checkEngines checks engines against one another, their profiles and the
// policy.
func (in *inputs) checkEngines() {
	r := &in.enginesFile.report
	used := make(map[string]bool)
	for i := range in.engines {
		e := &in.engines[i]
		if in.regions[e.Name] && e.Name != "" {
			r.problemf(e.at.key("name").line, "%s is the name of an engine and of a region, want them to differ: a latency column is found by either", quote(e.Name))
		}
		used[e.Profile] = true
		p, ok := in.profileByName[e.Profile]
		if !ok {
			if e.Profile != "" {
				r.add(e.at.key("profile").line, didYouMeanKey(e.Profile, in.profileByName), "profile %s is not there", quote(e.Profile))
			}
			continue
		}
		in.checkQueueing(e, &in.profiles[p])
	}
	in.checkFits()
	in.checkTableEnds()
	in.checkEndpoints()
	for _, p := range in.profiles {
		if !used[p.Name] {
			r.warnf(p.at.line, "profile %s is used by no engine", quote(p.Name))
		}
	}
}

// checkQueueing refuses processor sharing up to utilization 1, where it has no
// finite delay.
func (in *inputs) checkQueueing(e *engineRow, p *profileRow) {
	if p.Queueing != "ps" || in.policy == nil || in.maxUtilization(e) < 1 {
		return
	}
	line, whose := e.at.line, "the policy's "
	if e.MaxUtilization != 0 {
		line, whose = e.at.key("max_utilization").line, ""
	}
	in.enginesFile.problemf(line, `%smax_utilization is %s, want < 1: profile %s has queueing = "ps", whose delay is infinite at 1`,
		whose, number(in.maxUtilization(e)), quote(p.Name))
}

// maxUtilization returns the utilization that an engine is planned up to.
func (in *inputs) maxUtilization(e *engineRow) float64 {
	return orElse(e.MaxUtilization, in.policy.MaxUtilization)
}

// checkFits refuses profiles whose tables are too far from any convex curve. It
// looks at them only if nothing else is wrong with the file.
func (in *inputs) checkFits() {
	if !in.enginesFile.ok() {
		return
	}
	for _, p := range in.profiles {
		if _, err := profile.Fit(p.Spec); err != nil {
			in.enginesFile.add(p.at.line, func() string { return "measure again, or write accept_error_above_25 = true" }, "%s", err)
		}
	}
}

// checkTableEnds warns of profile tables that end below the utilization that
// some engine is planned up to.
func (in *inputs) checkTableEnds() {
	if in.policy == nil {
		return
	}
	most := make(map[string]*engineRow) // by profile, the engine with the largest max utilization
	for i := range in.engines {
		e := &in.engines[i]
		if m := most[e.Profile]; m == nil || in.maxUtilization(m) < in.maxUtilization(e) {
			most[e.Profile] = e
		}
	}
	for _, p := range in.profiles {
		e := most[p.Name]
		if e == nil || len(p.Utilization) == 0 {
			continue
		}
		if last := p.Utilization[len(p.Utilization)-1]; last < in.maxUtilization(e) {
			in.enginesFile.warnf(p.at.key("utilization").line, "profile %s ends at utilization %s, below the max utilization %s of engine %s: its last slope goes on",
				quote(p.Name), number(last), number(in.maxUtilization(e)), quote(e.Name))
		}
	}
}

// checkEndpoints warns of addresses that two engines share, and of single
// addresses that may stand for several replicas.
func (in *inputs) checkEndpoints() {
	used := make(map[string]bool)
	var shared, hiding tally
	for i := range in.engines {
		e := &in.engines[i]
		line := e.at.key("endpoints").line
		for _, endpoint := range e.Endpoints {
			if used[endpoint] {
				shared.add(endpoint, line)
			}
			used[endpoint] = true
		}
		if e.hidesReplicas() {
			hiding.add(e.Name, line)
		}
	}
	r := &in.enginesFile.report
	shared.warn(r, "endpoint is also one of an earlier engine", "endpoints are also those of earlier engines", ": their capacity counts twice")
	hiding.warn(r, "engine has a single address that is a name", "engines have a single address that is a name",
		": conversations scatter over the caches of the replicas behind it; list every replica, or declare internal_affinity = true if there is one only or it keeps conversations together")
}

// labels returns all labels of engines and their values.
func (in *inputs) labels() map[string]map[string]bool {
	labels := map[string]map[string]bool{"region": in.regions}
	for _, e := range in.engines {
		for label, value := range e.Labels {
			if labels[label] == nil {
				labels[label] = make(map[string]bool)
			}
			labels[label][value] = true
		}
	}
	return labels
}

// capabilities returns all capabilities of engines.
func (in *inputs) capabilities() map[string]bool {
	all := make(map[string]bool)
	for _, e := range in.engines {
		for _, capability := range e.Capabilities {
			all[capability] = true
		}
	}
	return all
}

// models returns all models of engines, and whether some engine takes any.
func (in *inputs) models() (all map[string]bool, anyModel bool) {
	all = make(map[string]bool)
	for _, e := range in.engines {
		anyModel = anyModel || len(e.Models) == 0
		for _, id := range e.Models {
			all[id] = true
		}
	}
	return all, anyModel
}
