package interior

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/irb-project/irb/solve/rows/rowstest"
)

// Split work at the sizes of the solver's table: three requests sizes apart by
// a factor of e, three quarters of what the engines may take.
func BenchmarkSplit(b *testing.B) {
	for _, size := range [][2]int{{20, 50}, {200, 500}, {500, 1000}} {
		p := rowstest.Problem(rowstest.Shape{Sources: size[0], Engines: size[1], Load: 0.75, Split: true}, rand.New(rand.NewPCG(1, 1)))
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			for b.Loop() {
				sol, err := Solve(context.Background(), p)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(sol.Iterations), "steps/op")
			}
		})
	}
}
