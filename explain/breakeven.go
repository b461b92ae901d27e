package explain

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/irb-project/irb/explain/report"
	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/figure"
	"github.com/irb-project/irb/solve/model"
)

// BreakEvens are the values of latency, demand and capacity at which a source
// begins or ceases to use an engine, each with all else as it is.
type BreakEvens struct {
	Source string  `json:"source"` // "cluster/class"
	Engine string  `json:"engine"`
	RPS    float64 `json:"rps"` // at plan; 0: not used
	Flips  []Flip  `json:"flips"`
}

// Flip is the first value in one direction at which the use of a pair flips.
type Flip struct {
	Of   string  `json:"of"` // "round trip", "demand", "capacity"
	Unit string  `json:"unit"`
	Now  float64 `json:"now"`
	Up   bool    `json:"up"` // the direction that was searched
	// At is the break-even, known to lie between Before (as now) and After
	// (flipped), both solved. Nil: there is none before End.
	At     *float64 `json:"at,omitempty"`
	Before float64  `json:"before"`
	After  float64  `json:"after,omitempty"`
	// End is why the search ended without a flip.
	End string `json:"end,omitempty"`
}

// usedShare is the part of a source's demand from which a pair counts as used;
// below it is rounding.
const usedShare = 1e-9

// FindBreakEvens searches, by solving again, in both directions for latency,
// demand and capacity. The use of a pair falls with its own round trip without
// exception; with demand and capacity it may come and go, and the flip found
// is the nearest to within the steps of the search, which begin where CLP's
// ranges put the first flip, if they do, and double. Where costs tie, several plans are best, and whether the one found uses the pair is a
// matter of choice; only its own round trip parts them for sure.
func FindBreakEvens(ctx context.Context, fleet *model.Fleet, opts solve.Options, cluster, class, engine string) (*BreakEvens, error) {
	demand := slices.IndexFunc(fleet.Demand, func(d model.Demand) bool { return d.Cluster == cluster && d.Class == class })
	if demand < 0 {
		return nil, unknown("source", cluster+"/"+class, len(fleet.Demand), func(i int) string { return fleet.Demand[i].Cluster + "/" + fleet.Demand[i].Class })
	}
	rtt, err := roundTripMs(fleet, cluster, engine)
	if err != nil {
		return nil, err
	}
	out := &BreakEvens{Source: cluster + "/" + class, Engine: engine}
	plan, err := solve.Solve(ctx, fleet, opts)
	if err != nil {
		return nil, err
	}
	node := slices.IndexFunc(plan.Engines, func(e model.EngineNode) bool { return e.Name == engine })
	row := slices.Index(plan.SourceDemand, demand)
	if row < 0 {
		return nil, badQuestion("%s has no demand, so that it uses no engine", out.Source)
	}
	if why := plan.Excluded(demand, node); why != "" {
		return nil, badQuestion("%s may not use %s whatever its price: %s", out.Source, engine, why)
	}
	out.RPS = sourceOutcome(plan, row).FlowRPS[engine]
	at := slices.IndexFunc(fleet.Engines, func(e model.Engine) bool { return e.Name == engine })
	p := pairSearch{opts: opts, demand: demand, engine: engine, used: out.RPS > usedShare*fleet.Demand[demand].RPS}
	rps, capacity := fleet.Demand[demand].RPS, fleet.Engines[at].CapacityRPS
	first := guess(ctx, plan, row, node)
	searches := []parameter{ // round trips are kept in single precision
		{"round trip", "ms", rtt, 1e6, max(1, rtt/16), first.roundTripMs, max(1e-4, 1e-6*rtt), func(v float64) *model.Fleet {
			f := *fleet
			f.Latency = setRoundTrip(fleet.Latency, fleet, cluster, engine, v)
			return &f
		}},
		{"demand", "req/s", rps, 64 * rps, rps / 16, [2]float64{}, 1e-6 * rps, func(v float64) *model.Fleet {
			f := *fleet
			f.Demand = slices.Clone(fleet.Demand)
			f.Demand[demand].RPS = v
			return &f
		}},
		{"capacity", "req/s", capacity, 64 * capacity, capacity / 16, first.capacityRPS, 1e-6 * capacity, func(v float64) *model.Fleet {
			f := *fleet
			f.Engines = slices.Clone(fleet.Engines)
			f.Engines[at].CapacityRPS = v
			return &f
		}},
	}
	out.Flips = make([]Flip, 1+2*(len(searches)-1))
	return out, inParallel(ctx, len(out.Flips), func(ctx context.Context, i int) error {
		var err error
		if i == 0 { // only one way can flip it
			out.Flips[i], err = p.search(ctx, searches[0], p.used)
		} else {
			out.Flips[i], err = p.search(ctx, searches[(i+1)/2], i%2 == 0)
		}
		return err
	})
}

// parameter is a number of the fleet that a search varies.
type parameter struct {
	of, unit string
	now      float64
	hi       float64    // of the search; the low end is 0
	step     float64    // the first
	guess    [2]float64 // how far down and up the first flip may be; 0: no guess
	within   float64    // how closely a flip is found
	with     func(v float64) *model.Fleet
}

// pairSearch looks for flips of one pair.
type pairSearch struct {
	opts   solve.Options
	demand int
	engine string
	used   bool // now
}

// state is what a fleet does with the pair.
type state int

const (
	same state = iota
	flipped
	infeasible
)

func (p pairSearch) state(ctx context.Context, f *model.Fleet) (state, error) {
	d := f.Demand[p.demand]
	if d.RPS == 0 { // the end of the range
		return same, nil
	}
	out, err := Resolve(ctx, f, p.opts)
	if err != nil {
		return infeasible, err
	}
	if out.Infeasible != "" {
		return infeasible, nil
	}
	used := out.source(d.Cluster + "/" + d.Class).FlowRPS[p.engine] > usedShare*d.RPS
	if used == p.used {
		return same, nil
	}
	return flipped, nil
}

// distances are how far from the present value to look: around the guess, if
// there is one, and then twice as far each time.
func (v parameter) distances(up bool) iter.Seq[float64] {
	return func(yield func(float64) bool) {
		step, guess := v.step, v.guess[0]
		if up {
			guess = v.guess[1]
		}
		if guess > v.within {
			if !yield(guess*(1-guessWidth)) || !yield(guess*(1+guessWidth)) {
				return
			}
			step = 2 * guess
		}
		for yield(step) {
			step *= 2
		}
	}
}

// search steps away from the present value until the state changes, and then
// halves the last step.
func (p pairSearch) search(ctx context.Context, v parameter, up bool) (Flip, error) {
	flip := Flip{Of: v.of, Unit: v.unit, Now: v.now, Up: up, Before: v.now}
	end := v.now
	for distance := range v.distances(up) {
		next := max(0, v.now-distance)
		if up {
			next = min(v.hi, v.now+distance)
		}
		if next == end { // the end of the range
			flip.End = fmt.Sprintf("none up to %s %s", figure.Rate(next), v.unit)
			if !up {
				flip.End = fmt.Sprintf("none down to %s %s", figure.Rate(next), v.unit)
			}
			return flip, nil
		}
		found, err := p.state(ctx, v.with(next))
		if err != nil {
			return flip, err
		}
		flip.Before, end = end, next
		if found != same {
			return p.halve(ctx, v, flip, end, found)
		}
	}
	return flip, nil
}

// halve narrows the change of state down between flip.Before and end.
func (p pairSearch) halve(ctx context.Context, v parameter, flip Flip, end float64, found state) (Flip, error) {
	for math.Abs(end-flip.Before) > v.within {
		middle := flip.Before + (end-flip.Before)/2
		s, err := p.state(ctx, v.with(middle))
		if err != nil {
			return flip, err
		}
		if s == same {
			flip.Before = middle
		} else {
			end, found = middle, s
		}
	}
	if found == infeasible {
		flip.End = fmt.Sprintf("none before %s %s, where there is no plan any more", figure.Rate(end), v.unit)
		return flip, nil
	}
	if end <= v.within {
		flip.End = fmt.Sprintf("none above 0 %s", v.unit)
		return flip, nil
	}
	at := (flip.Before + end) / 2
	flip.At, flip.After = &at, end
	return flip, nil
}

// Report is a sentence per flip.
func (b *BreakEvens) Report() *report.Report {
	r := &report.Report{}
	becomes, sends := "begin", "nothing"
	if b.RPS > 0 {
		becomes, sends = "cease", figure.Rate(b.RPS)+" req/s"
	}
	r.Line("%s sends %s to %s. All else equal, it would %s to use it:", b.Source, sends, b.Engine, becomes)
	var never []string
	for _, f := range b.Flips {
		past, present := "fell", "falls"
		if f.Up {
			past, present = "rose", "rises"
		}
		if f.At == nil {
			never = append(never, fmt.Sprintf("never as the %s %s: %s", f.Of, present, f.End))
			continue
		}
		r.Item("if the %s %s from %s to %s %s", f.Of, past, figure.Rate(f.Now), figure.Rate(*f.At), f.Unit)
	}
	for _, text := range never {
		r.Item("%s", text)
	}
	return r
}
