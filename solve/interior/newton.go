package interior

import (
	"context"
	"errors"
	"math"
)

const (
	maxSteps    = 150
	patience    = 12 // steps without progress
	refinements = 3
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

	theta, rd, g, dv, dz, dw, cz, cw []float64 // per variable
	rp, dl, left                     []float64 // per row
	complementarities                int
	cautious                         bool // one step length for all, no centrality correction
	steps                            int
}

func newSolver(q *qp, pt *point) *solver {
	n, rows := len(q.c), len(q.b)
	s := &solver{q: q, pt: pt, m: newNormal(rows, q.start, q.index)}
	for _, buffer := range []*[]float64{&s.theta, &s.rd, &s.g, &s.dv, &s.dz, &s.dw, &s.cz, &s.cw} {
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

// direction solves Newton's equations for the changes cz and cw of products.
func (s *solver) direction(accuracy float64) {
	q, pt := s.q, s.pt
	copy(s.dl, s.rp)
	for j, v := range pt.v {
		g := s.cz[j]/v - s.rd[j]
		if room := q.u[j] - v; !math.IsInf(room, 1) {
			g -= s.cw[j] / room
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
	for range refinements {
		if s.refine(accuracy) {
			break
		}
	}
	for j, v := range pt.v {
		s.dz[j] = (s.cz[j] - pt.z[j]*s.dv[j]) / v
		if room := q.u[j] - v; !math.IsInf(room, 1) {
			s.dw[j] = (s.cw[j] + pt.w[j]*s.dv[j]) / room
		}
	}
}

// refine corrects the direction by what it leaves of A dv = rp, and says
// whether that was little. Near the end theta spans twenty orders of
// magnitude, and without this the residual grows again.
func (s *solver) refine(accuracy float64) bool {
	q := s.q
	clear(s.left)
	q.multiply(s.dv, s.left)
	worst := 0.0
	for i, r := range s.rp {
		s.left[i] = r - s.left[i]
		worst = max(worst, math.Abs(s.left[i]))
	}
	if worst <= accuracy {
		return true
	}
	s.m.solve(s.left)
	for i, d := range s.left {
		s.dl[i] += d
	}
	for j := range s.dv {
		s.dv[j] += s.theta[j] * q.dot(j, s.left)
	}
	return false
}

// affine aims at products of 0.
func (s *solver) affine() {
	for j, v := range s.pt.v {
		s.cz[j] = -v * s.pt.z[j]
		if room := s.q.u[j] - v; !math.IsInf(room, 1) {
			s.cw[j] = -room * s.pt.w[j]
		}
	}
}

// aim aims at products of mu, and takes off the second-order terms of the
// direction found before, as far as it could be followed.
func (s *solver) aim(mu, followed float64) {
	for j, v := range s.pt.v {
		s.cz[j] = mu - v*s.pt.z[j] - followed*s.dv[j]*s.dz[j]
		if room := s.q.u[j] - v; !math.IsInf(room, 1) {
			s.cw[j] = mu - room*s.pt.w[j] + followed*s.dv[j]*s.dw[j]
		}
	}
}

// spread aims also at products that are not too far from mu where the direction
// is followed a little further than it can be (Gondzio, Multiple centrality
// corrections in a primal-dual method, Comput. Optim. Appl. 6, 1996).
func (s *solver) spread(mu, primal, dual float64) {
	const near, far = 0.1, 10
	primal, dual = min(1, primal+0.3), min(1, dual+0.3)
	change := func(product float64) float64 {
		switch {
		case product < near*mu:
			return near*mu - product
		case product > far*mu:
			return max(far*mu-product, -far*mu)
		}
		return 0
	}
	for j, v := range s.pt.v {
		s.cz[j] += change((v + primal*s.dv[j]) * (s.pt.z[j] + dual*s.dz[j]))
		if room := s.q.u[j] - v; !math.IsInf(room, 1) {
			s.cw[j] += change((room - primal*s.dv[j]) * (s.pt.w[j] + dual*s.dw[j]))
		}
	}
}

// stepLengths returns how far the direction may go for v and for z, w to stay
// >= 0, at most 1, and the sum of products there. Cautious steps go as far in
// both, so that the curvature of the objective leaves no dual residual.
func (s *solver) stepLengths() (primal, dual, gap float64) {
	pt := s.pt
	primal, dual = 1, 1
	for j, v := range pt.v {
		if d := s.dv[j]; v+primal*d < 0 {
			primal = -v / d
		}
		if d := s.dz[j]; pt.z[j]+dual*d < 0 {
			dual = -pt.z[j] / d
		}
		if room := s.q.u[j] - v; !math.IsInf(room, 1) {
			if d := s.dv[j]; room-primal*d < 0 {
				primal = room / d
			}
			if d := s.dw[j]; pt.w[j]+dual*d < 0 {
				dual = -pt.w[j] / d
			}
		}
	}
	if s.cautious {
		primal = min(primal, dual)
		dual = primal
	}
	for j, v := range pt.v {
		gap += (v + primal*s.dv[j]) * (pt.z[j] + dual*s.dz[j])
		if room := s.q.u[j] - v; !math.IsInf(room, 1) {
			gap += (room - primal*s.dv[j]) * (pt.w[j] + dual*s.dw[j])
		}
	}
	return primal, dual, gap
}

func (s *solver) step(primal, dual float64) {
	pt := s.pt
	for j := range pt.v {
		pt.v[j] += primal * s.dv[j]
		pt.z[j] += dual * s.dz[j]
		if !math.IsInf(s.q.u[j], 1) {
			pt.w[j] += dual * s.dw[j]
		}
	}
	for i := range pt.lambda {
		pt.lambda[i] += dual * s.dl[i]
	}
}

// run steps until the sum of products and the dual residual's are at most gap
// and the primal residual at most feasibility, in scaled units. It returns
// errStalled with the best point met where rounding allows no more.
func (s *solver) run(ctx context.Context, gap, feasibility float64) error {
	limit := s.steps + maxSteps
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
		if since > patience || s.steps > limit || math.IsNaN(sum) {
			s.pt.copy(best)
			return errStalled
		}
		s.advance(sum, gap, feasibility)
	}
}

// advance makes one step: a predictor that aims at products of 0 shows how far
// they can fall, the step itself aims there.
func (s *solver) advance(sum, gap, feasibility float64) {
	s.steps++
	s.m.assemble(s.q.start, s.q.entries, s.theta)
	s.m.factor(1e-14)
	s.affine()
	s.direction(math.Inf(1))
	primal, dual, left := s.stepLengths()
	ratio := max(0, left) / sum
	// Products far below the gap asked for would only cost digits.
	mu := max(ratio*ratio*ratio*sum, gap/10) / float64(s.complementarities)
	s.aim(mu, primal*dual)
	s.direction(feasibility / 100)
	primal, dual, _ = s.stepLengths()
	if !s.cautious {
		s.spread(mu, primal, dual)
		s.direction(feasibility / 100)
		primal, dual, _ = s.stepLengths()
	}
	s.step(primal*stepBack, dual*stepBack)
}
