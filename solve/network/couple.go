package network

import "math"

// coupling solves for the shifts of components that feed each other: an engine
// below a full cap pays the price of the cap, which depends on all engines
// below it. The shifts maximise a concave dual; its gradient is the excess of
// each component and its Hessian a weighted Laplacian, the weight of an arc
// being the growth of its flow with its price.
//
// Each round balances every component in turn, which always gains, and then
// takes a Newton step if that gains too. Components that only feed others are
// eliminated one by one; what is left has one row per full cap.
type coupling struct {
	*polisher
	comps []int // coupled components; those that are fed come last
	fed   int   // index of the first of them
	index []int // of each component in comps, or -1
}

// coupleRounds bounds the rounds; a few are usual.
const coupleRounds = 100

func (p *polisher) newCoupling() *coupling {
	c := &coupling{polisher: p, index: make([]int, len(p.shift))}
	var fed []int
	for i := range p.shift {
		c.index[i] = -1
		feeds := false
		for _, a := range p.out[i] {
			feeds = feeds || p.part[p.arcs[a].head] != 0
		}
		switch {
		case i == 0:
		case len(p.in[i]) > 0:
			fed = append(fed, i)
		case feeds:
			c.comps = append(c.comps, i)
		}
	}
	c.fed = len(c.comps)
	c.comps = append(c.comps, fed...)
	for i, comp := range c.comps {
		c.index[comp] = i
	}
	return c
}

func (c *coupling) solve() {
	for range coupleRounds {
		for _, comp := range c.comps {
			c.shift[comp] = balance(c.shift[comp], func(x float64) (least, most, growth float64) { return c.excess(comp, x) })
		}
		before := c.imbalance()
		if before == 0 || !c.step(before) {
			return
		}
	}
}

// imbalance returns the sum of all excesses without signs.
func (c *coupling) imbalance() (sum float64) {
	for _, comp := range c.comps {
		least, most, _ := c.excess(comp, c.shift[comp])
		sum += max(0, least, -most)
	}
	return sum
}

// step takes the longest of some Newton steps that lowers the imbalance, and
// reports false if another round is of no use.
func (c *coupling) step(before float64) bool {
	delta := c.newton()
	old := make([]float64, len(c.comps))
	for i, comp := range c.comps {
		old[i] = c.shift[comp]
	}
	for part := 1.0; part > 1e-3; part /= 4 {
		for i, comp := range c.comps {
			c.shift[comp] = old[i] + part*delta[i]
		}
		if c.imbalance() < before {
			return true
		}
	}
	for i, comp := range c.comps {
		c.shift[comp] = old[i]
	}
	return true
}

// newton returns the Newton step of every coupled component.
func (c *coupling) newton() []float64 {
	n, m := len(c.comps), len(c.comps)-c.fed
	diagonal, right := make([]float64, n), make([]float64, n)
	links := make([]map[int]float64, c.fed) // weights from each feeding component to fed ones
	rest := make([][]float64, m)            // the Laplacian over the fed ones
	for i := range rest {
		rest[i] = make([]float64, m)
	}
	for i, comp := range c.comps {
		least, most, growth := c.excess(comp, c.shift[comp])
		if least > 0 || most < 0 {
			right[i] = -(least + most) / 2
		}
		diagonal[i] = growth*(1+1e-12) + 1e-12
		if i < c.fed {
			links[i] = make(map[int]float64)
		}
		for _, a := range c.out[comp] {
			to := c.index[c.part[c.arcs[a].head]] - c.fed
			if to < 0 {
				continue
			}
			_, _, g := c.smoothOf(a).load(c.drop(a))
			if i < c.fed {
				links[i][to] += g
			} else {
				rest[i-c.fed][to] -= g
				rest[to][i-c.fed] -= g
			}
		}
	}
	for i := range m {
		rest[i][i] += diagonal[c.fed+i]
	}
	for i, row := range links {
		for to, w := range row {
			right[c.fed+to] += w / diagonal[i] * right[i]
			for other, v := range row {
				rest[to][other] -= w * v / diagonal[i]
			}
		}
	}
	delta := append(make([]float64, c.fed), solveDense(rest, right[c.fed:])...)
	for i, row := range links {
		sum := right[i]
		for to, w := range row {
			sum += w * delta[c.fed+to]
		}
		delta[i] = sum / diagonal[i]
	}
	for i := range delta {
		// Where nothing grows the step is meaningless.
		delta[i] = max(-c.bigPrice, min(c.bigPrice, delta[i]))
	}
	return delta
}

// solveDense solves a x = y for a symmetric positive definite a by elimination;
// both are overwritten.
func solveDense(a [][]float64, y []float64) []float64 {
	for i := range a {
		for j := i + 1; j < len(a); j++ {
			f := a[j][i] / a[i][i]
			if f == 0 || math.IsNaN(f) {
				continue
			}
			for k := i; k < len(a); k++ {
				a[j][k] -= f * a[i][k]
			}
			y[j] -= f * y[i]
		}
	}
	for i := len(a) - 1; i >= 0; i-- {
		for k := i + 1; k < len(a); k++ {
			y[i] -= a[i][k] * y[k]
		}
		y[i] /= a[i][i]
	}
	return y
}
