package virtual

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// tested says whether a setup is worth its time in a test: of the fast ones those
// with wrong profiles, which are harder, and of fast overloads one with two
// agents. The others are in the table that examples/scenarios prints.
func tested(scenario string, s Setup) bool {
	switch {
	case !s.fast():
		return true
	case raceDetector || testing.Short() || !s.WrongProfiles:
		return false
	case strings.HasPrefix(scenario, "overload"):
		return scenario == "overload5" && s.Agents == 2
	}
	return true
}

// TestAsWanted: what must be seen of the guards.
func TestAsWanted(t *testing.T) {
	for _, s := range Scenarios() {
		for _, setup := range Setups(1) {
			if !tested(s.Name, setup) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%+v", s.Name, setup), func(t *testing.T) {
				t.Parallel()
				check(t, s.Play(setup))
			})
		}
	}
}

// TestAnySeed: the first detections do not hang on the traffic of one seed.
func TestAnySeed(t *testing.T) {
	if raceDetector || testing.Short() {
		t.Skip("many requests in one goroutine")
	}
	for seed := uint64(10); seed < 13; seed++ {
		check(t, playSlow(Setup{2, 500, false, true, seed}))
		check(t, playSlow(Setup{8, 20, true, true, seed}))
		check(t, playDead(Setup{8, 20, false, false, seed}))
	}
}

func check(t *testing.T, figures []Figure) {
	t.Helper()
	for _, f := range figures {
		if math.IsNaN(f.Got) || !f.Holds() {
			t.Errorf("%s: %s, want %s", f.Name, f.Measured(), f.Wanted())
		}
	}
}

// TestSameSeedSameFigures: nothing hangs on the machine.
func TestSameSeedSameFigures(t *testing.T) {
	setup := Setup{2, 20, false, true, 7}
	for _, s := range Scenarios() {
		if first, second := s.Play(setup), s.Play(setup); !slices.Equal(first, second) {
			t.Errorf("%s: %v, then %v", s.Name, first, second)
		}
	}
}

// TestRivalsDoWorse: without a budget half of all answers being 503 makes
// upstream load 1 + 1/2 + 1/4 of what is let in; the rival of playStale swings.
// The scenarios would not see a guard that did nothing if these were not so.
func TestRivalsDoWorse(t *testing.T) {
	setup := Setup{2, 20, false, false, 3}
	if without := playStorm(setup)[1].Got; without < 1.6 || without > 1.8 {
		t.Errorf("without a budget %v is sent of what is let in, want about 1.75", without)
	}
	if swing := playStale(setup)[1].Got; swing < 0.05 {
		t.Errorf("weights by reported room swing by %v, want above 0.05", swing)
	}
}

func TestFigures(t *testing.T) {
	for _, test := range []struct {
		figure           Figure
		measured, wanted string
		holds            bool
	}{
		{atMost("", 0.051, 0.05, "%"), "5.1%", "<= 5%", false},
		{atLeast("", 0.99, 0.99, "%"), "99%", ">= 99%", true},
		{atMost("", 0, 0, ""), "0", "0", true},
		{shown("", 12345, ""), "12345", "", true},
		{atMost("", 1.125, 1.1, "x"), "1.12x", "<= 1.1x", false},
	} {
		if f := test.figure; f.Measured() != test.measured || f.Wanted() != test.wanted || f.Holds() != test.holds {
			t.Errorf("%+v: measured %q, wanted %q, holds %v", f, f.Measured(), f.Wanted(), f.Holds())
		}
	}
}
