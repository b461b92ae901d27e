package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/examples/standin"
)

// deviations is how many standard deviations an observed share may be off. A
// fair sample is off by more than 4.5 once in 150,000 times.
const deviations = 4.5

// tolerance is how far the share of n independent draws may be from p.
func tolerance(p float64, n int) float64 {
	return deviations*math.Sqrt(p*(1-p)/float64(n)) + 0.5/float64(n)
}

// checkShare compares an observed share with the plan's.
func checkShare(what string, observed, planned float64, n int) error {
	if math.Abs(observed-planned) > tolerance(planned, n) {
		return fmt.Errorf("broken promise: %s is %.1f %%, planned are %.1f %% ± %.1f of %d conversations",
			what, 100*observed, 100*planned, 100*tolerance(planned, n), n)
	}
	return nil
}

// compareShares prints and checks the shares of one pass.
func (d *demo) compareShares(plan *snapshot.Snapshot, turns []turn) error {
	d.say("%-10s %-8s %10s %10s %10s", "cluster", "engine", "planned", "observed", "tolerance")
	var broken error
	for _, cluster := range clusters {
		count, all := map[string]float64{}, 0
		for i, c := range d.traffic.conversations {
			if c.cluster == cluster {
				count[turns[i].engine]++
				all++
			}
		}
		planned := weights(plan, cluster)
		for _, s := range d.servers {
			name := s.Name()
			observed := count[name] / float64(all)
			d.say("%-10s %-8s %9.1f%% %9.1f%% %9.1f%%", cluster, name, 100*planned[name], 100*observed, 100*tolerance(planned[name], all))
			if err := checkShare(fmt.Sprintf("the share of %s from %s", name, cluster), observed, planned[name], all); err != nil && broken == nil {
				broken = err
			}
		}
	}
	return broken
}

// compareLatency prints what a request took at each engine, by the engine's own
// clock, beside the plan.
func (d *demo) compareLatency(plan *snapshot.Snapshot, before []standin.Served) {
	d.say("")
	for i, s := range d.servers {
		served := s.Served()
		n := served.Requests - before[i].Requests
		e := plan.Engines[slices.IndexFunc(plan.Engines, func(e snapshot.Engine) bool { return e.Name == s.Name() })]
		d.say("%s: a request takes %.0f ms at the planned %.0f %% utilization, %.0f ms in the mean of %d",
			s.Name(), e.LatencyMs, 100*e.Utilization, 1000*(served.Seconds-before[i].Seconds)/float64(n), n)
	}
}

func (d *demo) served() (all []standin.Served) {
	for _, s := range d.servers {
		all = append(all, s.Served())
	}
	return all
}

// compareMoves compares what moved in one cluster with the least possible, the
// total variation distance between the two plans.
func (d *demo) compareMoves(cluster string, before, after *snapshot.Snapshot) error {
	from, to := source(before, cluster), source(after, cluster)
	least, keys := quotaMoved(from, to), keysMoved(from, to)
	old, new := weights(before, cluster), weights(after, cluster)
	moved, all := 0, 0
	for _, c := range d.traffic.conversations {
		if c.cluster != cluster {
			continue
		}
		all++
		first, last := c.engines[0], c.engines[len(c.engines)-1]
		if first == last {
			continue
		}
		moved++
		if new[first] >= old[first] || new[last] <= old[last] {
			return fmt.Errorf("broken promise: a conversation of %s moved from %s to %s, but the plan takes nothing away there or gives nothing here", cluster, first, last)
		}
	}
	d.say("%-10s %13.2f%% %13.2f%% %19.2f%%", cluster, 100*fraction(least), 100*fraction(keys), 100*float64(moved)/float64(all))
	if keys != least {
		return fmt.Errorf("broken promise: %.4f %% of %s's keys moved, %.4f %% had to", 100*fraction(keys), cluster, 100*fraction(least))
	}
	return checkShare("the part of "+cluster+"'s conversations that moved", float64(moved)/float64(all), fraction(least), all)
}
