// Package network solves a model.Problem with single work as a minimum cost
// flow with convex costs, by a primal network simplex.
package network
