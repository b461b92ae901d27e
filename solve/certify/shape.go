package certify

import (
	"errors"
	"fmt"
	"math"

	"github.com/irb-project/irb/solve/model"
)

// checkShape refuses what cannot be judged at all: arrays that do not fit the
// program, and numbers that are none.
func checkShape(p *model.Problem, s *model.Solution) error {
	var errs []error
	length := func(what string, got, want int) {
		if got != want {
			errs = append(errs, fmt.Errorf("%s has %d values, want %d", what, got, want))
		}
	}
	finite := func(what string, x []float64) {
		for i, v := range x {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				errs = append(errs, fmt.Errorf("%s[%d] is %v, want a finite number", what, i, v))
				return
			}
		}
	}
	for _, a := range []struct {
		what string
		x    []float64
		want int
	}{
		{"ServedRPS", s.ServedRPS, len(p.Sources)},
		{"SourcePriceMs", s.SourcePriceMs, len(p.Sources)},
		{"EnginePrice", s.EnginePrice, len(p.Engines)},
		{"GroupPriceMs", s.GroupPriceMs, len(p.Groups)},
		{"CapPrice", s.CapPrice, len(p.Caps)},
	} {
		length(a.what, len(a.x), a.want)
		finite(a.what, a.x)
	}
	if p.Work == model.WorkSplit {
		length("PrefillPrice", len(s.PrefillPrice), len(p.Engines))
		length("OutputPrice", len(s.OutputPrice), len(p.Engines))
		finite("PrefillPrice", s.PrefillPrice)
		finite("OutputPrice", s.OutputPrice)
	}
	return errors.Join(append(errs, checkFlows(p, s), checkPairs(p))...)
}

func checkFlows(p *model.Problem, s *model.Solution) error {
	for i, f := range s.Flows {
		switch {
		case f.Pair < 0 || f.Pair >= p.Pairs():
			return fmt.Errorf("flow %d is on pair %d of %d", i, f.Pair, p.Pairs())
		case i > 0 && f.Pair <= s.Flows[i-1].Pair:
			return fmt.Errorf("flow %d is on pair %d after pair %d, want rising pairs", i, f.Pair, s.Flows[i-1].Pair)
		case math.IsNaN(f.RPS) || math.IsInf(f.RPS, 0):
			return fmt.Errorf("flow %d is %v req/s, want a finite number", i, f.RPS)
		}
		e := &p.Engines[p.Col[f.Pair]]
		if p.Work != model.WorkSplit && e.Delay == nil || p.Work == model.WorkSplit && (e.Prefill == nil || e.Output == nil) {
			return fmt.Errorf("flow %d is on engine %q, which has no capacity", i, e.Name)
		}
	}
	return nil
}

func checkPairs(p *model.Problem) error {
	if len(p.Row) != len(p.Sources)+1 || p.Row[0] != 0 || p.Row[len(p.Sources)] != len(p.Col) || len(p.CostMs) != len(p.Col) {
		return errors.New("the rows of pairs do not fit the sources")
	}
	for _, a := range []struct {
		what string
		x    []float64
	}{{"Lower", p.Lower}, {"Upper", p.Upper}, {"Stay", p.Stay}, {"StayPenaltyMs", p.StayPenaltyMs}} {
		if a.x != nil && len(a.x) != len(p.Col) {
			return fmt.Errorf("%s has %d values, want %d", a.what, len(a.x), len(p.Col))
		}
	}
	if (p.Stay == nil) != (p.StayPenaltyMs == nil) {
		return errors.New("only one of Stay and StayPenaltyMs is set")
	}
	return nil
}
