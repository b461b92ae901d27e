// Package certify judges an answer: it recomputes the objective, every
// residual and a lower bound in original units (ms, req/s), from the program
// and the prices alone and with no code of any solver.
//
// # The bound
//
// With a price p_e >= 0 on the work of each engine, k_c >= 0 on that of each
// cap and g on each group (see model.Solution), the program of model.Problem
// is bounded from below, whatever the prices, by weak duality:
//
//	bound = sum_s h_s - sum_e F*_e(p_e) - sum_c k_c MaxWork_c
//	        - sum_{g>0} g MaxRPS - sum_{g<0} g MinRPS
//
//	h_s = min  sum_k r_k x_k + StayPenalty_k (Stay_k - x_k)+
//	      over sum_k x_k = ServedRPS_s,  Lower_k <= x_k <= Upper_k
//	r_k = CostMs_k + w_s (p_e + sum_{c with e} k_c) + sum_{g with k} g
//
// F* is profile.Sink.Conjugate. Split work: r_k = CostMs_k + q_s a_e + o_s b_e
// + w_s (p_e + ...), and F*_e is A*_e(a_e) + B*_e(b_e) + p_e Limit_e.
//
// h_s is a fractional knapsack, solved exactly; so the bound is the best that
// the prices of engines, caps and groups allow, and the published price of a
// source does not enter it. It is judged by itself: it must be a marginal cost
// of h_s at ServedRPS_s.
//
// # What is judged
//
//	residual   violation of a row / (size of the row + total / 1000)    <= ResidualTol
//	gap        (objective - bound) / max(objective, 1e-8 gross)         <= GapTol
//	price gap  sum_s ServedRPS_s |price - nearest marginal cost| / same <= GapTol
//	shed       work refused that a cut does not prove lost / its bound  <= GapTol
//	unfair     fraction that a better served source could yield         <= FairTol
//
// The size of a row is the sum of its terms and bound without signs, total is
// all demand (req/s or work/s): a row of rates near 0 cannot be met better
// than the rounding of the large rates beside it. Gross is the sum of the terms
// of the bound without signs; it matters only where the objective is (nearly)
// 0, and allows for the rounding of terms that cancel. All of these are
// relative, so no scale of rates or costs changes a verdict.
package certify

import (
	"errors"
	"fmt"

	"github.com/irb-project/irb/solve/model"
)

// Tolerances, all relative: see the package comment.
const (
	ResidualTol = 1e-9
	GapTol      = 1e-6
	FairTol     = 1e-5
)

// grossRounding is what part of the terms of the bound may be lost in
// rounding, divided by GapTol.
const grossRounding = 1e-8

// Report is what a certificate found, in original units.
type Report struct {
	ObjectiveMsRPS float64 // LatencyMsRPS + ChurnMsRPS
	LatencyMsRPS   float64 // network, base and delay of all served requests
	ChurnMsRPS     float64 // what leaving previous engines costs
	BoundMsRPS     float64 // no plan costs less
	Gap            float64 // relative, see the package comment
	PriceGap       float64 // relative
	MaxResidual    float64 // relative
	WorstResidual  string  // its row, "capacity/h100-eu-2"; "" if every row holds exactly
}

// Check judges s as an answer to p. The error joins every reason why it is not
// a certified optimum; the report is filled as far as could be computed.
func Check(p *model.Problem, s *model.Solution) (Report, error) {
	if err := checkShape(p, s); err != nil {
		return Report{}, fmt.Errorf("certify: %w", err)
	}
	c := newChecker(p, s)
	total := c.sources()
	c.engines(&total)
	c.caps(&total)
	c.groupConstants(&total)

	var r Report
	r.LatencyMsRPS = total.latency.value()
	r.ChurnMsRPS = total.churn.value()
	r.ObjectiveMsRPS = r.LatencyMsRPS + r.ChurnMsRPS
	r.BoundMsRPS = total.bound.value()
	if scale := max(r.ObjectiveMsRPS, grossRounding*total.gross.value()); scale > 0 {
		r.Gap = (r.ObjectiveMsRPS - r.BoundMsRPS) / scale
		r.PriceGap = total.mispriced.value() / scale
	}
	r.MaxResidual = total.worst.ratio
	if total.worst.ratio > 0 {
		r.WorstResidual = total.worst.row.name(p)
	}

	errs := []error{total.worst.err(p)}
	if !(r.Gap <= GapTol) {
		errs = append(errs, fmt.Errorf("certify: objective %.9g ms x req/s, bound %.9g: gap %.3g, want at most %.0e", r.ObjectiveMsRPS, r.BoundMsRPS, r.Gap, GapTol))
	} else if r.Gap < -GapTol {
		errs = append(errs, fmt.Errorf("certify: objective %.9g ms x req/s is below its bound %.9g by %.3g: a row or a cost is broken", r.ObjectiveMsRPS, r.BoundMsRPS, -r.Gap))
	}
	if !(r.PriceGap <= GapTol) {
		errs = append(errs, total.price.err(p, r.PriceGap))
	}
	if p.Shed {
		errs = append(errs, c.checkShed())
	}
	r.Gap = max(0, r.Gap) // rounding below 0 means nothing to a reader
	return r, errors.Join(errs...)
}
