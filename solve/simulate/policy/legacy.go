package policy

import "math"

// Legacy is the feedback loop that irb replaces. Each gateway has weights, by
// which it hashes conversations consistently over endpoints; a proportional
// controller nudges the weights by how each endpoint's score compares with the
// fleet's mean:
//
//	score  = mean of TTFT, TBOT and utilization, each over its mean of the fleet
//	weight = weight x (1 - gain (score - 1)), then all scaled to their first sum
//
// TTFT and TBOT are those that the gateway observed, the network included,
// smoothed exponentially; utilization is what engines report.
type Legacy struct {
	base
	gains   Gains
	signals Signals
	weights [][]float64 // by agent and endpoint
	seen    [][]seen
	score   []float64 // of a tick
}

// Gains are the settings of the loop.
type Gains struct {
	Gain      float64 // of the controller, per interval
	Smoothing float64 // part of a new sample in the smoothed value, (0, 1]
	IntervalS float64 // of the controller
}

// LegacyDefaults are the gains without tuning: react at once.
func LegacyDefaults() Gains { return Gains{Gain: 0.5, Smoothing: 0.5, IntervalS: 15} }

// minWeight keeps an endpoint observed, as a part of its first weight;
// maxWeight bounds it.
const minWeight, maxWeight = 0.02, 20

// seen is what gateways observed of an endpoint.
type seen struct {
	ttftSum, tbotSum float64 // of this interval
	ttfts, tbots     float64
	ttft, tbot       float64 // smoothed; 0: nothing yet
	utilization      float64
}

// NewLegacy returns the policy.
func NewLegacy(f *Fleet, seed uint64, s Signals, g Gains) *Legacy {
	p := &Legacy{base: newBase(f, seed), gains: g, signals: s, score: make([]float64, len(f.Endpoints))}
	for range f.Agents {
		w := make([]float64, len(f.Endpoints))
		for e := range w {
			w[e] = f.Endpoints[e].CapacityRPS
		}
		p.weights = append(p.weights, w)
		p.seen = append(p.seen, make([]seen, len(f.Endpoints)))
	}
	return p
}

// Interval implements Policy.
func (p *Legacy) Interval() float64 { return p.gains.IntervalS }

// Route hashes by weighted rendezvous: the endpoint of the least -ln(u)/w.
func (p *Legacy) Route(f *Flight, now float64) (int32, Verdict) {
	key, weights := p.key(f), p.weights[f.Agent]
	return p.choose(f, now, func(e int32) float64 { return -math.Log(hash(key, e)) / weights[e] })
}

// First implements Policy.
func (p *Legacy) First(f *Flight, now float64) {
	s := &p.seen[f.Agent][f.Endpoint]
	s.ttftSum += now - f.SentS
	s.ttfts++
}

// Done implements Policy.
func (p *Legacy) Done(f *Flight, o Outcome, now float64) {
	p.base.Done(f, o, now)
	if s := &p.seen[f.Agent][f.Endpoint]; o == Success && f.Tokens > 0 {
		s.tbotSum += (now - f.FirstS) / f.Tokens
		s.tbots++
	}
}

// Tick moves the weights.
func (p *Legacy) Tick(now float64) error {
	for a := range p.weights {
		p.observe(p.seen[a])
		p.scoreAll(p.seen[a])
		sum, all := 0.0, 0.0
		for e := range p.weights[a] {
			p.weights[a][e] *= max(0.1, 1-p.gains.Gain*(p.score[e]-1))
			sum += p.weights[a][e]
			all += p.fleet.Endpoints[e].CapacityRPS
		}
		for e, w := range p.weights[a] {
			first := p.fleet.Endpoints[e].CapacityRPS
			p.weights[a][e] = min(maxWeight*first, max(minWeight*first, w*all/sum))
		}
	}
	return nil
}

// observe ends the interval of one gateway.
func (p *Legacy) observe(list []seen) {
	smooth := func(old, x float64) float64 {
		if old == 0 {
			return x
		}
		return old + p.gains.Smoothing*(x-old)
	}
	for e := range list {
		s := &list[e]
		if s.ttfts > 0 {
			s.ttft = smooth(s.ttft, s.ttftSum/s.ttfts)
		}
		if s.tbots > 0 {
			s.tbot = smooth(s.tbot, s.tbotSum/s.tbots)
		}
		s.utilization = smooth(s.utilization, p.signals.Load(int32(e)).Utilization)
		s.ttftSum, s.ttfts, s.tbotSum, s.tbots = 0, 0, 0, 0
	}
}

// scoreAll sets the scores; what is not known counts as the mean.
func (p *Legacy) scoreAll(list []seen) {
	for e := range p.score {
		p.score[e] = 0
	}
	for _, value := range []func(*seen) float64{
		func(s *seen) float64 { return s.ttft },
		func(s *seen) float64 { return s.tbot },
		func(s *seen) float64 { return s.utilization },
	} {
		sum, n := 0.0, 0.0
		for e := range list {
			if x := value(&list[e]); x > 0 {
				sum += x
				n++
			}
		}
		for e := range list {
			ratio := 1.0
			if x := value(&list[e]); x > 0 && sum > 0 {
				ratio = x * n / sum
			}
			p.score[e] += ratio / 3
		}
	}
}
