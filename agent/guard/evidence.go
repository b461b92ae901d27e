package guard

import (
	"math"
	"slices"
	"time"
)

// totals are the counts of an endpoint.
type totals struct{ observedUs, expectedUs, samples, successes, faults, pushbacks float64 }

// verdict is what the evidence on a member says; NaN: not enough of it.
type verdict struct {
	ratio   float64 // of latency to the profile's
	samples float64 // of that
	latest  float64 // ratio of the last few answers, however old
	errors  float64 // share of faults in answers, 429 and 503 aside

	// The same and the share of 429 and 503 in all answers, from the first answer
	// on: too little for a penalty, enough to see that a peer is no better.
	alikeErrors, alikePushbacks float64
}

// enoughSamples is how many samples are enough for a ratio that is far out; see
// member.step.
const enoughSamples = 3

func (e *Endpoint) totals() totals {
	return totals{
		float64(e.observedUs.Load()), float64(e.expectedUs.Load()), float64(e.samples.Load()),
		float64(e.successes.Load()), float64(e.faults.Load()), float64(e.pushbacks.Load()),
	}
}

const (
	// evidenceMemory is for how long an answer counts, where few come.
	evidenceMemory = 10 * time.Second
	// evidenceSamples is how many answers count at most, where many come.
	evidenceSamples = 20
	// freshSamples is of how many answers the latest ratio is made.
	freshSamples = 4
	// minOverdue is how many requests must wait for a sign at once before their
	// ages count: a single one may just be large.
	minOverdue = 3
)

// observe takes in what came since the last tick.
func (m *member) observe(dt time.Duration) {
	now := m.endpoint.totals()
	f := &m.fresh
	f.observedUs += now.observedUs - m.seen.observedUs
	f.expectedUs += now.expectedUs - m.seen.expectedUs
	f.samples += now.samples - m.seen.samples
	if k := freshSamples / f.samples; k < 1 {
		f.observedUs, f.expectedUs, f.samples = f.observedUs*k, f.expectedUs*k, freshSamples
	}
	keep := math.Exp(-dt.Seconds() / evidenceMemory.Seconds())
	add := func(sum *float64, last *float64, total float64) {
		*sum = *sum*keep + total - *last
		*last = total
	}
	e := &m.evidence
	add(&e.observedUs, &m.seen.observedUs, now.observedUs)
	add(&e.expectedUs, &m.seen.expectedUs, now.expectedUs)
	add(&e.samples, &m.seen.samples, now.samples)
	add(&e.successes, &m.seen.successes, now.successes)
	add(&e.faults, &m.seen.faults, now.faults)
	add(&e.pushbacks, &m.seen.pushbacks, now.pushbacks)
	if f := evidenceSamples / e.samples; f < 1 {
		e.observedUs, e.expectedUs, e.samples = e.observedUs*f, e.expectedUs*f, e.samples*f
	}
	if f := evidenceSamples / (e.successes + e.faults + e.pushbacks); f < 1 {
		e.successes, e.faults, e.pushbacks = e.successes*f, e.faults*f, e.pushbacks*f
	}
}

// judge says what the evidence amounts to.
func (m *member) judge(now time.Time, s *Settings) {
	nan := math.NaN()
	m.judged = verdict{nan, 0, nan, nan, nan, nan}
	if m.fresh.samples >= 1 && m.fresh.expectedUs > 0 {
		m.judged.latest = m.fresh.observedUs / m.fresh.expectedUs
	}
	overdue, age := m.endpoint.overdue(now)
	if overdue < minOverdue {
		overdue, age = 0, 0
	}
	e := &m.evidence
	if n := e.samples + float64(overdue); n >= float64(min(enoughSamples, s.MinSamples)) {
		ratio := 0.0
		if e.expectedUs > 0 {
			ratio = e.observedUs / e.expectedUs
		}
		if r := max(ratio, age); r > 0 {
			m.judged.ratio, m.judged.samples = r, n
		}
	}
	n := e.successes + e.faults
	if n >= float64(s.MinSamples) {
		m.judged.errors = e.faults / n
	}
	if n >= 0.5 {
		m.judged.alikeErrors = e.faults / n
	}
	if n+e.pushbacks >= 0.5 {
		m.judged.alikePushbacks = e.pushbacks / (n + e.pushbacks)
	}
}

// others gives medians of what is known, without one of its values.
type others struct{ sorted []float64 }

func newOthers(members []member, value func(*member) float64) others {
	var o others
	for i := range members {
		if x := value(&members[i]); !math.IsNaN(x) {
			o.sorted = append(o.sorted, x)
		}
	}
	slices.Sort(o.sorted)
	return o
}

// median returns the median without one x, or of all if x is NaN; NaN if
// nothing is left.
func (o others) median(x float64) float64 {
	n := len(o.sorted)
	at := func(i int) float64 { return o.sorted[i] }
	if !math.IsNaN(x) {
		gone, _ := slices.BinarySearch(o.sorted, x)
		n--
		at = func(i int) float64 {
			if i >= gone {
				i++
			}
			return o.sorted[i]
		}
	}
	switch {
	case n <= 0:
		return math.NaN()
	case n%2 == 1:
		return at(n / 2)
	}
	return (at(n/2-1) + at(n/2)) / 2
}
