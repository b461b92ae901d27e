package model

// Without returns the problem without one engine, in which what can no longer
// be served is shed, and for each of its pairs the pair of p that it was.
// Sources that lose their last engine stay, with no pair.
func (p *Problem) Without(engine int) (reduced *Problem, pairOf []int) {
	r := *p
	r.Shed = true
	r.Row = make([]int, 1, len(p.Row))
	r.Col, r.CostMs, r.Lower, r.Upper, r.Stay, r.StayPenaltyMs = nil, nil, nil, nil, nil, nil
	for s := range p.Sources {
		for k := p.Row[s]; k < p.Row[s+1]; k++ {
			if p.Col[k] != int32(engine) {
				pairOf = append(pairOf, k)
			}
		}
		r.Row = append(r.Row, len(pairOf))
	}
	r.Col = make([]int32, len(pairOf))
	for i, k := range pairOf {
		r.Col[i] = p.Col[k]
	}
	pick := func(from []float64) []float64 {
		if from == nil {
			return nil
		}
		to := make([]float64, len(pairOf))
		for i, k := range pairOf {
			to[i] = from[k]
		}
		return to
	}
	r.CostMs, r.Upper = pick(p.CostMs), pick(p.Upper)
	r.Stay, r.StayPenaltyMs = pick(p.Stay), pick(p.StayPenaltyMs)
	r.Lower = pick(p.Lower)
	r.Groups = make([]Group, len(p.Groups))
	for i, g := range p.Groups {
		r.Groups[i] = g
		r.Groups[i].Engines = without(g.Engines, int32(engine))
	}
	r.Caps = make([]WorkCap, len(p.Caps))
	for i, c := range p.Caps {
		r.Caps[i] = c
		r.Caps[i].Engines = without(c.Engines, int32(engine))
	}
	return &r, pairOf
}

func without(engines []int32, engine int32) []int32 {
	out := make([]int32, 0, len(engines))
	for _, e := range engines {
		if e != engine {
			out = append(out, e)
		}
	}
	return out
}
