package pick

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/irb-project/irb/agent/snapshot"
)

// findBySearch is the plain way to find a range.
func findBySearch(l *layout, position uint32) int {
	i, found := slices.BinarySearchFunc(l.ranges, position, func(s span, p uint32) int {
		return int(int64(s.from) - int64(p))
	})
	if !found {
		i--
	}
	return i
}

func TestFind(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	crowded := make([]uint64, 1000) // 999 ranges of one position at the top, in one bucket
	crowded[0] = snapshot.QuotaSum - 999
	for i := 1; i < len(crowded); i++ {
		crowded[i] = 1
	}
	layouts := map[string][]uint64{
		"one":     {snapshot.QuotaSum},
		"two":     {1, snapshot.QuotaSum - 1},
		"ten":     randomQuotas(r, 10),
		"1000":    randomQuotas(r, 1000),
		"crowded": crowded,
	}
	for name, quotas := range layouts {
		t.Run(name, func(t *testing.T) {
			l := &mustTable(t, testSnapshot(quotas, 0)).Class("k").layout
			check := func(p uint32) {
				if got, want := l.find(p), findBySearch(l, p); got != want {
					t.Fatalf("find(%d) = %d, want %d", p, got, want)
				}
			}
			for _, s := range l.ranges { // both sides of every boundary
				check(s.from)
				check(s.from - 1) // wraps to the last position at 0
				check(s.from + 1)
			}
			for range 10000 {
				check(r.Uint32())
			}
		})
	}
}

// The measure of the ranges is the quota, exactly.
func TestMeasureIsQuota(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		s := testSnapshot(randomQuotas(r, 1+r.IntN(200)), 0)
		shuffleRanges(r, s)
		table := mustTable(t, s)
		l := &table.Class("k").layout
		got := make([]uint64, len(s.Engines))
		for i, span := range l.ranges {
			end := uint64(snapshot.QuotaSum)
			if i+1 < len(l.ranges) {
				end = uint64(l.ranges[i+1].from)
			}
			got[l.slots[span.slot].engine] += end - uint64(span.from)
		}
		for i, w := range s.Sources[0].Weights {
			if got[i] != uint64(w.Quota) {
				t.Fatalf("engine %s: ranges measure %d, quota %d", w.Engine, got[i], w.Quota)
			}
			slot := slices.IndexFunc(l.slots, func(s slot) bool { return s.engine == i })
			if l.slots[slot].quota != uint64(w.Quota) {
				t.Fatalf("engine %s: slot has quota %d, want %d", w.Engine, l.slots[slot].quota, w.Quota)
			}
		}
	}
}

// shuffleRanges cuts the ranges of the source into up to three parts each and
// puts them in random order; quotas stay.
func shuffleRanges(r *rand.Rand, s *snapshot.Snapshot) {
	src := &s.Sources[0]
	type part struct {
		length uint64
		to     string
	}
	var parts []part
	for i, from := range src.LayoutFrom {
		end := uint64(snapshot.QuotaSum)
		if i+1 < len(src.LayoutFrom) {
			end = uint64(src.LayoutFrom[i+1])
		}
		left := end - uint64(from)
		for range 2 {
			if left > 1 {
				cut := 1 + r.Uint64N(left-1)
				parts = append(parts, part{cut, src.LayoutTo[i]})
				left -= cut
			}
		}
		parts = append(parts, part{left, src.LayoutTo[i]})
	}
	r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	src.LayoutFrom, src.LayoutTo = nil, nil
	from := uint64(0)
	for _, p := range parts {
		src.LayoutFrom = append(src.LayoutFrom, uint32(from))
		src.LayoutTo = append(src.LayoutTo, p.to)
		from += p.length
	}
}

// Shares of hashed keys lie within 4 binomial standard deviations of the
// weights.
func TestSampledShares(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{2, 10, 1000} {
		s := testSnapshot(randomQuotas(r, n), 0)
		shuffleRanges(r, s)
		c := mustTable(t, s).Class("k")
		const samples = 200000
		counts := make([]int, n)
		for range samples {
			counts[c.Owner(Key("k", "", r.Uint64()))]++
		}
		for i, w := range s.Sources[0].Weights {
			p := float64(w.Quota) / snapshot.QuotaSum
			sigma := math.Sqrt(samples * p * (1 - p))
			// + 1: for tiny shares the binomial is not normal.
			if d := math.Abs(float64(counts[i]) - samples*p); d > 4*sigma+1 {
				t.Errorf("%d engines: %s got %d of %d, want %.1f ± %.1f", n, w.Engine, counts[i], samples, samples*p, 4*sigma)
			}
		}
	}
}

// Keyless requests follow the weights far closer than random keys would.
func TestSpreadFollowsWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 20 {
		s := testSnapshot(randomQuotas(r, 10), 0)
		c := mustTable(t, s).Class("k")
		spread := NewSpread(r.Uint64())
		const n = 10000
		counts := make([]int, 10)
		for range n {
			counts[c.Owner(spread.Next())]++
		}
		for i, w := range s.Sources[0].Weights {
			want := n * float64(w.Quota) / snapshot.QuotaSum
			// The discrepancy of the golden sequence is below log2(n)/n + 1/n for
			// an interval from 0, twice that between two points.
			if d := math.Abs(float64(counts[i]) - want); d > 2*(math.Log2(n)+1) {
				t.Errorf("%s got %d of %d, want %.1f", w.Engine, counts[i], n, want)
			}
		}
	}
}

// A reload moves exactly the keys whose range changed owner. With layouts that
// keep what they can that is the total-variation distance.
func TestReloadMovesTotalVariation(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 20 {
		before := testSnapshot(randomQuotas(r, 12), 0)
		shuffleRanges(r, before)
		after := testSnapshot(randomQuotas(r, 12), 0)
		move(before, after)
		distance := uint64(0)
		for i := range 12 {
			distance += uint64(max(0, after.Sources[0].Weights[i].Quota-before.Sources[0].Weights[i].Quota))
		}
		a, b := mustTable(t, before).Class("k"), mustTable(t, after).Class("k")
		if moved := measureMoved(a, b); moved != distance {
			t.Fatalf("%d positions moved, total variation is %d", moved, distance)
		}
	}
}

// move gives after the layout of before with the least change for its quotas.
func move(before, after *snapshot.Snapshot) {
	src, dst := &before.Sources[0], &after.Sources[0]
	surplus := map[string]int64{}
	for i, w := range src.Weights {
		surplus[w.Engine] = w.Quota - dst.Weights[i].Quota
	}
	dst.LayoutFrom, dst.LayoutTo = nil, nil
	add := func(from uint64, to string) {
		dst.LayoutFrom = append(dst.LayoutFrom, uint32(from))
		dst.LayoutTo = append(dst.LayoutTo, to)
	}
	for i, start := range src.LayoutFrom {
		end := uint64(snapshot.QuotaSum)
		if i+1 < len(src.LayoutFrom) {
			end = uint64(src.LayoutFrom[i+1])
		}
		from, owner := uint64(start), src.LayoutTo[i]
		for surplus[owner] > 0 && from < end {
			for _, w := range dst.Weights { // the first that still wants some
				if surplus[w.Engine] >= 0 {
					continue
				}
				n := min(uint64(surplus[owner]), uint64(-surplus[w.Engine]), end-from)
				add(from, w.Engine)
				from += n
				surplus[owner] -= int64(n)
				surplus[w.Engine] += int64(n)
				break
			}
		}
		if from < end {
			add(from, owner)
		}
	}
}

// measureMoved counts the positions that a and b give to different engines.
func measureMoved(a, b *Class) (moved uint64) {
	edges := []uint64{snapshot.QuotaSum}
	for _, c := range []*Class{a, b} {
		for _, s := range c.layout.ranges {
			edges = append(edges, uint64(s.from))
		}
	}
	slices.Sort(edges)
	for i := 0; i+1 < len(edges); i++ {
		if edges[i] == edges[i+1] {
			continue
		}
		if key := edges[i] << 32; a.Owner(key) != b.Owner(key) {
			moved += edges[i+1] - edges[i]
		}
	}
	return moved
}

func BenchmarkOwner(b *testing.B) {
	for _, bench := range []struct {
		name    string
		engines int
		shuffle bool
	}{{"10", 10, false}, {"1000", 1000, false}, {"1000x3ranges", 1000, true}} {
		b.Run(bench.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			s := testSnapshot(randomQuotas(r, bench.engines), 2)
			if bench.shuffle {
				shuffleRanges(r, s)
			}
			c := mustTable(b, s).Class("k")
			b.ReportAllocs()
			sum, key := 0, uint64(1)
			for b.Loop() {
				key = key*6364136223846793005 + 1442695040888963407
				sum += c.Owner(key)
			}
			sink = sum
		})
	}
}

func BenchmarkNewTable(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	s := testSnapshot(randomQuotas(r, 1000), 2)
	shuffleRanges(r, s)
	for b.Loop() {
		mustTable(b, s)
	}
}

var sink int // keeps the compiler from dropping what is measured
