package network

import (
	"context"
	"fmt"
	"testing"

	"github.com/irb-project/irb/solve/fleetgen"
)

func BenchmarkSolve(b *testing.B) {
	for _, c := range []fleetgen.Config{
		{Sources: 20, Engines: 50, Eligible: 1, Load: 0.75},
		{Sources: 200, Engines: 500, Eligible: 1, Load: 0.75},
		{Sources: 1000, Engines: 1000, Eligible: 0.5, Load: 0.75},
		{Sources: 2000, Engines: 2000, Eligible: 1, Load: 0.75},
		{Sources: 5000, Engines: 10000, Eligible: 0.005, Load: 0.75},
	} {
		b.Run(fmt.Sprintf("%dx%d", c.Sources, c.Engines), func(b *testing.B) {
			p := fleetgen.Fleet(c, 1)
			for b.Loop() {
				s, err := Solve(context.Background(), p, Options{})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(s.Iterations), "pivots")
			}
		})
	}
}
