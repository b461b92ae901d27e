package certify

import "math"

// sum is a compensated sum (Neumaier 1974): its error is that of one rounding,
// not of one per term.
type sum struct{ high, low float64 }

func (s *sum) add(x float64) {
	t := s.high + x
	if math.Abs(s.high) >= math.Abs(x) {
		s.low += (s.high - t) + x
	} else {
		s.low += (x - t) + s.high
	}
	s.high = t
}

func (s *sum) merge(o sum) {
	s.add(o.high)
	s.add(o.low)
}

func (s *sum) value() float64 { return s.high + s.low }
