package virtual

import (
	"math"
	"time"

	"github.com/irb-project/irb/agent/snapshot"
)

// overload asks for a multiple of what the engines can do for 30 s. The top
// priority asks for half of what they can, so it alone would fit.
func overload(times float64) func(Setup) []Figure {
	return func(setup Setup) []Figure {
		var list []Figure
		for _, unknown := range []bool{false, true} {
			list = append(list, playOverload(setup, times, unknown)...)
		}
		return list
	}
}

func playOverload(setup Setup, times float64, unknown bool) []Figure {
	f := setup.of(0.6, snapshot.Class{Name: "gold", Priority: 2}, snapshot.Class{Name: "bulk"})
	f.agentsUnknown = unknown
	s := newSim(setup, f)
	capacity := f.capacity * float64(f.owners)
	offered := func(at float64) float64 {
		if at >= 10 && at < 40 {
			return times * capacity
		}
		return setup.RPS
	}
	s.rps, s.peak = offered, times*capacity
	s.classOf = func() int {
		all := offered(s.now.Sub(start).Seconds())
		gold := setup.RPS / 2
		if all > setup.RPS {
			gold = 0.5 * capacity
		}
		if s.rng.Float64()*all < gold {
			return 0
		}
		return 1
	}
	s.run(20)
	s.clear()
	s.run(20)
	goodput := 0.0
	for _, n := range s.served[:f.owners] {
		goodput += float64(n) / 20 / capacity
	}
	gold := s.byClass[0]
	toFallback := 0.0
	if setup.OneEngine {
		toFallback = float64(s.first[f.owners]) / 20
	}
	s.run(5)
	s.clear()
	s.run(10)
	suffix := ""
	if unknown {
		suffix = ", agents unknown"
	}
	list := []Figure{
		atLeast("goodput of capacity"+suffix, goodput, 0.95, "%"),
		// One in a thousand; of few requests one or two that met a full queue.
		atMost("top priority requests lost"+suffix, float64(gold.shed+gold.failed), max(2, math.Floor(0.001*float64(gold.offered))), ""),
		atMost("lost from 5 s after the end on"+suffix, float64(s.shed+s.failed), 0, ""),
	}
	if setup.OneEngine && !unknown {
		most := f.absorbs[0] * float64(len(f.classes))
		fallback := shown("first fallback gets, of what it may absorb", toFallback/most, "%")
		if setup.fast() {
			fallback.Want, fallback.Than = "<=", 1.25
		}
		list = append(list, fallback)
	}
	return list
}

func playForecast(setup Setup) []Figure {
	s := newSim(setup, setup.of(0.6))
	s.constant(1.3 * setup.RPS)
	s.run(60)
	return []Figure{atMost("requests refused or lost", float64(s.shed+s.failed), 0, "")}
}

// rival is a controller for comparison: weights in proportion to the room that
// engines report, as of when it last read.
type rival struct{ weights []float64 }

func (c *rival) pick(x float64) int {
	for n, w := range c.weights {
		if x -= w; x < 0 {
			return n
		}
	}
	return len(c.weights) - 1
}

func (c *rival) read(engines []*engine) {
	sum := 0.0
	for n, e := range engines {
		c.weights[n] = max(0.01, 1-float64(len(e.running)+len(e.waiting))/float64(e.slots))
		sum += c.weights[n]
	}
	for n := range c.weights {
		c.weights[n] /= sum
	}
}

// playStale measures by how much the share of an engine swings after settling:
// what it gets beyond its keys, or less, as a part of all, in stretches of two
// seconds. The keys themselves do not swing.
func playStale(setup Setup) []Figure {
	s := newSim(setup, setup.of(0.8))
	s.constant(setup.RPS)
	s.run(30)
	low, high := 1.0, -1.0
	for range 30 {
		s.clear()
		s.run(2)
		x := float64(s.first[0]-s.owned[0]) / float64(max(1, sum(s.owned)))
		low, high = min(low, x), max(high, x)
	}
	ours := (high - low) / 2

	s = newSim(setup, setup.of(0.8))
	s.constant(setup.RPS)
	s.rival = &rival{make([]float64, len(s.engines))}
	s.every(pollInterval, 0, func() { s.rival.read(s.engines) })
	s.run(30)
	low, high = 1.0, 0.0
	s.every(100*time.Millisecond, 0, func() { low, high = min(low, s.rival.weights[0]), max(high, s.rival.weights[0]) })
	s.run(60)
	return []Figure{
		atMost("swing of an engine's share", ours, 0.05, "%"),
		shown("that of weights by reported room", (high-low)/2, "%"),
	}
}
