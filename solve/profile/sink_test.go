package profile

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// delaySink is the single-work delay of a profile: D = (T - T(0))/work.
func delaySink(t testing.TB, capacity, limit float64, ttft, tbot Curve) *Sink {
	t.Helper()
	s, err := NewSink(capacity, limit, 1.0/2048, []Curve{ttft, tbot}, []float64{1, 256})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// randomSinks calls f with sinks of every kind at scales 1e-9 to 1e9.
func randomSinks(t *testing.T, n int, f func(*rand.Rand, *Sink)) {
	rng := rand.New(rand.NewPCG(4, 4))
	pow := func() float64 { return math.Pow(10, 18*rng.Float64()-9) }
	for trial := range n {
		capacity := pow()
		limit := capacity * (0.01 + 0.98*rng.Float64())
		var a, b Curve
		switch trial % 5 {
		case 0: // processor sharing
			a = Curve{V: []float64{0}, Ms: []float64{pow()}, PS: true}
			b = Curve{V: []float64{0}, Ms: []float64{pow()}, PS: true}
		case 1: // flat, then steep
			a = Curve{V: []float64{0, .3, .6}, Ms: []float64{1, 1, 1 + pow()}}
			b = Curve{V: []float64{0}, Ms: []float64{pow()}}
		case 2: // flat throughout
			a = Curve{V: []float64{0, .5}, Ms: []float64{5, 5}}
			b = Curve{V: []float64{0}, Ms: []float64{pow()}}
		case 3: // the limit is a knot within rounding, and so are two curves' knots
			a = Curve{V: []float64{0, .3, limit / capacity}, Ms: []float64{1, 2, 9}}
			b = Curve{V: []float64{0, .1 + .2, math.Nextafter(limit/capacity, 2), 2}, Ms: []float64{1, 2, 9, 99}}
			if limit/capacity <= .31 {
				limit = .5 * capacity
				a.V[2], b.V[2] = .5, math.Nextafter(.5, 2)
			}
		case 4:
			v, y := noisy(rng, 2+rng.IntN(30), .2)
			a = convexFit(v, y)
			v, y = noisy(rng, 2+rng.IntN(30), .2)
			b = convexFit(v, y)
		}
		s := delaySink(t, capacity, limit, a, b)
		if trial%2 == 1 {
			s = s.ExtendTo(limit + 2*capacity*rng.Float64())
		}
		f(rng, s)
	}
}

// prices returns prices worth trying on a sink: at kinks, between, far out.
func prices(rng *rand.Rand, s *Sink) []float64 {
	out := []float64{-1, 0, 1e-200, 1e200}
	for _, y := range append(s.Kinks(), 0, s.Limit, s.Limit*rng.Float64(), s.Limit*1e-9*rng.Float64()) {
		l, r := s.Marginal(y)
		out = append(out, l, l*(1-1e-15), l*(1+1e-15), l*2*rng.Float64())
		if !math.IsInf(r, 0) {
			out = append(out, r, (l+r)/2)
		}
	}
	return out
}

// TestFenchel: F(y) + F*(p) >= p y, with equality if and only if p is in the
// subdifferential of F at y.
func TestFenchel(t *testing.T) {
	randomSinks(t, 2000, func(rng *rand.Rand, s *Sink) {
		loads := append(s.Kinks(), 0, s.Limit, s.Limit*rng.Float64(), s.Limit*1e-6*rng.Float64())
		for _, p := range prices(rng, s) {
			lo, hi := s.Load(p)
			for _, y := range append(loads, lo, hi) {
				value, conj := s.Value(y), s.Conjugate(p)
				slack := value + conj - p*y
				scale := max(value, conj, math.Abs(p*y))
				if slack < -1e-14*scale {
					t.Fatalf("F + F* - p y is %g of %g at y %g, p %g; %+v", slack, scale, y, p, s)
				}
				left, right := s.Marginal(y)
				if y == 0 {
					left = math.Inf(-1)
				}
				if left <= p && p <= right && slack > 1e-13*scale {
					t.Fatalf("slack %g of %g although %g is in [%g, %g]", slack, scale, p, left, right)
				}
				// Apart by 1e-5 of both price and load, the slack must show.
				far := p > right*(1+1e-5) || p < left*(1-1e-5)
				apart := math.Abs(y-max(lo, min(hi, y))) > 1e-5*s.Limit
				if far && apart && !(slack > 0) {
					t.Fatalf("slack %g although %g is outside [%g, %g], y %g, load %g; %+v", slack, p, left, right, y, lo, s)
				}
			}
		}
	})
}

func TestLoadInvertsMarginal(t *testing.T) {
	randomSinks(t, 2000, func(rng *rand.Rand, s *Sink) {
		for _, p := range prices(rng, s) {
			lo, hi := s.Load(p)
			if !(0 <= lo && lo <= hi && hi <= s.Limit) {
				t.Fatalf("Load(%g) is [%g, %g], limit %g", p, lo, hi, s.Limit)
			}
			for _, y := range []float64{lo, hi} {
				left, right := s.Marginal(y)
				if y > 0 && left > p*(1+1e-12) || right < p*(1-1e-12) {
					t.Fatalf("price %g is not in [%g, %g] at its load %g; %+v", p, left, right, y, s)
				}
			}
		}
		// Load is monotone in p; by processor sharing within rounding.
		last, tol := 0.0, 0.0
		if s.ps > 0 {
			tol = 1e-15
		}
		ps := prices(rng, s)
		slices.Sort(ps)
		for _, p := range slices.Compact(ps) {
			lo, hi := s.Load(p)
			if lo < last*(1-tol) {
				t.Fatalf("Load(%g) is %g, below %g of a lower price", p, lo, last)
			}
			last = hi
			if lo == hi {
				continue
			}
			if p != 0 {
				t.Fatalf("Load(%g) is [%g, %g], want one load", p, lo, hi)
			}
		}
	})
}

// TestMarginalMonotone: convex without exception, not only within rounding.
func TestMarginalMonotone(t *testing.T) {
	randomSinks(t, 1000, func(rng *rand.Rand, s *Sink) {
		loads := []float64{0, s.Limit}
		for _, y := range s.Kinks() {
			loads = append(loads, math.Nextafter(y, 0), y, min(s.Limit, math.Nextafter(y, 2*y)))
		}
		for range 20 {
			loads = append(loads, s.Limit*rng.Float64())
		}
		slices.Sort(loads)
		last := 0.0
		for i, y := range slices.Compact(loads) {
			left, right := s.Marginal(y)
			tol := 0.0
			if s.ps > 0 {
				tol = 1e-15 // a quotient, not a sum of rising terms
			}
			if left < last*(1-tol) || right < left {
				t.Fatalf("load %d of %v: marginal [%g, %g] after %g; %+v", i, loads, left, right, last, s)
			}
			last = max(left, min(right, math.MaxFloat64))
			if y == s.Limit {
				break
			}
		}
	})
}

func TestSinkFollowsItsCurves(t *testing.T) {
	randomSinks(t, 500, func(rng *rand.Rand, s *Sink) {
		if s.ps > 0 {
			return
		}
		for _, y := range append(s.Kinks(), s.Limit*rng.Float64()) {
			// F' by central difference agrees with the marginal inside a piece.
			h := 1e-4 * s.Limit
			if slices.ContainsFunc(s.Kinks(), func(k float64) bool { return math.Abs(k-y) < 2*h }) || y < h || y+h > s.Limit {
				continue
			}
			left, _ := s.Marginal(y)
			diff := (s.Value(y+h) - s.Value(y-h)) / (2 * h)
			if math.Abs(left-diff) > 1e-7*left {
				t.Fatalf("marginal %g, difference quotient %g", left, diff)
			}
		}
	})
	for _, v := range []float64{0, .1, .25, .3, .6, .9, .95} {
		s := delaySink(t, 1000, 960, ttft70b, tbot70b)
		want := (ttft70b.At(v) - 80 + 256*(tbot70b.At(v)-12)) / 2048
		if got := s.Delay(1000 * v); math.Abs(got-want) > 1e-14 {
			t.Errorf("delay at %v is %v, want %v", v, got, want)
		}
	}
}

func TestSinkKinks(t *testing.T) {
	s := delaySink(t, 1000, 900, ttft70b, tbot70b)
	if got, want := s.Kinks(), []float64{250, 500, 750}; !slices.Equal(got, want) {
		t.Errorf("kinks %v, want %v: 0.9 is the limit, not a kink", got, want)
	}
	// Points on one line, in decimals, are no kinks.
	line := Curve{V: []float64{0, .1, .2, .3, .4, .5}, Ms: []float64{80, 81.1, 82.2, 83.3, 84.4, 85.5}}
	s, err := NewSink(100, 80, 1, []Curve{line}, []float64{1})
	if err != nil || len(s.Kinks()) != 0 {
		t.Errorf("kinks of a straight line: %v (%v)", s.Kinks(), err)
	}
	// The same knot but for rounding in two curves is one kink.
	a := Curve{V: []float64{0, .3, 1}, Ms: []float64{1, 2, 9}}
	b := Curve{V: []float64{0, .1 + .2, 1}, Ms: []float64{1, 2, 9}}
	s, err = NewSink(100, 80, 1, []Curve{a, b}, []float64{1, 1})
	if err != nil || len(s.Kinks()) != 1 {
		t.Errorf("kinks %v (%v), want one at 30", s.Kinks(), err)
	}
}

func TestFlatSink(t *testing.T) {
	zero := Curve{V: []float64{0}, Ms: []float64{0}, PS: true}
	flat := Curve{V: []float64{0}, Ms: []float64{80}}
	for _, c := range []Curve{zero, flat} {
		s, err := NewSink(100, 90, 1, []Curve{c}, []float64{1})
		if err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct{ p, lo, hi float64 }{{-1, 0, 0}, {0, 0, 90}, {1e-9, 90, 90}} {
			if lo, hi := s.Load(tc.p); lo != tc.lo || hi != tc.hi {
				t.Errorf("Load(%v) is [%v, %v], want [%v, %v]", tc.p, lo, hi, tc.lo, tc.hi)
			}
		}
		if left, right := s.Marginal(90); left != 0 || !math.IsInf(right, 1) {
			t.Errorf("marginal at the limit is [%v, %v], want [0, +Inf]", left, right)
		}
		if got := s.Conjugate(2); got != 180 {
			t.Errorf("F*(2) is %v, want 180", got)
		}
	}
}

func TestNewSinkRefuses(t *testing.T) {
	ps := Curve{V: []float64{0}, Ms: []float64{1}, PS: true}
	for _, tc := range []struct {
		capacity, limit float64
		curves          []Curve
		want            string
	}{
		{0, 1, []Curve{ttft70b}, "profile: capacity is 0, limit is 1, want finite numbers > 0"},
		{1, math.NaN(), []Curve{ttft70b}, "profile: capacity is 1, limit is NaN, want finite numbers > 0"},
		{1, 1, []Curve{ps}, "profile: processor sharing up to utilization 1, want < 1"},
		{1, .5, []Curve{ps, ttft70b}, "profile: processor sharing and a table in one delay, want one kind"},
	} {
		_, err := NewSink(tc.capacity, tc.limit, 1, tc.curves, []float64{1, 1})
		if err == nil || err.Error() != tc.want {
			t.Errorf("got %v, want %s", err, tc.want)
		}
	}
}

func TestSinkAllocatesNothing(t *testing.T) {
	ps := Curve{V: []float64{0}, Ms: []float64{1}, PS: true}
	for _, s := range []*Sink{delaySink(t, 1000, 900, ttft70b, tbot70b), delaySink(t, 1000, 900, ps, ps)} {
		if n := testing.AllocsPerRun(100, func() {
			l, _ := s.Marginal(400)
			lo, _ := s.Load(l)
			_ = s.Value(lo) + s.Conjugate(l)
		}); n != 0 {
			t.Errorf("%v allocations, want 0", n)
		}
	}
}

func BenchmarkSinkLoad(b *testing.B) {
	s := delaySink(b, 1000, 900, ttft70b, tbot70b)
	top, _ := s.Marginal(900)
	i := 0
	for b.Loop() {
		s.Load(top * float64(i&1023) / 1024)
		i++
	}
}
