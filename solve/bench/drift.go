package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/model"
)

// driftShare is the standard deviation of the logarithm by which the demand of
// each source changes from one period to the next.
const driftShare = 0.05

// penalties are what a request that leaves its engine costs, in ms. By default
// that is h TTFT(0) p/p_ref / requests_per_key: with half of a prompt cached and
// an unloaded TTFT of 80 ms, 40 ms where a conversation sends one request per
// period and 4 ms where it sends ten.
func penalties() []float64 { return []float64{0, 1, 4, 40} }

// arm is a chain of plans, each made with the one before as the previous.
type arm struct {
	penaltyMs float64
	cold      bool      // each solved from scratch
	weights   []float64 // per pair, of the last plan; nil: none yet
	moved     []float64 // per period, share of all traffic that moved
	meanMs    []float64 // per period, latency
	seconds   []float64 // per period, to solve and certify
}

// drifts writes a table per drifting fleet.
func (b *bench) drifts(ctx context.Context) error {
	for _, s := range b.drift {
		f := fleet{Size: s, Load: load{Percent: 75}, Seed: b.seed}
		arms, err := driftArms(ctx, f, b.periods)
		if err != nil {
			if err := b.failed(ctx, fmt.Errorf("drift of %s: %w", f, err)); err != nil {
				return err
			}
			continue
		}
		t := newTable(
			fmt.Sprintf("Demand drift of %.0f %% over %d periods, %s", 100*driftShare, b.periods, f),
			"cache penalty", "moved per period", "at most", "latency", "above least", "median solve")
		for _, a := range arms {
			t.row(a.name(), percent(mean(a.moved)), percent(slices.Max(a.moved)),
				fmt.Sprintf("%.3f ms", mean(a.meanMs)), percent(mean(a.meanMs)/mean(arms[0].meanMs)-1), duration(median(a.seconds)))
		}
		if err := t.write(b.out); err != nil {
			return err
		}
	}
	return nil
}

func (a *arm) name() string {
	if a.cold {
		return "none, from scratch"
	}
	return fmt.Sprintf("%.4g ms", a.penaltyMs)
}

func driftArms(ctx context.Context, f fleet, periods int) ([]*arm, error) {
	p := f.problem()
	arms := []*arm{{cold: true}}
	for _, ms := range penalties() {
		arms = append(arms, &arm{penaltyMs: ms})
	}
	rng := rand.New(rand.NewPCG(f.Seed, 2))
	for period := range periods + 1 {
		if period > 0 {
			driftDemand(p, rng)
		}
		for _, a := range arms {
			if err := a.plan(ctx, p); err != nil {
				return nil, fmt.Errorf("period %d, penalty %v ms: %w", period, a.penaltyMs, err)
			}
		}
	}
	return arms, nil
}

// driftDemand changes the demand of every source; its work together stays.
func driftDemand(p *model.Problem, rng *rand.Rand) {
	before, after := 0.0, 0.0
	for s := range p.Sources {
		source := &p.Sources[s]
		before += source.DemandRPS * source.Work
		source.DemandRPS *= math.Exp(driftShare * rng.NormFloat64())
		after += source.DemandRPS * source.Work
	}
	for s := range p.Sources {
		p.Sources[s].DemandRPS *= before / after
	}
}

// plan solves the next period, from the plan of the last one unless cold.
func (a *arm) plan(ctx context.Context, p *model.Problem) error {
	q := *p
	if a.weights != nil && a.penaltyMs > 0 {
		q.Stay = make([]float64, q.Pairs())
		q.StayPenaltyMs = make([]float64, q.Pairs())
		for s := range q.Sources {
			for k := q.Row[s]; k < q.Row[s+1]; k++ {
				if a.weights[k] > 0 {
					q.Stay[k] = a.weights[k] * q.Sources[s].DemandRPS
					q.StayPenaltyMs[k] = a.penaltyMs
				}
			}
		}
	}
	var last []model.Flow
	if a.weights != nil && !a.cold {
		for s := range q.Sources {
			for k := q.Row[s]; k < q.Row[s+1]; k++ {
				if a.weights[k] > 0 {
					last = append(last, model.Flow{Pair: k, RPS: a.weights[k] * q.Sources[s].DemandRPS})
				}
			}
		}
	}
	start := time.Now()
	s, report, err := solve.Certified(ctx, &q, last)
	if err != nil {
		return err
	}
	seconds := time.Since(start).Seconds()
	weights := make([]float64, q.Pairs())
	for _, f := range s.Flows {
		weights[f.Pair] = f.RPS
	}
	requests, moved := 0.0, 0.0
	for s := range q.Sources {
		demand := q.Sources[s].DemandRPS
		requests += demand
		for k := q.Row[s]; k < q.Row[s+1]; k++ {
			weights[k] /= demand
			if a.weights != nil {
				moved += demand * max(0, a.weights[k]-weights[k])
			}
		}
	}
	if a.weights != nil {
		a.moved = append(a.moved, moved/requests)
		a.meanMs = append(a.meanMs, report.LatencyMsRPS/requests)
		a.seconds = append(a.seconds, seconds)
	}
	a.weights = weights
	return nil
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func percent(x float64) string { return fmt.Sprintf("%.3g %%", 100*x) }
