package profile

import (
	"math"
	"testing"
)

var (
	// The table of design.md.
	ttft70b = Curve{V: []float64{0, .25, .5, .75, .9, 1}, Ms: []float64{80, 85, 100, 140, 220, 400}}
	tbot70b = Curve{V: []float64{0, .25, .5, .75, .9, 1}, Ms: []float64{12, 13, 15, 18, 22, 30}}
)

func TestCurveAt(t *testing.T) {
	flat := Curve{V: []float64{0}, Ms: []float64{7}}
	ps := Curve{V: []float64{0}, Ms: []float64{10}, PS: true}
	for _, tc := range []struct {
		c       Curve
		v, want float64
	}{
		{ttft70b, 0, 80}, {ttft70b, .25, 85}, {ttft70b, .375, 92.5}, {ttft70b, 1, 400},
		{ttft70b, 1.5, 1300}, // the last slope, 1800 per unit, goes on
		{flat, 0, 7}, {flat, 3, 7},
		{ps, 0, 10}, {ps, .5, 20}, {ps, 1, math.Inf(1)}, {ps, 2, math.Inf(1)},
	} {
		if got := tc.c.At(tc.v); math.Abs(got-tc.want) > 1e-12*tc.want {
			t.Errorf("At(%v) of %v is %v, want %v", tc.v, tc.c, got, tc.want)
		}
	}
}

func TestCurveMaxUtilization(t *testing.T) {
	inf := math.Inf(1)
	flatThenUp := Curve{V: []float64{0, .5, 1}, Ms: []float64{10, 10, 20}}
	upThenFlatEnd := Curve{V: []float64{0, 1}, Ms: []float64{10, 10}}
	ps := Curve{V: []float64{0}, Ms: []float64{10}, PS: true}
	for _, tc := range []struct {
		name        string
		c           Curve
		limit, want float64
	}{
		{"below idle", ttft70b, 79, 0},
		{"at idle", ttft70b, 80, 0},
		{"at a point", ttft70b, 140, .75},
		{"between points", ttft70b, 180, .825},
		{"beyond the table", ttft70b, 1300, 1.5},
		{"at the flat part", flatThenUp, 10, .5},
		{"flat for ever", upThenFlatEnd, 10, inf},
		{"one point", Curve{V: []float64{0}, Ms: []float64{10}}, 10, inf},
		{"one point, too slow", Curve{V: []float64{0}, Ms: []float64{10}}, 9, 0},
		{"ps", ps, 40, .75},
		{"ps at idle", ps, 10, 0},
		{"ps too slow", ps, 9, 0},
	} {
		got := tc.c.MaxUtilization(tc.limit)
		if got != tc.want && math.Abs(got-tc.want) > 1e-15 {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
		if got > 0 && !math.IsInf(got, 0) {
			if at := tc.c.At(got); math.Abs(at-tc.limit) > 1e-12*tc.limit {
				t.Errorf("%s: latency there is %v, want the limit %v", tc.name, at, tc.limit)
			}
		}
	}
}
