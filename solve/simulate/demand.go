package simulate

import (
	"math"
	"slices"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/simulate/scenario"
	"github.com/irb-project/irb/solve/simulate/traffic"
)

// demand is what sources offer over time.
type demand struct {
	layout *layout
	events []scenario.Event // of kind demand
	times  []float64        // of steps, s
	rps    [][]float64      // by step and source
	scale  float64
	peak   []float64 // by source: the most of its steps
	turns  float64
}

func newDemand(l *layout, in Input) *demand {
	d := &demand{layout: l, scale: in.Scenario.Traffic.Scale, turns: in.Scenario.Traffic.Turns}
	for _, e := range in.Scenario.Events {
		if e.Kind == scenario.Demand {
			d.events = append(d.events, e)
		}
	}
	steps := in.Steps
	if len(steps) == 0 {
		steps = []Step{{Demand: l.fleet.Demand}}
	}
	d.peak = make([]float64, len(l.rows))
	for _, step := range steps {
		rps := make([]float64, len(l.rows))
		for s, row := range l.rows {
			key := &l.fleet.Demand[row]
			for i := range step.Demand {
				if x := &step.Demand[i]; x.Cluster == key.Cluster && x.Class == key.Class {
					rps[s] = d.scale * x.RPS
				}
			}
			d.peak[s] = max(d.peak[s], rps[s])
		}
		d.times = append(d.times, step.AtS)
		d.rps = append(d.rps, rps)
	}
	return d
}

// rate returns the demand of a source by the steps, in req/s.
func (d *demand) rate(source int, atS float64) float64 {
	i, exact := slices.BinarySearch(d.times, atS)
	switch {
	case exact || i == 0:
		return d.rps[min(i, len(d.rps)-1)][source]
	case i == len(d.times):
		return d.rps[i-1][source]
	}
	f := (atS - d.times[i-1]) / (d.times[i] - d.times[i-1])
	return d.rps[i-1][source] + f*(d.rps[i][source]-d.rps[i-1][source])
}

// factor returns what events make of the demand of a source.
func (d *demand) factor(source int, atS float64) float64 {
	f := 1.0
	for i := range d.events {
		e := &d.events[i]
		row := &d.layout.fleet.Demand[d.layout.rows[source]]
		if (e.Cluster == "" || e.Cluster == row.Cluster) && (e.Class == "" || e.Class == row.Class) &&
			atS >= e.AtS && (e.ForS == 0 || atS < e.AtS+e.ForS) {
			f *= e.Factor
		}
	}
	return f
}

// at returns the demand at a time, by the rows of the fleet.
func (d *demand) at(atS float64) []model.Demand {
	out := slices.Clone(d.layout.fleet.Demand)
	for s, row := range d.layout.rows {
		out[row].RPS = d.rate(s, atS) * d.factor(s, atS)
		if d.turns > 0 {
			out[row].RequestsPerKey = d.turns
		}
	}
	return out
}

// stream returns the requests.
func (d *demand) stream(in Input) traffic.Stream {
	s := in.Scenario
	if in.Trace != nil {
		return traffic.NewReplay(in.Trace, s.Traffic.Speed, s.DurationS)
	}
	var sources []traffic.Source
	slowest := 0.0
	for _, c := range d.layout.configs {
		slowest = max(slowest, c.Profile.TBOT.At(0)/1000)
	}
	for i, row := range d.layout.rows {
		x := &d.layout.fleet.Demand[row]
		turns := d.turns
		if turns == 0 {
			turns = x.RequestsPerKey
		}
		sources = append(sources, traffic.Source{
			RPS: d.peak[i], PromptTokens: x.PromptTokens, OutputTokens: x.OutputTokens, Turns: turns,
		})
	}
	peak := 1.0
	for _, e := range d.events {
		peak *= math.Max(1, e.Factor)
	}
	shape := traffic.Shape{Peak: peak, Factor: func(source int, atS float64) float64 {
		if d.peak[source] == 0 {
			return 0
		}
		return d.rate(source, atS) / d.peak[source] * d.factor(source, atS)
	}}
	return traffic.NewSynthetic(sources, shape, traffic.Options{
		Seed: s.Seed, DurationS: s.DurationS, BlockTokens: s.Traffic.BlockTokens, LengthCV: s.Traffic.LengthCV,
		ThinkS: s.Traffic.ThinkS, AnswerS: slowest, SharedTokens: s.Traffic.SharedTokens,
	})
}
