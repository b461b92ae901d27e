package pick

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func endpointIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("http://10.0.0.%d:8000", i)
	}
	return ids
}

func home(e *Endpoints, key uint64) string {
	w := e.Walk(key)
	i, _ := w.Next()
	return e.ID(i)
}

func TestEndpointsShareEqually(t *testing.T) {
	const n, samples = 7, 70000
	e := NewEndpoints(endpointIDs(n))
	r := rand.New(rand.NewPCG(1, 1))
	first, second := map[string]int{}, map[string]int{}
	for range samples {
		w := e.Walk(r.Uint64())
		i, _ := w.Next()
		j, _ := w.Next()
		first[e.ID(i)]++
		if i == 0 {
			second[e.ID(j)]++
		}
	}
	for id, got := range first {
		if d := math.Abs(float64(got) - samples/n); d > 4*math.Sqrt(samples/n) {
			t.Errorf("%s is home of %d of %d keys", id, got, samples)
		}
	}
	lost := float64(first[e.ID(0)])
	for id, got := range second {
		if d := math.Abs(float64(got) - lost/(n-1)); d > 4*math.Sqrt(lost/(n-1)) {
			t.Errorf("%s is next of %d of %.0f keys", id, got, lost)
		}
	}
}

// Losing an endpoint moves its keys to their next in rank and no others; the
// order in which addresses are listed does not matter.
func TestEndpointLossMovesOwnKeysOnly(t *testing.T) {
	ids := endpointIDs(5)
	all := NewEndpoints(ids)
	shuffled := NewEndpoints([]string{ids[3], ids[0], ids[4], ids[2], ids[1], ids[0]})
	without := NewEndpoints(slices.Concat(ids[:2], ids[3:]))
	if shuffled.Len() != 5 {
		t.Fatalf("%d endpoints, want 5", shuffled.Len())
	}
	r := rand.New(rand.NewPCG(2, 2))
	for range 20000 {
		key := r.Uint64()
		w := all.Walk(key)
		i, _ := w.Next()
		want := all.ID(i)
		if got := home(shuffled, key); got != want {
			t.Fatalf("order of the list matters: %s, %s", got, want)
		}
		if i == 2 {
			i, _ = w.Next()
			want = all.ID(i)
		}
		if got := home(without, key); got != want {
			t.Fatalf("key %x goes to %s, want %s", key, got, want)
		}
	}
}

func TestEndpointWalkIsComplete(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for n := range 12 {
		e := NewEndpoints(endpointIDs(n))
		w := e.Walk(r.Uint64())
		seen := map[int]bool{}
		for i, ok := w.Next(); ok; i, ok = w.Next() {
			seen[i] = true
		}
		if len(seen) != n {
			t.Errorf("%d of %d endpoints", len(seen), n)
		}
	}
	// A collision of digests loses nobody.
	e := &Endpoints{ids: []string{"a", "b", "c"}, hashes: []uint64{1, 1, 1}}
	w := e.Walk(9)
	for want := range 3 {
		if i, ok := w.Next(); !ok || i != want {
			t.Errorf("got %d, %v, want %d", i, ok, want)
		}
	}
}

func TestEndpointsAllocateNothing(t *testing.T) {
	e := NewEndpoints(endpointIDs(8))
	key := uint64(1)
	if allocs := testing.AllocsPerRun(100, func() {
		key = mix(key)
		w := e.Walk(key)
		for _, ok := w.Next(); ok; _, ok = w.Next() {
		}
	}); allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}

func BenchmarkEndpoints(b *testing.B) {
	e := NewEndpoints(endpointIDs(8))
	key := uint64(1)
	b.ReportAllocs()
	for b.Loop() {
		key = key*6364136223846793005 + 1442695040888963407
		w := e.Walk(key)
		i, _ := w.Next()
		sink += i
	}
}
