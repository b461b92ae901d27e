package network

import (
	"context"
	"fmt"
	"testing"

	"github.com/irb-project/irb/solve/fleetgen"
	"github.com/irb-project/irb/solve/model"
)

var sizes = []fleetgen.Config{
	{Sources: 20, Engines: 50, Eligible: 1, Load: 0.75},
	{Sources: 200, Engines: 500, Eligible: 1, Load: 0.75},
	{Sources: 1000, Engines: 1000, Eligible: 0.5, Load: 0.75},
	{Sources: 2000, Engines: 2000, Eligible: 1, Load: 0.75},
	{Sources: 5000, Engines: 10000, Eligible: 0.005, Load: 0.75},
}

func BenchmarkSolve(b *testing.B) {
	for _, c := range sizes {
		b.Run(fmt.Sprintf("%dx%d", c.Sources, c.Engines), func(b *testing.B) {
			benchmark(b, fleetgen.Fleet(c, 1), Options{})
		})
	}
}

// BenchmarkWarm solves from the plan of a demand 5 % apart.
func BenchmarkWarm(b *testing.B) {
	for _, c := range sizes {
		b.Run(fmt.Sprintf("%dx%d", c.Sources, c.Engines), func(b *testing.B) {
			p := fleetgen.Fleet(c, 1)
			was, err := Solve(context.Background(), p, Options{})
			if err != nil {
				b.Fatal(err)
			}
			drift(p, 1)
			benchmark(b, p, Options{Start: was.Flows})
		})
	}
}

func benchmark(b *testing.B, p *model.Problem, opts Options) {
	for b.Loop() {
		s, err := Solve(context.Background(), p, opts)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(s.Iterations), "pivots")
	}
}
