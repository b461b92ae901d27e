// Package network solves a model.Problem with single work as a minimum cost
// flow with convex costs, by a primal network simplex.
//
// # The problem
//
// In units of work, y = w x, the program is a network: sources supply work,
// groups of a source and caps over engines are layers of nodes where they are
// nested or disjoint, engines flow into the root, and a bypass from each source
// to the root keeps it feasible at a price above any other:
//
//	minimize   sum_a c_a y_a + sum_e F_e(Y_e) + sum_a stay_a(y_a)
//	subject to flow conservation,  lower <= y <= upper
//
// Arcs have linear costs, except those out of engines, with the convex delay
// F_e(Y) = Y D_e(Y/K_e), and pairs with a stay term, which bend once. Supplies
// are scaled to a mean of 1, costs to a mean of 1 (program.go).
//
// # Optimality
//
// With potentials pi, an arc from i to j has the reduced cost
// c + F'(y) + pi_j - pi_i. A flow is optimal if no arc can gain by more flow
// (right derivative) or by less (left derivative):
//
//	F'(y+) >= pi_i - pi_j  where y can rise
//	F'(y-) <= pi_i - pi_j  where y can fall
//
// An engine's price is the difference of potentials over its arc, limit price
// included; a cap's price that over its own.
//
// # The method
//
// start.go finds prices by a soft minimum over engines at falling temperature;
// greedy.go makes flows near them, or, where rows are short, cool.go goes on to
// temperatures at which the soft choices are nearly the flows of a tree. span.go
// makes that tree. polish.go finds the optimum on it: within a component of the
// tree all prices shift together until its loads are those of their prices,
// exactly (balance.go, couple.go's Newton steps where a full cap couples
// components), and flows follow from the leaves; where a flow would be negative,
// an arc is exchanged.
//
// The simplex (pivot.go, tree.go: Ahuja, Magnanti, Orlin, Network Flows, ch. 11)
// exchanges what polishing cannot. It sees convex costs on a grid of bends
// (bend.go), made on demand, and steps through the bends of a cycle while its
// slope stays negative. pricing.go and scan.go look for pairs that gain: only few
// of all pairs ever become arcs. Each round the grid narrows around the loads and
// the tree is polished again; once few arcs gain, each pivots once between two
// polishes (rounds.go).
//
// Trees stay strongly feasible: every arc of the tree can take more flow
// towards the root, a bent one within the piece of its cost that it is on. So
// pivots that push nothing lower prices and cannot go round in a circle
// (pivot.go).
//
// What cannot be served is told by a maximum flow (infeasible.go) and, where the
// program sheds, refused by priority (shed.go).
//
// # Warm start
//
// From the flows of a plan of nearly the same problem (warm.go), by default what
// the stay terms would keep, the first tree spans the pairs in use, and start
// prices and the coarse rounds are left out. Should that not arrive, the solve
// starts again cold. The optimum does not depend on the start; which of several
// optima of the same cost is found does. The same problem and start give the
// same answer to the last bit, on any number of threads.
//
// # Tolerances
//
//	finalTolerance  1e-11  reduced cost of a pair at the end, relative to the mean cost
//	smoothSlack     1e-9   price of an engine against its marginal, relative: rounding of loads
//	gridTolerance   1e-7   both, where the polish does not arrive
//	bypassSlack     1e-13  demand left on the bypass, relative to all demand
//	loadFuzz        1e-12  distance of a load from a kink or limit, relative
//	gridShrink      1/16   a grid to the next one
//	maxRounds       40     then errNotPolished: never a silent answer
//
// Every answer is judged again by solve/certify, in original units.
package network
