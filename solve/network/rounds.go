package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// errNotPolished is the end of a solve whose rounds do not arrive.
var errNotPolished = errors.New("network: optimum not reached in the rounds allowed")

const (
	// roughTolerance ends the pivots on shortlists, roundTolerance those of the
	// first round; both in typical costs.
	roughTolerance = 1e-2
	roundTolerance = 1e-4
	maxRounds      = 40
	// finalTolerance is how negative a reduced cost may be at the end: the
	// relative gap is at most that. Below priceRounding of the price of the
	// bypass, a sum of prices is rounding.
	finalTolerance = 1e-11
	priceRounding  = 1e-14
)

// run brings a start to the optimum: before any pivot the first tree gets the
// loads that are the optimum on it, and the grid is fine around them.
func (b *builder) run(ctx context.Context, tries int) error {
	if b.Stay != nil {
		tries /= 3 // flows rest where their terms bend, and block
	}
	b.polish(tries)
	b.regrid(startShrink)
	return b.rounds(ctx)
}

// runRough does so where rows are short and prices of the start are rough: pivots
// on the shortlists first, then all pairs.
func (b *builder) runRough(ctx context.Context) error {
	if err := b.optimize(ctx, roughTolerance*b.typical, false); err != nil {
		return err
	}
	return b.rounds(ctx)
}

// rounds alternates between the simplex on the grid and the polish on the
// tree, with ever finer grids, until polishing arrives and no pair could do
// better.
func (b *builder) rounds(ctx context.Context) error {
	tolerance, finest := roundTolerance*b.typical, false
	for round := range maxRounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.progress(fmt.Sprintf("round %d: %d pivots, %d arcs", round+1, b.steps, len(b.arcs)))
		touched := round > 0 && round < maxTouches && b.touch(tolerance)
		if !touched {
			// Later on few pairs are better: passes over all of them in parallel
			// beat looking at some in each fill.
			for again := true; again; again = round > 0 && b.addBetter(tolerance) > 0 {
				if err := b.optimize(ctx, tolerance, round == 0); err != nil {
					return err
				}
			}
		}
		b.reprice()
		if straight, smooth := b.trueSlack(); finest && !touched && max(straight, smooth) <= gridTolerance {
			return nil // the polish does not arrive, but nothing can be gained
		}
		if b.polish(polishTries) && b.isOptimal() && b.addBetter(b.final) == 0 {
			return nil
		}
		finest = b.regrid(gridShrink)
		tolerance = max(b.final, tolerance*gridShrink*gridShrink)
	}
	return errNotPolished
}

// touch pivots each arc that violates the tolerance, the worst first, once: when
// they are few, polishing is the shorter way on. On the grid the loads of a whole
// component would follow one by one. It reports whether they were few.
func (b *builder) touch(tolerance float64) bool {
	b.mend()
	b.addBetter(tolerance)
	var list []violator
	for a := range b.arcs {
		if by := b.violation(int32(a)); by > tolerance {
			list = append(list, violator{int32(a), by})
		}
	}
	if len(list) > len(b.nodes)/touchPart {
		return false
	}
	slices.SortFunc(list, func(x, y violator) int { return cmp.Or(cmp.Compare(y.by, x.by), cmp.Compare(x.a, y.a)) })
	for _, x := range list {
		if b.violation(x.a) > tolerance {
			b.pivot(x.a, tolerance)
		}
	}
	return true
}

const (
	touchPart  = 16 // arcs are few if fewer than one in so many nodes
	maxTouches = 30 // rounds
)

// gridTolerance is what the finest grid may leave of violations, relative to
// prices. It is a difference of prices over a step of 1e-9 of a limit, so the
// gap that comes of it is smaller by as much again.
const gridTolerance = 1e-7

// polishTries is how many arcs of each component polishing may drop in a round.
const polishTries = 100

// bypassSlack is the part of all demand that may be left over by rounding; the
// mean source has a supply of about 1.
const bypassSlack = 1e-13

const gridShrink = 1.0 / 16

// coldTries and warmTries are polishTries before the first round.
const (
	coldTries = 10
	warmTries = 30
)

// startShrink is how much finer than the first grid that of the first round is.
const startShrink = 1.0 / 4

// smoothSlack is what rounding may leave between the marginal of a load and its
// price, relative: the last load of a component takes the rounding of all its
// others. What that costs is of the order of its square.
const smoothSlack = 1e-9

// isOptimal reports whether no arc violates optimality after polishing.
func (b *builder) isOptimal() bool {
	straight, smooth := b.trueSlack()
	return straight <= b.final && smooth <= smoothSlack
}

// trueSlack returns the worst violations of optimality of straight and of
// smooth arcs, relative to their prices, with the marginals of smooth arcs in
// the place of their slopes.
func (b *builder) trueSlack() (straight, smooth float64) {
	for a := range b.arcs {
		x := &b.arcs[a]
		drop := b.graph.prices[x.tail] - b.graph.prices[x.head]
		left, right := b.trueSides(int32(a))
		slack := max(drop-right, left-drop) / (1 + math.Abs(drop))
		if b.smoothOf(int32(a)) == nil {
			straight = max(straight, slack)
		} else {
			smooth = max(smooth, slack)
		}
	}
	return straight, smooth
}

// trueSides returns the left and the right derivative of the cost of arc a at
// its flow. A load beside a kink by rounding is at the kink; what that costs is
// of the order of its square.
func (b *builder) trueSides(a int32) (left, right float64) {
	c := b.smoothOf(a)
	if c == nil {
		return b.arcs[a].down, b.arcs[a].up
	}
	y, fuzz := b.state[a].flow, loadFuzz*c.limit
	left, _ = c.sides(y - fuzz)
	_, right = c.sides(y + fuzz)
	return left, right
}

// loadFuzz is how far, in parts of its limit, an engine's load may be from what
// its price asks for.
const loadFuzz = 1e-12
