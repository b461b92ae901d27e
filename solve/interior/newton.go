package interior

import (
	"context"
	"errors"
	"math"
)

const (
	maxSteps = 150
	patience = 12 // steps without progress
	// stepBack keeps this part of the way to the nearest bound.
	stepBack = 0.995
)

var errStalled = errors.New("interior: the method stalled before the gap asked for")

// solver runs Mehrotra's predictor-corrector on one qp (On the implementation
// of a primal-dual interior point method, SIAM J. Optimization 2, 1992). Each
// step solves Newton's equations of
//
//	c + h v + phi'(v) - A'lambda - z + w = 0
//	A v = b,   v z = mu,   (u - v) w = mu
//
// by elimination down to A diag(theta) A' with
// theta = 1/(h + phi” + z/v + w/(u-v)).
type solver struct {
	q  *qp
	m  *normal
	pt *point

	theta, rd, g, dv, dz, dw []float64 // per variable
	rp, dl, left             []float64 // per row
	complementarities        int
	steps                    int
}

func newSolver(q *qp, pt *point) *solver {
	n, rows := len(q.c), len(q.b)
	s := &solver{q: q, pt: pt, m: newNormal(rows, q.start, q.index)}
	for _, buffer := range []*[]float64{&s.theta, &s.rd, &s.g, &s.dv, &s.dz, &s.dw} {
		*buffer = make([]float64, n)
	}
	s.rp, s.dl, s.left = make([]float64, rows), make([]float64, rows), make([]float64, rows)
	for _, u := range q.u {
		s.complementarities++
		if !math.IsInf(u, 1) {
			s.complementarities++
		}
	}
	return s
}

// residuals sets rp = b - A v, rd = the dual residual and theta, and returns
// the sum of products and the residuals' norms.
func (s *solver) residuals() (gap, primal, dual float64) {
	q, pt := s.q, s.pt
	clear(s.rp)
	q.multiply(pt.v, s.rp)
	for i := range s.rp {
		s.rp[i] = q.b[i] - s.rp[i]
		primal = max(primal, math.Abs(s.rp[i]))
	}
	for j, v := range pt.v {
		gradient, curvature := q.slope(j, v)
		s.rd[j] = gradient - q.dot(j, pt.lambda) - pt.z[j] + pt.w[j]
		dual += math.Abs(s.rd[j]) * v
		diagonal := curvature + pt.z[j]/v
		gap += pt.z[j] * v
		if room := q.u[j] - v; !math.IsInf(room, 1) {
			diagonal += pt.w[j] / room
			gap += pt.w[j] * room
		}
		s.theta[j] = 1 / diagonal
	}
	return gap, primal, dual
}

// direction solves Newton's equations for target products mu, less correction
// times the second-order terms of the direction found before.
func (s *solver) direction(mu, correction float64) {
	q, pt := s.q, s.pt
	copy(s.dl, s.rp)
	for j, v := range pt.v {
		cz := mu - v*pt.z[j]
		if correction > 0 {
			cz -= correction * s.dv[j] * s.dz[j]
		}
		g := cz/v - s.rd[j]
		s.dz[j] = cz / v
		if room := q.u[j] - v; !math.IsInf(room, 1) {
			cw := mu - room*pt.w[j]
			if correction > 0 {
				cw += correction * s.dv[j] * s.dw[j]
			}
			g -= cw / room
			s.dw[j] = cw / room
		}
		s.g[j] = g
		tg := s.theta[j] * g
		for p := q.start[j]; p < q.start[j+1]; p++ {
			s.dl[q.index[p]] -= q.entries[p] * tg
		}
	}
	s.m.solve(s.dl)
	for j := range pt.v {
		s.dv[j] = s.theta[j] * (s.g[j] + q.dot(j, s.dl))
	}
	for range 3 {
		s.refine()
	}
	for j, v := range pt.v {
		dv := s.dv[j]
		s.dz[j] -= pt.z[j] / v * dv
		if room := q.u[j] - v; !math.IsInf(room, 1) {
			s.dw[j] += pt.w[j] / room * dv
		}
	}
}

// refine corrects the direction by what it leaves of A dv = rp. Near the end
// theta spans twenty orders of magnitude, and without this the residual grows
// again.
func (s *solver) refine() {
	q := s.q
	clear(s.left)
	q.multiply(s.dv, s.left)
	for i, r := range s.rp {
		s.left[i] = r - s.left[i]
	}
	s.m.solve(s.left)
	for i, d := range s.left {
		s.dl[i] += d
	}
	for j := range s.dv {
		s.dv[j] += s.theta[j] * q.dot(j, s.left)
	}
}

// stepLength returns how far the direction may go for all of v, z, w to stay
// >= 0, at most 1, and the sum of products there.
func (s *solver) stepLength() (alpha, gap float64) {
	pt := s.pt
	alpha = 1
	limit := func(x, dx float64) {
		if x+alpha*dx < 0 {
			alpha = -x / dx
		}
	}
	for j, v := range pt.v {
		limit(v, s.dv[j])
		limit(pt.z[j], s.dz[j])
		if room := s.q.u[j] - v; !math.IsInf(room, 1) {
			limit(room, -s.dv[j])
			limit(pt.w[j], s.dw[j])
		}
	}
	for j, v := range pt.v {
		gap += (v + alpha*s.dv[j]) * (pt.z[j] + alpha*s.dz[j])
		if room := s.q.u[j] - v; !math.IsInf(room, 1) {
			gap += (room - alpha*s.dv[j]) * (pt.w[j] + alpha*s.dw[j])
		}
	}
	return alpha, gap
}

func (s *solver) step(alpha float64) {
	pt := s.pt
	for j := range pt.v {
		pt.v[j] += alpha * s.dv[j]
		pt.z[j] += alpha * s.dz[j]
		if !math.IsInf(s.q.u[j], 1) {
			pt.w[j] += alpha * s.dw[j]
		}
	}
	for i := range pt.lambda {
		pt.lambda[i] += alpha * s.dl[i]
	}
}

// run steps until the sum of products and the dual residual's are at most gap
// and the primal residual at most feasibility, in scaled units. It returns
// errStalled with the best point met where rounding allows no more.
func (s *solver) run(ctx context.Context, gap, feasibility float64) error {
	n := float64(s.complementarities)
	best, bestScore, since := newPoint(len(s.pt.v), len(s.pt.lambda)), math.Inf(1), 0
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		sum, primal, dual := s.residuals()
		if sum <= gap && primal <= feasibility && dual <= gap {
			return nil
		}
		since++
		if score := max(sum/gap, primal/feasibility, dual/gap); score < bestScore {
			bestScore, since = score, 0
			best.copy(s.pt)
		}
		if since > patience || s.steps > maxSteps || math.IsNaN(sum) {
			s.pt.copy(best)
			return errStalled
		}
		s.steps++
		s.m.assemble(s.q.start, s.q.entries, s.theta)
		s.m.factor(1e-14)
		s.direction(0, 0)
		reach, affine := s.stepLength()
		ratio := max(0, affine) / sum
		// Products far below the gap asked for would only cost digits.
		mu := max(ratio*ratio*ratio*sum, gap/10) / n
		s.direction(mu, reach*reach)
		alpha, _ := s.stepLength()
		s.step(alpha * stepBack)
	}
}
