package virtual

import (
	"fmt"
	"math"
)

// Setup is what a scenario is seen with.
type Setup struct {
	Agents        int     // each with its own view of the engines
	RPS           float64 // planned, of all agents
	OneEngine     bool    // one engine and two fallbacks in place of five engines
	WrongProfiles bool    // by 30 % either way
	Seed          uint64
}

// Setups returns all that every scenario is seen with, for one seed.
func Setups(seed uint64) (list []Setup) {
	for _, one := range []bool{false, true} {
		for _, agents := range []int{2, 8} {
			for _, rps := range []float64{20, 500} {
				for _, wrong := range []bool{false, true} {
					list = append(list, Setup{agents, rps, one, wrong, seed})
				}
			}
		}
	}
	return list
}

// Figure is something measured, and what it should be.
type Figure struct {
	Name string
	Got  float64
	Want string // "<=", ">=" or "" for what is only shown
	Than float64
	Unit string // "%": Got and Than are shares
}

// Holds says whether the figure is as wanted.
func (f Figure) Holds() bool {
	switch f.Want {
	case "<=":
		return f.Got <= f.Than
	case ">=":
		return f.Got >= f.Than
	}
	return true
}

// Wanted says what the figure should be.
func (f Figure) Wanted() string {
	switch {
	case f.Want == "":
		return ""
	case f.Want == "<=" && f.Than == 0:
		return "0"
	}
	return f.Want + " " + f.show(f.Than)
}

// Measured says what it is.
func (f Figure) Measured() string { return f.show(f.Got) }

func (f Figure) show(x float64) string {
	if f.Unit == "%" {
		return fmt.Sprintf("%.3g%%", 100*x)
	}
	if math.Abs(x) >= 10 {
		return fmt.Sprintf("%.0f%s", x, f.Unit)
	}
	return fmt.Sprintf("%.3g%s", x, f.Unit)
}

func atMost(name string, got, than float64, unit string) Figure {
	return Figure{name, got, "<=", than, unit}
}

func atLeast(name string, got, than float64, unit string) Figure {
	return Figure{name, got, ">=", than, unit}
}

func shown(name string, got float64, unit string) Figure { return Figure{name, got, "", 0, unit} }

// Scenario is one thing that happens to a fleet.
type Scenario struct {
	Name string
	What string
	Play func(Setup) []Figure
}

// Scenarios returns all.
func Scenarios() []Scenario {
	return []Scenario{
		{"slow", "one engine slows tenfold, then recovers", playSlow},
		{"dead", "one engine dies in the middle of its answers, then comes back", playDead},
		{"storm", "engines answer half of all requests with 503, at 90 % load", playStorm},
		{"overload2", "twice the capacity is asked for, half of that of the top priority", overload(2)},
		{"overload5", "five times the capacity", overload(5)},
		{"overload10", "ten times the capacity", overload(10)},
		{"forecast", "1.3 times the forecast, within capacity", playForecast},
		{"sick", "all engines slow down threefold, at 30 % load", sick(func(e *engine) { e.slow = 3 })},
		{"gone", "all engines refuse connections", sick(func(e *engine) { e.dead = true })},
		{"half", "all engines answer half of all requests with 503, at 30 % load", sick(func(e *engine) { e.refusing = 0.5 })},
		{"stale", "metrics a second old, no coordination, at 80 % load", playStale},
	}
}

func share(n, of int) float64 { return float64(n) / float64(max(1, of)) }

func sum(counts []int) (n int) {
	for _, k := range counts {
		n += k
	}
	return n
}
