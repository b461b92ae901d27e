package fleetgen

import (
	"fmt"
	"math"
	"slices"

	"github.com/irb-project/irb/solve/model"
)

func (o *oddity) addBounds() {
	if !o.bounded {
		return
	}
	if o.chance(0.7) {
		o.p.Lower = make([]float64, o.p.Pairs())
		o.p.Upper = make([]float64, o.p.Pairs())
		share := []float64{1, 0.75, 0.5}[o.rng.IntN(3)]
		for s := range o.p.Sources {
			demand := o.p.Sources[s].DemandRPS
			share := o.share(share, o.p.Row[s+1]-o.p.Row[s])
			for k := o.p.Row[s]; k < o.p.Row[s+1]; k++ {
				o.p.Upper[k] = math.Inf(1)
				if o.chance(0.6) {
					o.p.Upper[k] = share * demand
				}
				if o.chance(0.08) {
					o.p.Lower[k] = demand / 8
				}
			}
		}
	}
	if !o.chance(0.7) {
		return
	}
	for s := range o.p.Sources {
		demand := o.p.Sources[s].DemandRPS
		regions := 0
		for region := range 3 {
			regions += min(1, len(o.reach(s, region)))
		}
		for region := range 3 {
			engines := o.reach(s, region)
			if len(engines) == 0 || o.chance(0.3) {
				continue
			}
			g := model.Group{Name: fmt.Sprintf("domain %d of c%d", region, s), Source: s, Engines: engines, MaxRPS: demand * o.share([]float64{1, 0.75, 0.5}[o.rng.IntN(3)], regions)}
			if o.chance(0.15) {
				g.MinRPS = demand / 8
			}
			o.p.Groups = append(o.p.Groups, g)
			if len(engines) > 2 && o.chance(0.3) {
				o.p.Groups = append(o.p.Groups, model.Group{Name: "inner " + g.Name, Source: s, Engines: engines[1:], MaxRPS: g.MaxRPS / 2})
			}
		}
	}
}

// share returns a share per way of n ways, mostly one with which they suffice.
func (o *oddity) share(share float64, n int) float64 {
	if share*float64(n) < 1 && !o.chance(0.1) {
		return 1
	}
	return share
}

// reach returns the engines of a region that source s may use.
func (o *oddity) reach(s, region int) []int32 {
	var engines []int32
	for _, e := range o.p.Col[o.p.Row[s]:o.p.Row[s+1]] {
		if o.regionOf[e] == region {
			engines = append(engines, e)
		}
	}
	return engines
}

// addStay makes a previous plan, of random routes for part of the demand.
func (o *oddity) addStay() {
	if !o.chance(0.4) {
		return
	}
	o.p.Stay = make([]float64, o.p.Pairs())
	o.p.StayPenaltyMs = make([]float64, o.p.Pairs())
	for s := range o.p.Sources {
		lo, hi := o.p.Row[s], o.p.Row[s+1]
		for range min(2, hi-lo) {
			k := lo + o.rng.IntN(hi-lo)
			o.p.Stay[k] = o.p.Sources[s].DemandRPS / 2
			o.p.StayPenaltyMs[k] = []float64{0, 1, 50}[o.rng.IntN(3)] * o.time
		}
	}
}

func (o *oddity) addCaps() {
	if !o.chance(0.4) {
		return
	}
	for region := range 3 {
		var engines []int32
		limit := 0.0
		for e, r := range o.regionOf {
			if r == region && o.p.Engines[e].Limit > 0 {
				engines = append(engines, int32(e))
				limit += o.p.Engines[e].Limit
			}
		}
		if len(engines) == 0 || o.chance(0.4) {
			continue
		}
		o.p.Caps = append(o.p.Caps, model.WorkCap{Name: fmt.Sprintf("cap %d", region), Engines: engines, MaxWork: limit * []float64{0.75, 0.875, 1}[o.rng.IntN(3)]})
		if e := engines[len(engines)-1]; o.chance(0.3) {
			o.p.Caps = append(o.p.Caps, model.WorkCap{Name: "inner cap", Engines: slices.Clone(engines[len(engines)-1:]), MaxWork: o.p.Engines[e].Limit / 2})
		}
	}
}
