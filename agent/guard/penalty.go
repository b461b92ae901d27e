package guard

import (
	"fmt"
	"math"
	"time"
)

// penalty is the part of its keys that an endpoint loses for being worse than
// its peers. Steps down are large and quick, the way up is slow, and both need
// no more than time: without evidence a penalty ends.
type penalty struct {
	lost     float64 // 0: none, at most 1-minWeight
	stepped  time.Time
	until    time.Time // holds until then, unless the endpoint is seen well
	ended    time.Time // when the last one was over
	relapses int
	rising   bool
	bad      time.Time // since when it is worse than its peers; zero: it is not
	badAt    float64   // samples that its peers had then
	why      string
	slow     bool // for its latency, not for faults
}

const (
	// minWeight is left to an endpoint however slow it is: what comes there
	// shows when it is well again.
	minWeight = 0.002
	// patience is how long an endpoint must be worse than its peers before the
	// first step: what hits all of them shows on one first. In that time each
	// peer must have shown itself a few times on average.
	patience = 400 * time.Millisecond
	// stepInterval is the time between two steps down.
	stepInterval = 200 * time.Millisecond
	// A step down leaves between a twentieth and a half: the square of the bound
	// over what was seen.
	smallestStep, largestStep = 0.5, 0.05

	// A penalty without evidence holds for holdBase, longer each time that one
	// follows within holdMemory of the last.
	holdBase, holdMax = 4 * time.Second, 8 * time.Second
	holdMemory        = time.Minute

	// recovered is the part of the outlier bound below which an endpoint is seen
	// well; between the two nothing changes.
	recovered = 0.75

	// minErrors is the share of faults below which none is an outlier.
	minErrors = 0.1
)

func (p *penalty) weight() float64 { return 1 - p.lost }

// comparison is what the peers of a member show, without itself.
type comparison struct {
	ratio, errors float64 // medians; NaN if there is nothing to compare with
	known         int     // peers that the ratio is of
	samples       float64 // that they ever had
}

// step moves the penalty of a member by what its peers show. It returns true if
// it was the worse for what was seen, which is used up by that.
//
// The bound of the ratio is OutlierFactor times the median of the peers; the
// fewer the samples, the farther out it must be: n < MinSamples raise the bound
// to MinSamples / n times as much.
func (m *member) step(now time.Time, dt time.Duration, peers comparison, s *Settings) bool {
	p := &m.penalty
	factor, why := 1.0, ""
	well, slow := false, false
	if bound := max(1, s.OutlierFactor*peers.ratio); !math.IsNaN(peers.ratio) && !math.IsNaN(m.judged.ratio) {
		few := max(1, float64(s.MinSamples)/m.judged.samples)
		if m.judged.ratio > few*bound && !m.busy {
			factor, slow = math.Pow(bound/m.judged.ratio, 2), true
			why = fmt.Sprintf("latency is %.1f times the profile's, that of its peers %.1f times", m.judged.ratio, peers.ratio)
		}
		well = m.judged.ratio <= max(1, recovered*bound)
	}
	if bound := max(minErrors, s.OutlierFactor*peers.errors); !math.IsNaN(peers.errors) && !math.IsNaN(m.judged.errors) {
		if m.judged.errors > bound {
			factor, slow = min(factor, 1-m.judged.errors), false
			why = fmt.Sprintf("%.0f %% of its answers are faults, of those of its peers %.0f %%", 100*m.judged.errors, 100*peers.errors)
			well = false
		}
	}
	if factor == 1 {
		p.bad = time.Time{}
	} else if p.bad.IsZero() {
		p.bad, p.badAt = now, peers.samples
	}
	switch {
	case factor < 1:
		first := p.lost == 0
		if now.Sub(p.stepped) < stepInterval || first && (now.Sub(p.bad) < patience || peers.samples-p.badAt < enoughSamples*float64(peers.known)) {
			return false
		}
		p.down(now, factor, why)
		p.slow = slow
		if p.weight() <= minWeight { // only what is sent from now on can make it last
			later(&m.endpoint.countFrom, now.UnixNano())
		}
		return true
	case p.lost > 0 && (well || !now.Before(p.until)):
		if !p.rising { // what was sent while it was sick says nothing about now
			later(&m.endpoint.countFrom, now.UnixNano())
			m.evidence = totals{}
		}
		p.up(now, dt)
	}
	return false
}

func (p *penalty) down(now time.Time, factor float64, why string) {
	if p.lost == 0 || p.rising {
		if now.Sub(p.ended) < holdMemory || p.rising {
			p.relapses++
		} else {
			p.relapses = 0
		}
	}
	weight := max(minWeight, p.weight()*max(largestStep, min(smallestStep, factor)))
	p.lost, p.stepped, p.rising, p.why = 1-weight, now, false, why
	hold := min(holdMax, holdBase<<min(p.relapses, 8))
	if until := now.Add(hold); until.After(p.until) {
		p.until = until
	}
}

func (p *penalty) up(now time.Time, dt time.Duration) {
	weight := max(startWeight, p.weight()*math.Pow(growth, dt.Seconds()))
	p.rising = true
	p.lost = 1 - weight
	if weight >= 1 {
		p.lost, p.rising, p.ended, p.until = 0, false, now, time.Time{}
	}
}
