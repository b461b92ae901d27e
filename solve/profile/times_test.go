package profile

import (
	"math"
	"testing"
)

// Three engines with a third of the load each: three times the delay of one.
func TestTimes(t *testing.T) {
	table := []Curve{{V: []float64{0, 0.5, 1}, Ms: []float64{10, 20, 60}}}
	sharing := []Curve{{V: []float64{0}, Ms: []float64{10}, PS: true}}
	for _, curves := range [][]Curve{table, sharing} {
		one, err := NewSink(100, 90, 0.5, curves, []float64{1})
		if err != nil {
			t.Fatal(err)
		}
		three := one.Times(3)
		if three.Limit != 270 || three.Capacity != 300 {
			t.Errorf("limit %v, capacity %v, want 270 and 300", three.Limit, three.Capacity)
		}
		for _, load := range []float64{0, 10, 49, 51, 80, 90} {
			left, right := one.Marginal(load)
			left3, right3 := three.Marginal(3 * load)
			if math.Abs(three.Value(3*load)-3*one.Value(load)) > 1e-12*three.Value(270) || !same(left, left3) || !same(right, right3) {
				t.Errorf("at %v: value %v, marginals %v and %v; one has %v, %v and %v",
					load, three.Value(3*load), left3, right3, one.Value(load), left, right)
			}
		}
	}
}

func same(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-12*math.Abs(a) }
