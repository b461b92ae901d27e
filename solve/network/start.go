package network

import (
	"math"

	"github.com/irb-project/irb/solve/chunk"
)

// The start finds prices of engines near the optimum. It replaces the cheapest
// engine of each source by a soft minimum of temperature t: source s splits
// its supply over engines in proportion to exp(-(cost+price)/t). Steps of
// Sinkhorn's kind then set each engine's price to where the load that its
// marginal asks for meets what it would get, other prices equal. The error of
// the prices is about proportional to t; so each halving of t starts from the
// extrapolation p(t/2) = p(t) + (p(t) - p(2t))/2, and the end is p(0).
const (
	hottest      = 0.3 // in mean costs
	coldest      = 0.0003
	coldestGap   = 5 // the same over the number of engines: a start for few is not worth more
	stepsPerHeat = 2
	// Each step asks a sample of the sources, another one each time. The
	// colder it is the fewer sources matter for an engine, and the more must
	// be asked: sampleRows at the hottest, and pairsPerEngine pairs at least.
	sampleRows     = 32
	pairsPerEngine = 20
	// No colder than what this many pairs per node pay for: pivots are the
	// cheaper way on when rows are long.
	pairsPerNode = 300
)

// softener holds the state of the start.
type softener struct {
	*program
	prices []float64
	total  float64 // supply of all sources
	asked  int     // pairs asked so far
	load   []float64
	parts  [][]float64 // loads per chunk
}

// startPrices returns prices of engines near the optimum.
func (p *program) startPrices() []float64 {
	f := &softener{program: p, prices: make([]float64, len(p.Engines)),
		load: make([]float64, len(p.Engines)), parts: make([][]float64, chunk.Count)}
	for c := range f.parts {
		f.parts[c] = make([]float64, len(p.Engines))
	}
	for _, s := range p.supply {
		f.total += max(0, s)
	}
	f.level(f.prices, f.total)
	var before, hotter []float64
	step := 0
	budget := pairsPerNode * (len(p.Sources) + len(p.Engines))
	cold := max(coldest, min(hottest/2, coldestGap/float64(len(p.Engines))))
	if p.isCool() {
		cold = max(cold, warmest/2) // cool.go goes on
	}
	for heat := hottest; heat > cold && f.asked < budget; heat /= 2 {
		t := heat * p.typical
		before = append(before[:0], f.prices...)
		if hotter != nil {
			for e := range f.prices {
				f.prices[e] += (f.prices[e] - hotter[e]) / 2
			}
		}
		hotter = append(hotter[:0], before...)
		for range stepsPerHeat {
			f.spread(t, heat, step)
			f.meet(t)
			f.level(f.prices, f.total)
			step++
		}
	}
	for e := range f.prices {
		f.prices[e] += f.prices[e] - hotter[e]
	}
	f.level(f.prices, f.total)
	return f.prices
}

// spread computes the loads that the soft choices of sources make.
func (f *softener) spread(t, heat float64, step int) {
	rows := max(int(sampleRows*hottest/heat), pairsPerEngine*len(f.Engines)*len(f.Sources)/max(1, f.Pairs()))
	stride := max(1, len(f.Sources)/rows)
	sources := (len(f.Sources) - step%stride + stride - 1) / stride
	row := make([]int, sources+1)
	for i := range sources {
		s := step%stride + i*stride
		row[i+1] = row[i] + f.Row[s+1] - f.Row[s]
	}
	f.asked += row[sources]
	chunk.Each(row, func(c, from, to int) {
		clear(f.parts[c])
		var price []float64
		for i := from; i < to; i++ {
			price = f.choose(step%stride+i*stride, t, price, f.parts[c])
		}
	})
	clear(f.load)
	sum := 0.0
	for _, part := range f.parts {
		for e, y := range part {
			f.load[e] += y
			sum += y
		}
	}
	if sum > 0 {
		for e := range f.load {
			f.load[e] *= f.total / sum
		}
	}
}

// choose adds the soft choice of source s to loads; price is scratch.
func (f *softener) choose(s int, t float64, price, load []float64) []float64 {
	col, cost, scale := f.Col[f.Row[s]:f.Row[s+1]], f.CostMs[f.Row[s]:f.Row[s+1]], f.perWork[s]
	if f.supply[s] <= 0 || len(col) == 0 {
		return price
	}
	price = append(price[:0], cost...)
	least := math.Inf(1)
	for i, e := range col {
		v := price[i]*scale + f.prices[e]
		price[i] = v
		least = min(least, v)
	}
	sum, inverse := 0.0, 1/t
	for i, v := range price {
		price[i] = softExp((v - least) * inverse)
		sum += price[i]
	}
	part := f.supply[s] / sum
	for i, e := range col {
		load[e] += price[i] * part
	}
	return price
}

// softReach is beyond how many temperatures a choice no longer counts.
const softReach = 30

// softExp returns exp(-x), within 1e-5 relative; far from 0 too, where it
// tells how much cheaper an engine must become to be chosen.
func softExp(x float64) float64 {
	if x > softReach {
		return 0
	}
	y := x * -math.Log2E
	k := math.Floor(y)
	f := y - k
	return (1 + f*(0.69315307+f*(0.24015361+f*(0.05582631+f*0.00898934)))) * math.Float64frombits(uint64(int(k)+1023)<<52)
}

// meet moves the price p of each engine to the q at which the load that it
// asks for is what it would get: F'^-1(q) = load exp(-(q-p)/t).
func (f *softener) meet(t float64) {
	for e, sink := range f.sinks {
		if sink != nil {
			f.prices[e] = sink.meet(f.prices[e], f.load[e], t)
		}
	}
}

// meet solves log F'^-1(q) = log y - (q-p)/t for q by Newton steps inside a
// bracket, to a hundredth of t.
func (c *smooth) meet(p, y, t float64) float64 {
	lo, hi := p-softReach*t, p+softReach*t
	if y <= 0 {
		return p // not near any source: nothing tells how far
	}
	logY := math.Log(y)
	q := p
	for range meetSteps {
		load, _, growth := c.load(q)
		h, slope := math.Inf(-1), 1.0
		if load > 0 {
			h, slope = math.Log(load)-logY+(q-p)/t, growth/load+1/t
		}
		if h > 0 {
			hi = q
		} else {
			lo = q
		}
		next := q - h/slope
		if !(next > lo && next < hi) {
			next = lo + (hi-lo)/2
		}
		if math.Abs(next-q) < 0.01*t {
			return next
		}
		q = next
	}
	return q
}

// meetSteps is more than halving a bracket of softReach temperatures takes.
const meetSteps = 64

// level shifts prices of all engines by what makes their loads together take a
// total.
func (p *program) level(prices []float64, total float64) {
	shift := balance(0, func(x float64) (least, most, growth float64) {
		least, most = -total*(1+1e-9), -total*(1-1e-9)
		for e, sink := range p.sinks {
			if sink != nil {
				lo, hi, g := sink.load(prices[e] + x)
				least, most, growth = least+lo, most+hi, growth+g
			}
		}
		return least, most, growth
	})
	for e := range prices {
		prices[e] += shift
	}
}
