package standin

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/irb-project/irb/solve/profile"
)

// sharing is the profile T(0)/(1-v) with T(0) = 0.1 + 10 x 0.09 = 1 s.
func sharing() profile.Profile {
	return profile.Profile{
		Name: "sharing", PromptTokens: 100, OutputTokens: 10,
		TTFT: profile.Curve{V: []float64{0}, Ms: []float64{100}, PS: true},
		TBOT: profile.Curve{V: []float64{0}, Ms: []float64{90}, PS: true},
	}
}

// table is the h100-70b table of design.md.
func table() profile.Profile {
	v := []float64{0, 0.25, 0.5, 0.75, 0.9, 1}
	return profile.Profile{
		Name: "h100-70b", PromptTokens: 1024, OutputTokens: 256,
		TTFT: profile.Curve{V: v, Ms: []float64{80, 85, 100, 140, 220, 400}},
		TBOT: profile.Curve{V: v, Ms: []float64{12, 13, 15, 18, 22, 30}},
	}
}

func flat() profile.Profile {
	return profile.Profile{
		Name: "flat", PromptTokens: 100, OutputTokens: 10,
		TTFT: profile.Curve{V: []float64{0}, Ms: []float64{100}},
		TBOT: profile.Curve{V: []float64{0}, Ms: []float64{90}},
	}
}

func newStation(p profile.Profile, capacity float64, running, waiting int) *station {
	return &station{curve: newLoadCurve(p, capacity, running), slow: 1, maxRunning: running, maxWaiting: waiting}
}

// size draws a request's size as a multiple of the reference, of mean 1.
type size func(*rand.Rand) float64

func fixed(*rand.Rand) float64         { return 1 }
func exponential(r *rand.Rand) float64 { return r.ExpFloat64() }

// mixed is 0.5 nine times of ten, else 5.5: a squared coefficient of variation
// of 2.25.
func mixed(r *rand.Rand) float64 {
	if r.Float64() < 0.9 {
		return 0.5
	}
	return 5.5
}

// poisson drives the station with count arrivals at rate per second and
// returns the mean latency in s per unit of size, and the mean utilization
// that an observer at random times sees.
func poisson(s *station, p profile.Profile, rate float64, count int, draw size) (total, utilization float64) {
	random := rand.New(rand.NewPCG(1, 2))
	// Fine tokens, so that a size need not be rounded to few of them.
	const fine = 1000
	s.curve.tbot = scaled(s.curve.tbot, p.OutputTokens/fine)
	var jobs, size, observed float64
	for range count {
		x := draw(random)
		size += x
		j := &job{prompt: x, tokens: max(1, int(x*fine))}
		j.progress = func(int, bool) {
			jobs++
			total += j.ended - j.arrived
		}
		s.advance(s.now + random.ExpFloat64()/rate)
		observed += s.utilization() // PASTA: as arrivals see it
		s.add(j)
	}
	s.advance(math.Inf(1))
	if int(jobs) != count {
		panic(fmt.Sprintf("%v of %v jobs ended", jobs, count))
	}
	return total / size, observed / jobs
}

func scaled(x []float64, f float64) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		y[i] = f * x[i]
	}
	return y
}

// With the formula T(0)/(1-v) the mean latency under Poisson arrivals is the
// formula's, whatever the sizes are. capacity 1 is M/G/1-PS.
func TestStationMatchesProcessorSharing(t *testing.T) {
	for _, capacity := range []float64{1, 20} {
		for _, v := range []float64{0.3, 0.8} {
			for name, draw := range map[string]size{"fixed": fixed, "exponential": exponential, "mixed": mixed} {
				p := sharing()
				s := newStation(p, capacity, 500, 0)
				total, utilization := poisson(s, p, v*capacity, 100_000, draw)
				if want := 1 / (1 - v); math.Abs(total-want) > 0.05*want {
					t.Errorf("capacity %v, utilization %v, %s sizes: mean latency is %.4f s, want %.4f", capacity, v, name, total, want)
				}
				if math.Abs(utilization-v) > 0.02 && capacity == 1 {
					t.Errorf("capacity %v, %s sizes: utilization is %.4f, want %v", capacity, name, utilization, v)
				}
			}
		}
	}
}

// With a table the mean latency is that of the birth and death process whose
// death rate with n in progress is n/T(N⁻¹(n-1)), whatever the sizes are; the
// larger the engine, the nearer this is to the table itself.
func TestStationMatchesTable(t *testing.T) {
	p := table()
	for _, test := range []struct{ capacity, nearTable float64 }{{2, 0.3}, {10, 0.08}, {100, 0.02}} {
		for _, v := range []float64{0.25, 0.6, 0.9} {
			s := newStation(p, test.capacity, 10_000, 0)
			want := birthDeath(s.curve, p, v*test.capacity)
			if at := p.ReferenceMs(v) / 1000; math.Abs(want-at) > test.nearTable*at {
				t.Errorf("capacity %v, utilization %v: theory says %.4f s, want within %v of %.4f", test.capacity, v, want, test.nearTable, at)
			}
			for name, draw := range map[string]size{"fixed": fixed, "mixed": mixed} {
				total, utilization := poisson(s, p, v*test.capacity, 30_000, draw)
				if math.Abs(total-want) > 0.04*want {
					t.Errorf("capacity %v, utilization %v, %s sizes: mean latency is %.4f s, want %.4f", test.capacity, v, name, total, want)
				}
				if math.Abs(utilization-v) > 0.03 {
					t.Errorf("capacity %v, %s sizes: utilization is %.4f, want %v", test.capacity, name, utilization, v)
				}
				s = newStation(p, test.capacity, 10_000, 0)
			}
		}
	}
}

// birthDeath returns the mean latency in s by Little's law from the mean
// number in progress, with Poisson arrivals of rate reference requests/s.
func birthDeath(c loadCurve, p profile.Profile, rate float64) float64 {
	weight, sum, mean := 1.0, 1.0, 0.0
	for i := range c.ttft {
		n := float64(i + 1)
		weight *= rate * (c.ttft[i] + p.OutputTokens*c.tbot[i]) / n
		sum += weight
		mean += n * weight
	}
	return mean / sum / rate
}

// In a closed loop of n requests, each followed at once by another, the rate
// is the one Little's law gives, and never above capacity.
func TestStationClosedLoop(t *testing.T) {
	for _, test := range []struct {
		p        profile.Profile
		capacity float64
	}{{sharing(), 3}, {table(), 10}, {flat(), 5}} {
		for _, n := range []int{1, 2, 5, 30, 200} {
			s := newStation(test.p, test.capacity, 1000, 0)
			ended, last := 0, 0.0
			var start func()
			start = func() {
				s.add(&job{prompt: 1, tokens: int(test.p.OutputTokens), progress: func(int, bool) {
					ended++
					last = s.now
					if ended <= 5000-n {
						start()
					}
				}})
			}
			for range n {
				start()
			}
			s.advance(math.Inf(1))
			rate := float64(ended) / last
			v := utilizationAmong(test.p, test.capacity, float64(n-1))
			want := float64(n) / (test.p.ReferenceMs(v) / 1000)
			if v >= 1 {
				want = float64(n) / float64(n-1) * test.capacity
			}
			if math.Abs(rate-want) > 0.01*want {
				t.Errorf("%s, %d in progress: rate is %.4f req/s, want %.4f", test.p.Name, n, rate, want)
			}
		}
	}
}

// Joining and leaving change only the speed from then on.
func TestStationByHand(t *testing.T) {
	// capacity 1: alone 1 s for all, two share at half speed.
	s := newStation(sharing(), 1, 10, 10)
	var log []string
	newJob := func(name string, stepwise bool) *job {
		j := &job{prompt: 1, tokens: 10, stepwise: stepwise}
		j.progress = func(tokens int, done bool) {
			log = append(log, fmt.Sprintf("%s %d %v at %.3f", name, tokens, done, s.now))
		}
		return j
	}
	a, b := newJob("a", false), newJob("b", false)
	s.add(a)
	s.advance(0.55) // a: prefill 0.1, then half its tokens
	s.add(b)
	s.advance(1.15) // 0.6 s at half speed: a has 0.85, b 0.3 done
	s.remove(b)
	s.advance(10) // a ends 0.15 s later
	if want := "[a 10 true at 1.300]"; fmt.Sprint(log) != want {
		t.Errorf("reports are %v, want %v", log, want)
	}
	if a.firstToken != 0.1 || s.running() != 0 {
		t.Errorf("first token at %v with %d running, want 0.1 with 0", a.firstToken, s.running())
	}

	log = nil
	c := newJob("c", true)
	c.tokens = 2
	s.add(c) // at 10
	s.advance(20)
	if want := "[c 1 false at 10.100 c 2 false at 10.190 c 2 true at 10.280]"; fmt.Sprint(log) != want {
		t.Errorf("reports are %v, want %v", log, want)
	}
}

func TestStationQueue(t *testing.T) {
	s := newStation(flat(), 1, 1, 2)
	var ended []int
	jobs := make([]*job, 4)
	for i := range jobs {
		jobs[i] = &job{prompt: 1, tokens: 10, progress: func(int, bool) { ended = append(ended, i) }}
		if got, want := s.add(jobs[i]), i < 3; got != want {
			t.Errorf("job %d: accepted is %v, want %v", i, got, want)
		}
	}
	s.remove(jobs[1])
	s.remove(jobs[1])
	s.advance(1.5)
	if jobs[2].started != 1 {
		t.Errorf("job 2 started at %v s, want 1", jobs[2].started)
	}
	s.remove(jobs[2])
	s.advance(10)
	if fmt.Sprint(ended) != "[0]" || s.running() != 0 || len(s.waiting) != 0 {
		t.Errorf("ended %v, %d running, %d waiting, want [0], 0, 0", ended, s.running(), len(s.waiting))
	}
}

// Half the capacity doubles what is in use, a slow engine takes longer at the
// same utilization.
func TestStationSetSpeed(t *testing.T) {
	p := sharing()
	s := newStation(p, 4, 500, 0)
	s.setSpeed(newLoadCurve(p, 2, 500), 1)
	if total, _ := poisson(s, p, 1.2, 50_000, exponential); math.Abs(total-2.5) > 0.1 {
		t.Errorf("mean latency at half capacity is %.4f s, want 2.5", total)
	}
	s = newStation(p, 4, 500, 0)
	s.add(&job{prompt: 1, tokens: 10, progress: func(int, bool) {}})
	s.setSpeed(s.curve, 3)
	s.advance(100)
	if at, ok := s.next(); ok {
		t.Errorf("next report is at %v s, want none", at)
	}
}
