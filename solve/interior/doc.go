// Package interior solves the whole program, split work, caps and groups
// included, by an interior point method in pure Go. solve/network is faster
// where the program is a network; this is the path for the rest.
//
// # The program
//
// A rows.Program over some of its pairs is written as a separable convex
// program with sparse equality rows (build.go),
//
//	minimize   sum_j c_j v_j + h_j v_j²/2 + phi_j(v_j)
//	subject to A v = b,  0 <= v <= u
//
// Its variables are the flows of pairs as fractions of demand (two parts where
// a stay term has its kink), one piece per quadratic stretch of a row's delay,
// one slack per limit, and what a source sheds, at a price above any other.
// Its optimality conditions, with multipliers z, w >= 0 of the bounds:
//
//	c + h v + phi'(v) - A'lambda - z + w = 0
//	A v = b,  v z = 0,  (u - v) w = 0
//
// # The method
//
// Mehrotra's predictor-corrector (newton.go) follows the central path, where
// the products are mu instead of 0. Each step solves with A Theta A', a sparse
// matrix over sources and rows: optimal flows are nearly a forest, so its
// factors stay small (order.go, ldl.go).
//
// # Column generation
//
// The program is solved over each source's cheapest pairs at settled prices
// (prices.go), roughly, until few others beat them; then, exactly, over the
// pairs within reach of the prices found, with those added that still beat
// their source's price, until the bound over all pairs agrees (generate.go).
// Every round starts on the central path at the prices of the one before: a
// point close to the optimum of other pairs is a bad start, as it is close to
// the wrong bounds. The pairs that carry flow are solved once more by
// themselves, so that nothing that is dropped leaves a residual (solve.go).
//
// # Tolerances
//
//	targetGap     1e-10  sum of products at which steps end, relative to the objective
//	feasibility   1e-11  |b - A v|, relative to a source's demand or a row's maximum
//	certifiedGap  1e-9   gap to the bound over all pairs and exact delays at which
//	                     rounds end, relative to the objective
//	acceptedGap   1e-7   gap and residual of an answer that is returned although
//	                     rounding stalled it, relative
//
// # Infeasible programs
//
// Where demand is shed although its price is above any other, the same method
// serves as much work as possible at no other cost; the sources, engines, caps
// and groups whose prices are then high are the binding set (infeasible.go).
package interior
