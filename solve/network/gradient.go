package network

import "math"

// stepMatrix is the matrix of a step of cooler.
type stepMatrix struct {
	*cooler
	inverse float64   // of the temperature
	own     []float64 // diagonal but for the squares of flows
	diag    []float64
	alone   []bool // engines that move on their own

	rest, scaled, direction, image []float64 // of the conjugate gradients
}

func newStepMatrix(engines int) stepMatrix {
	v := func() []float64 { return make([]float64, engines) }
	return stepMatrix{own: v(), diag: v(), alone: make([]bool, engines), rest: v(), scaled: v(), direction: v(), image: v()}
}

// ridge keeps the matrix positive, as a part of a mean load.
const ridge = 1e-6

func (a *stepMatrix) set(f *cooler, t float64) {
	a.cooler, a.inverse = f, 1/t
	least := ridge * f.total / float64(len(f.Engines)) * a.inverse
	for e := range a.own {
		chosen := f.load[e] - f.supply[f.engine(int32(e))]
		a.own[e] = f.growth[e] + chosen*a.inverse + least
	}
	copy(a.diag, a.own)
	for i, s := range f.sources {
		by := a.inverse / f.supply[s]
		for j := f.first[i]; j < f.first[i+1]; j++ {
			a.diag[f.col[j]] -= by * f.flow[j] * f.flow[j]
		}
	}
	for e := range a.diag {
		a.diag[e] = max(a.diag[e], least)
	}
}

// solve finds the step that takes excess away, by conjugate gradients. Engines
// that would go beyond far on their own (no load tells how far) go that far.
func (a *stepMatrix) solve(excess, step []float64, far float64) {
	for e, x := range excess {
		a.alone[e] = math.Abs(x) > far*a.diag[e]
		step[e], a.rest[e], a.scaled[e] = 0, 0, 0
		if !a.alone[e] {
			a.rest[e], a.scaled[e] = -x, -x/a.diag[e]
		}
		a.direction[e] = a.scaled[e]
	}
	size := dot(a.rest, a.scaled)
	end := size * gradientAccuracy * gradientAccuracy
	for i := 0; i < gradientSteps && size > end; i++ {
		a.times(a.direction, a.image)
		length := size / dot(a.direction, a.image)
		for e, d := range a.direction {
			if !a.alone[e] {
				step[e] += length * d
				a.rest[e] -= length * a.image[e]
				a.scaled[e] = a.rest[e] / a.diag[e]
			}
		}
		before := size
		size = dot(a.rest, a.scaled)
		for e := range a.direction {
			a.direction[e] = a.scaled[e] + size/before*a.direction[e]
		}
	}
	for e, x := range excess {
		if a.alone[e] {
			step[e] = math.Copysign(far, -x)
		}
	}
}

// times multiplies the matrix with v.
func (a *stepMatrix) times(v, out []float64) {
	for e, x := range v {
		out[e] = a.own[e] * x
	}
	for i, s := range a.sources {
		from, to := a.first[i], a.first[i+1]
		col, flow := a.col[from:to], a.flow[from:to]
		sum := 0.0
		for j, e := range col {
			sum += flow[j] * v[e]
		}
		sum *= a.inverse / a.supply[s]
		for j, e := range col {
			out[e] -= flow[j] * sum
		}
	}
}

func dot(a, b []float64) (sum float64) {
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}
