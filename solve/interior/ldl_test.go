package interior

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A Theta A' x = b for random sparse A, against a product by hand.
func TestNormalSolves(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		rows, columns := 1+rng.IntN(30), 60+rng.IntN(60)
		q := newQP(rows)
		theta := make([]float64, columns)
		for j := range columns {
			q.addVariable(0, 0, 1)
			theta[j] = math.Exp(3 * rng.NormFloat64())
			picked := rng.Perm(rows)[:min(rows, 1+rng.IntN(3))]
			if j < rows { // full rank
				picked = []int{j}
			}
			for _, i := range picked {
				q.addEntry(int32(i), rng.NormFloat64()+0.1)
			}
		}
		m := newNormal(rows, q.start, q.index)
		for range 2 { // the analysis serves again
			m.assemble(q.start, q.entries, theta)
			m.factor(1e-14)
			want := make([]float64, rows)
			for i := range want {
				want[i] = rng.NormFloat64()
			}
			b := make([]float64, rows)
			for j := range columns {
				sum := q.dot(j, want) * theta[j]
				for p := q.start[j]; p < q.start[j+1]; p++ {
					b[q.index[p]] += q.entries[p] * sum
				}
			}
			m.solve(b)
			for i := range b {
				if math.Abs(b[i]-want[i]) > 1e-6*(1+math.Abs(want[i])) {
					t.Fatalf("seed %d: x[%d] = %g, want %g", seed, i, b[i], want[i])
				}
			}
		}
	}
}

// A dependent row gets some solution, not a NaN.
func TestNormalSurvivesDependentRows(t *testing.T) {
	q := newQP(3) // row 2 repeats row 0, and row 1 is empty
	q.addVariable(0, 0, 1)
	q.addEntry(0, 1)
	q.addEntry(2, 1)
	m := newNormal(3, q.start, q.index)
	m.assemble(q.start, q.entries, []float64{2})
	m.factor(1e-14)
	b := []float64{2, 0, 2}
	m.solve(b)
	if got := 2 * (b[0] + b[2]); math.Abs(got-2) > 1e-6 || b[1] != 0 {
		t.Errorf("x = %v, A Theta A' x = %v on rows 0 and 2, want 2", b, got)
	}
}

// On a tree no elimination order of least degree fills anything in.
func TestMinimumDegreeOnTree(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	const n = 200
	q := newQP(n)
	for i := 1; i < n; i++ {
		q.addVariable(0, 0, 1)
		q.addEntry(int32(i), 1)
		q.addEntry(int32(rng.IntN(i)), 1)
	}
	m := newNormal(n, q.start, q.index)
	if got := len(m.lIndex); got != n-1 {
		t.Errorf("factor of a tree of %d nodes has %d entries, want %d", n, got, n-1)
	}
	order := slices.Clone(m.perm)
	slices.Sort(order)
	for i := range order {
		if order[i] != int32(i) {
			t.Fatalf("order misses row %d", i)
		}
	}
}

func TestSmallest(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		x := make([]float64, 1+rng.IntN(20))
		for i := range x {
			x[i] = float64(rng.IntN(10))
		}
		sorted := slices.Sorted(slices.Values(x))
		n := 1 + rng.IntN(25)
		if got, want := smallest(slices.Clone(x), n), sorted[min(n, len(x))-1]; got != want {
			t.Fatalf("the %d-th smallest of %v is %v, want %v", n, x, got, want)
		}
	}
}
