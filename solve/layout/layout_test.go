package layout

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/irb-project/irb/agent/snapshot"
)

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("e%04d", i)
	}
	return out
}

// quarters is a quota in quarters of the space.
func quarters(q ...int64) []int64 {
	for i := range q {
		q[i] *= Space / 4
	}
	return q
}

const quarter = Space / 4

func measure(ranges []Range) map[string]int64 {
	m := make(map[string]int64)
	for i, r := range ranges {
		m[r.Engine] += int64(rangeEnd(ranges, i)) - int64(r.From)
	}
	return m
}

// distance is the total variation distance between a layout and quotas.
func distance(prev []Range, engines []string, quotas []int64) uint64 {
	was := measure(prev)
	gained := int64(0)
	for i, e := range engines {
		gained += max(0, quotas[i]-was[e])
	}
	return uint64(gained)
}

// checkNext checks what must hold of every step and returns the new layout.
func checkNext(t *testing.T, prev []Range, engines []string, quotas []int64) ([]Range, Change) {
	t.Helper()
	next, change, err := Next(prev, engines, quotas)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkRanges(next); err != nil {
		t.Fatal(err)
	}
	got := measure(next)
	for i, e := range engines {
		if got[e] != quotas[i] {
			t.Fatalf("%s has %d keys, want its quota %d", e, got[e], quotas[i])
		}
		delete(got, e)
	}
	if len(got) > 0 {
		t.Fatalf("keys of engines without a quota: %v", got)
	}
	for i := 1; i < len(next); i++ {
		if next[i].Engine == next[i-1].Engine {
			t.Fatalf("ranges %d and %d are both of %s", i-1, i, next[i].Engine)
		}
	}
	if len(prev) == 0 {
		return next, change
	}
	if want := distance(prev, engines, quotas); change.Moved != Moved(prev, next) || change.Moved-change.Compacted != want || change.Moved < want {
		t.Fatalf("%+v, %d keys differ, distance %d", change, Moved(prev, next), want)
	}
	if change.Compacted > CompactionKeys {
		t.Fatalf("compaction moved %d keys, want at most %d", change.Compacted, CompactionKeys)
	}
	return next, change
}

func TestNextByHand(t *testing.T) {
	abc := []string{"a", "b", "c"}
	for _, tc := range []struct {
		name    string
		prev    []Range
		engines []string
		quotas  []int64
		want    []Range
	}{
		{"no previous: one range each, by name", nil, abc, quarters(1, 0, 3),
			[]Range{{0, "a"}, {quarter, "c"}}},
		{"unchanged", []Range{{0, "b"}, {quarter, "a"}, {2 * quarter, "b"}}, abc[:2], quarters(1, 3),
			[]Range{{0, "b"}, {quarter, "a"}, {2 * quarter, "b"}}},
		{"neighbours of one engine are one range", []Range{{0, "a"}, {quarter, "a"}}, abc[:1], quarters(4),
			[]Range{{0, "a"}}},
		{"a border moves", []Range{{0, "a"}, {2 * quarter, "b"}}, abc[:2], quarters(1, 3),
			[]Range{{0, "a"}, {quarter, "b"}}},
		{"a border moves, to the right", []Range{{0, "a"}, {2 * quarter, "b"}}, abc[:2], quarters(3, 1),
			[]Range{{0, "a"}, {3 * quarter, "b"}}},
		{"the smallest range goes first", []Range{{0, "a"}, {2 * quarter, "b"}, {3 * quarter, "a"}}, abc[:2], quarters(2, 2),
			[]Range{{0, "a"}, {2 * quarter, "b"}}},
		{"a new engine", []Range{{0, "a"}, {3 * quarter, "b"}}, abc, quarters(2, 1, 1),
			[]Range{{0, "a"}, {2 * quarter, "c"}, {3 * quarter, "b"}}},
		{"an engine vanishes", []Range{{0, "a"}, {quarter, "gone"}, {2 * quarter, "c"}}, abc, quarters(2, 0, 2),
			[]Range{{0, "a"}, {2 * quarter, "c"}}},
		{"all vanish", []Range{{0, "x"}, {quarter, "y"}}, abc, quarters(1, 1, 2),
			[]Range{{0, "c"}, {2 * quarter, "a"}, {3 * quarter, "b"}}},
	} {
		next, _ := checkNext(t, tc.prev, tc.engines, tc.quotas)
		if !slices.Equal(next, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, next, tc.want)
		}
	}
}

// changes are ways in which weights change from one snapshot to the next.
var changes = map[string]func(*rand.Rand, []float64){
	"anew": func(rng *rand.Rand, w []float64) {
		for i := range w {
			w[i] = rng.Float64()
		}
	},
	"drift of 5 %": func(rng *rand.Rand, w []float64) {
		for i := range w {
			w[i] *= math.Exp(.05 * rng.NormFloat64())
		}
	},
	"drift of 0.1 %": func(rng *rand.Rand, w []float64) {
		for i := range w {
			w[i] *= math.Exp(.001 * rng.NormFloat64())
		}
	},
	"few used": func(rng *rand.Rand, w []float64) {
		for i := range w {
			w[i] = float64(rng.IntN(4)/3) * rng.Float64()
		}
		w[0] = 1
	},
	"from one to one": func(rng *rand.Rand, w []float64) {
		i, j := rng.IntN(len(w)), rng.IntN(len(w))
		part := min(w[i], .05*rng.Float64())
		w[i] -= part
		w[j] += part
	},
}

// TestReloads: 200 snapshots in a row keep every promise, and the cap.
func TestReloads(t *testing.T) {
	for name, change := range changes {
		for _, n := range []int{1, 2, 3, 7, 20, 80} {
			rng := rand.New(rand.NewPCG(1, uint64(n)))
			w := make([]float64, n)
			for i := range w {
				w[i] = rng.Float64()
			}
			var prev []Range
			compacted := uint64(0)
			for range 200 {
				change(rng, w)
				quotas, err := Quotas(w)
				if err != nil {
					t.Fatal(err)
				}
				next, c := checkNext(t, prev, names(n), quotas)
				used := 0
				for _, q := range quotas {
					used += int(min(q, 1))
				}
				if len(next) > MaxRanges(used) {
					t.Fatalf("%s of %d: %d ranges, want at most %d", name, n, len(next), MaxRanges(used))
				}
				again, _ := checkNext(t, next, names(n), quotas)
				if !slices.Equal(again, next) {
					t.Fatalf("%s of %d: an unchanged reload changed the layout", name, n)
				}
				compacted += c.Compacted
				prev = next
			}
			if n == 80 {
				t.Logf("%s of %d: %d ranges at the end, %.4f %% of keys compacted per snapshot", name, n, len(prev), 100*float64(compacted)/200/Space)
			}
		}
	}
}

// TestCompactsFragments: a layout in slivers becomes short again, within the
// budget of each snapshot.
func TestCompactsFragments(t *testing.T) {
	engines := names(10)
	rng := rand.New(rand.NewPCG(2, 2))
	var prev []Range
	for i := range 3000 {
		prev = append(prev, Range{From: uint32(i * 100), Engine: engines[(i*7+rng.IntN(3))%10]})
	}
	for i, e := range engines {
		prev = append(prev, Range{From: uint32(1<<20 + i<<28), Engine: e})
	}
	quotas := make([]int64, len(engines))
	now := measure(prev)
	for i, e := range engines {
		quotas[i] = now[e]
	}
	quotas[0]++
	quotas[1]--
	var total uint64
	for i := 0; len(prev) > MaxRanges(10); i++ {
		if i == 100 {
			t.Fatalf("%d ranges after %d snapshots", len(prev), i)
		}
		next, c := checkNext(t, prev, engines, quotas)
		prev, total = next, total+c.Compacted
		quotas[0], quotas[1] = quotas[0]-1, quotas[1]+1
	}
	if total == 0 {
		t.Error("nothing was compacted")
	}
}

func TestNextRefuses(t *testing.T) {
	good := []Range{{0, "a"}}
	for _, tc := range []struct {
		prev    []Range
		engines []string
		quotas  []int64
		want    string
	}{
		{[]Range{{1, "a"}}, []string{"a"}, quarters(4), "layout: the first range of the previous layout starts at 1, want 0"},
		{[]Range{{0, "a"}, {0, "b"}}, []string{"a"}, quarters(4), "layout: range 1 of the previous layout starts at 0 after 0, want ascending"},
		{[]Range{{0, "a"}, {1, ""}}, []string{"a"}, quarters(4), "layout: range 1 of the previous layout has no engine"},
		{good, []string{"a", "b"}, quarters(4), "layout: 2 engines have 1 quotas"},
		{good, []string{"b", "a"}, quarters(2, 2), `layout: engine "a" after "b", want each name once, ascending`},
		{good, []string{"a", "a"}, quarters(2, 2), `layout: engine "a" after "a", want each name once, ascending`},
		{good, []string{"a"}, quarters(3), "layout: quotas sum to 3221225472, want 4294967296"},
		{good, []string{"a", "b"}, quarters(4, 1), `layout: the quota of "b" is 1073741824 with 0 keys left of 2^32`},
		{good, []string{"a", "b"}, quarters(-1, 5), `layout: the quota of "a" is -1073741824 with 4294967296 keys left of 2^32`},
		{good, []string{"a", "b"}, []int64{math.MaxInt64, math.MaxInt64}, `layout: the quota of "a" is 9223372036854775807`},
		{good, nil, nil, "layout: quotas sum to 0, want 4294967296"},
	} {
		_, _, err := Next(tc.prev, tc.engines, tc.quotas)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("got %v, want %s", err, tc.want)
		}
	}
}

func TestMoved(t *testing.T) {
	a := []Range{{0, "a"}, {quarter, "b"}}
	b := []Range{{0, "b"}, {quarter, "a"}, {2 * quarter, "b"}}
	for _, tc := range []struct {
		a, b []Range
		want uint64
	}{{a, a, 0}, {a, b, 2 * quarter}, {b, a, 2 * quarter}, {nil, a, 0}} {
		if got := Moved(tc.a, tc.b); got != tc.want {
			t.Errorf("Moved(%v, %v) is %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}

func TestOf(t *testing.T) {
	s := &snapshot.Source{LayoutFrom: []uint32{0, 5}, LayoutTo: []string{"a", "b"}}
	if got, want := Of(s), []Range{{0, "a"}, {5, "b"}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestQuotas(t *testing.T) {
	for _, tc := range []struct {
		weights []float64
		want    []int64
	}{
		{[]float64{5}, []int64{Space}},
		{[]float64{1, 3}, quarters(1, 3)},
		{[]float64{0, 2, 0, 2}, quarters(0, 2, 0, 2)},
		// 2^32 = 3 x 1431655765 + 1: the first of equal remainders gets it.
		{[]float64{1, 1, 1}, []int64{1431655766, 1431655765, 1431655765}},
		{[]float64{1e-30, 1}, []int64{1, Space - 1}},
		{[]float64{1, 1, 1e-300, 1e-300}, []int64{Space/2 - 2, Space / 2, 1, 1}},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, quarters(2, 2)},
		{[]float64{math.SmallestNonzeroFloat64}, []int64{Space}},
	} {
		got, err := Quotas(tc.weights)
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("Quotas(%v) is %v (%v), want %v", tc.weights, got, err, tc.want)
		}
	}
	for _, w := range [][]float64{nil, {0, 0}, {1, -1}, {math.NaN()}, {1, math.Inf(1)}} {
		if q, err := Quotas(w); err == nil {
			t.Errorf("Quotas(%v) is %v, want an error", w, q)
		}
	}
}

// TestQuotasAreNear: every quota is within one key of its exact share, unless
// it pays for the keys of tiny weights.
func TestQuotasAreNear(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for trial := range 500 {
		n := 1 + rng.IntN(50)
		w, total := make([]float64, n), 0.0
		for i := range w {
			w[i] = math.Pow(10, -8*rng.Float64())
			total += w[i]
		}
		quotas, err := Quotas(w)
		if err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		for i, q := range quotas {
			sum += q
			if math.Abs(float64(q)-w[i]/total*Space) > 1.00001 {
				t.Errorf("trial %d: quota %d is %d of %v", trial, i, q, w[i]/total*Space)
			}
		}
		if sum != Space {
			t.Errorf("trial %d: quotas sum to %d", trial, sum)
		}
	}
}

// FuzzNext lays out, from any previous ranges and weights, what keeps every
// promise, or refuses.
func FuzzNext(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0}, []byte{1, 2, 3})
	f.Add([]byte{0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 2, 0, 0, 0, 2, 0, 0, 1, 0, 0}, []byte{0, 200, 0, 1})
	f.Add([]byte{9, 0, 0, 0, 0}, []byte{1})
	f.Fuzz(func(t *testing.T, ranges, weights []byte) {
		var prev []Range
		for ; len(ranges) >= 5; ranges = ranges[5:] {
			from := uint32(ranges[0])<<24 | uint32(ranges[1])<<16 | uint32(ranges[2])<<8 | uint32(ranges[3])
			prev = append(prev, Range{From: from, Engine: fmt.Sprintf("e%04d", ranges[4])})
		}
		w := make([]float64, min(len(weights), 256))
		for i := range w {
			w[i] = float64(weights[i])
		}
		quotas, err := Quotas(w)
		if err != nil {
			return
		}
		if checkRanges(prev) != nil {
			if _, _, err := Next(prev, names(len(w)), quotas); err == nil {
				t.Fatal("a broken layout was accepted")
			}
			return
		}
		checkNext(t, prev, names(len(w)), quotas)
	})
}

func BenchmarkNext(b *testing.B) {
	for _, n := range []int{3, 100} {
		b.Run(fmt.Sprintf("engines=%d", n), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(4, 4))
			w := make([]float64, n)
			var quotas [2][]int64
			for i := range quotas {
				changes["anew"](rng, w)
				quotas[i], _ = Quotas(w)
			}
			prev, _, _ := Next(nil, names(n), quotas[0])
			engines := names(n)
			i := 0
			for b.Loop() {
				i++
				prev, _, _ = Next(prev, engines, quotas[i&1])
			}
		})
	}
}
