package explain

import (
	"math"
	"reflect"
	"slices"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
)

// group is a part of the inputs that changes as one.
type group int

const (
	demandGroup group = iota
	latencyGroup
	capacityGroup
	profileGroup
	policyGroup
	previousGroup
)

var groupNames = [...]string{"demand", "latency", "capacity and health", "profiles", "policy", "previous weights"}

// changedGroups lists the groups in which two inputs differ.
func changedGroups(a, b Inputs) []group {
	var changed []group
	add := func(g group, equal bool) {
		if !equal {
			changed = append(changed, g)
		}
	}
	add(demandGroup, reflect.DeepEqual(demandRows(a.Fleet), demandRows(b.Fleet)))
	add(latencyGroup, equalLatency(a.Fleet.Latency, b.Fleet.Latency))
	add(capacityGroup, reflect.DeepEqual(a.Fleet.Engines, b.Fleet.Engines))
	add(profileGroup, reflect.DeepEqual(a.Fleet.Profiles, b.Fleet.Profiles))
	add(policyGroup, reflect.DeepEqual(a.Fleet.Policy, b.Fleet.Policy))
	add(previousGroup, reflect.DeepEqual(a.Previous, b.Previous))
	return changed
}

// demandRows returns the demand without where it was written.
func demandRows(f *model.Fleet) []model.Demand {
	rows := slices.Clone(f.Demand)
	for i := range rows {
		rows[i].Origin = ""
	}
	return rows
}

// equalLatency compares bit for bit: cells may be NaN.
func equalLatency(a, b model.Latency) bool {
	return slices.Equal(a.From, b.From) && slices.Equal(a.To, b.To) &&
		slices.EqualFunc(a.RTTMs, b.RTTMs, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// mix takes each group from the new inputs or the old. What one side of a
// mixture names and the other does not know (the class of a demand, the profile
// or the round trips of an engine) is taken from the side that does.
func mix(old, now Inputs, fromNew func(group) bool) Inputs {
	pick := func(g group) (from, other *model.Fleet) {
		if fromNew(g) {
			return now.Fleet, old.Fleet
		}
		return old.Fleet, now.Fleet
	}
	var out Inputs
	f := &model.Fleet{}
	out.Fleet = f
	demand, _ := pick(demandGroup)
	engines, _ := pick(capacityGroup)
	f.Demand, f.Engines = demand.Demand, engines.Engines
	profiles, others := pick(profileGroup)
	f.Profiles = slices.Clone(profiles.Profiles)
	for _, p := range others.Profiles {
		have := slices.ContainsFunc(f.Profiles, func(q profile.Spec) bool { return q.Name == p.Name })
		if !have && slices.ContainsFunc(f.Engines, func(e model.Engine) bool { return e.Profile == p.Name }) {
			f.Profiles = append(f.Profiles, p)
		}
	}
	policy, otherPolicy := pick(policyGroup)
	f.Policy = policy.Policy
	f.Policy.Classes = slices.Clone(f.Policy.Classes)
	for _, c := range otherPolicy.Policy.Classes {
		have := slices.ContainsFunc(f.Policy.Classes, func(d model.Class) bool { return d.Name == c.Name })
		if !have && slices.ContainsFunc(f.Demand, func(d model.Demand) bool { return d.Class == c.Name }) {
			f.Policy.Classes = append(f.Policy.Classes, c)
		}
	}
	latency, otherLatency := pick(latencyGroup)
	f.Latency = completeLatency(latency.Latency, otherLatency.Latency, f)
	out.Previous = old.Previous
	if fromNew(previousGroup) {
		out.Previous = now.Previous
	}
	return out
}

// completeLatency returns the matrix, with the rows and columns that the fleet
// needs and only the other one has.
func completeLatency(l, other model.Latency, f *model.Fleet) model.Latency {
	own, their := l.Index(), other.Index()
	complete := true
	for _, d := range f.Demand {
		_, ok := own.Row(d.Cluster)
		complete = complete && ok
	}
	for _, e := range f.Engines {
		_, ok := own.Column(e)
		complete = complete && ok
	}
	if complete {
		return l
	}
	var out model.Latency
	for _, d := range f.Demand {
		if !slices.Contains(out.From, d.Cluster) {
			out.From = append(out.From, d.Cluster)
		}
	}
	for _, e := range f.Engines {
		out.To = append(out.To, e.Name)
	}
	at := func(l model.Latency, x model.LatencyIndex, cluster string, e model.Engine) (float64, bool) {
		row, ok := x.Row(cluster)
		column, has := x.Column(e)
		if !ok || !has {
			return math.NaN(), false
		}
		return l.At(row, column), true
	}
	for _, cluster := range out.From {
		for _, e := range f.Engines {
			ms, ok := at(l, own, cluster, e)
			if !ok {
				ms, _ = at(other, their, cluster, e)
			}
			out.RTTMs = append(out.RTTMs, float32(ms))
		}
	}
	return out
}
