package virtual

import (
	"time"

	"github.com/irb-project/irb/agent/guard"
)

// sickEngine is the one that something befalls.
func (s *sim) sickEngine() *engine { return s.engines[len(s.table.Classes()[0].Source.Weights)/2] }

// elsewhere returns the part of an engine's keys whose requests went elsewhere
// at first, and how many of those of all other engines did.
func (s *sim) elsewhere(e *engine) (its float64, others int) {
	return share(s.moved[e.number], s.owned[e.number]), sum(s.moved) - s.moved[e.number]
}

// fast says whether there are so many requests that two seconds say something.
func (s Setup) fast() bool { return s.RPS >= 100 }

func playSlow(setup Setup) []Figure {
	s := newSim(setup, setup.of(0.6))
	s.constant(setup.RPS)
	s.run(20)
	e := s.sickEngine()
	e.slow = 10
	s.run(2)
	s.clear()
	s.run(2)
	soon, others := s.elsewhere(e)
	s.run(6)
	s.clear()
	s.run(10)
	later, more := s.elsewhere(e)
	lost := s.failed + s.shed
	e.slow = 1
	s.run(30)
	s.clear()
	s.run(10)
	back, rest := s.elsewhere(e)
	list := []Figure{
		shown("its keys elsewhere, 2 to 4 s after", soon, "%"), shown("its keys elsewhere, 10 to 20 s after", later, "%"),
		shown("requests lost, 10 to 20 s after", float64(lost), ""),
	}
	if setup.fast() && !setup.OneEngine {
		list[0].Want, list[0].Than = ">=", 0.99
	}
	if perAgent := setup.RPS / float64(setup.Agents) / float64(len(s.table.Classes()[0].Source.Weights)); perAgent >= 1 {
		list[1].Want, list[1].Than = ">=", 0.9 // fewer requests say less
		if !setup.OneEngine {                  // what fallbacks may not absorb in bunches is refused
			list[2].Want = "<="
		}
	}
	return append(list,
		atMost("requests of other engines moved", float64(others+more+rest), 0, ""),
		atMost("its keys elsewhere, 30 s after recovery", back, 0.01, "%"))
}

func playDead(setup Setup) []Figure {
	s := newSim(setup, setup.of(0.5))
	s.constant(setup.RPS)
	s.run(20)
	e := s.sickEngine()
	streams := 0
	for _, r := range e.running {
		if r.streams {
			streams++
		}
	}
	s.clear()
	e.die()
	s.run(20)
	lost, broken := s.failed+s.shed, s.broken
	fallback := share(s.first[len(s.first)-2], sum(s.first))
	e.dead = false
	s.run(1.5 * guard.Defaults().EjectionMax.Seconds())
	s.clear()
	s.run(10)
	back, _ := s.elsewhere(e)
	list := []Figure{
		atMost("streams that did not end visibly", float64(streams-broken), 0, ""),
		atMost("requests not begun that were lost", float64(lost), 0, ""),
		atMost("its keys elsewhere, 45 s after it is back", back, 0.01, "%"),
	}
	if setup.OneEngine { // the first may absorb half, the second seven tenths
		list = append(list, atMost("of all that the first fallback gets", fallback, 0.75, "%"))
	}
	return list
}

func playStorm(setup Setup) []Figure {
	upstream := func(noBudget bool) float64 {
		s := newSim(setup, setup.of(0.9))
		s.constant(setup.RPS)
		s.noBudget = noBudget
		s.run(20)
		s.clear()
		for _, e := range s.engines {
			e.refusing = 0.5
		}
		s.run(30)
		return share(s.upstream, s.offered-s.shed)
	}
	return []Figure{
		atMost("sent to engines, of what is let in", upstream(false), 1.1, "x"),
		shown("the same without a retry budget", upstream(true), "x"),
	}
}

// sick plays what befalls all engines alike: that is no reason to prefer one.
func sick(befall func(*engine)) func(Setup) []Figure {
	return func(setup Setup) []Figure {
		s := newSim(setup, setup.of(0.3))
		s.constant(setup.RPS)
		s.run(20)
		for _, e := range s.engines {
			befall(e)
		}
		s.run(5)
		s.clear()
		marks := 0
		s.every(time.Second, 0, func() { marks = max(marks, s.marks()) })
		s.run(20)
		list := []Figure{
			shown("endpoints with less than planned", float64(marks), ""),
			shown("first attempts that leave the plan", share(sum(s.moved), sum(s.owned)), "%"),
		}
		if !setup.OneEngine { // fallbacks without traffic are not known to be sick too
			list[0].Want = "<="
			if s.answered > 0 { // who is not known to be dead is worth a try
				list[1].Want, list[1].Than = "<=", 0.05
			}
		}
		return list
	}
}

// marks counts endpoints that any agent gives less than planned.
func (s *sim) marks() (n int) {
	for _, a := range s.agents {
		for _, v := range a.guard.Views(s.now) {
			for _, w := range v.Weights {
				if w < 1 {
					n++
				}
			}
		}
	}
	return n
}
