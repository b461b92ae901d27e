// Command pickers compares agent/pick with the consistent hashing libraries
// that Go programs use: how far the shares are from the weights, how many keys
// move when weights change, and what a pick costs. It is a module of its own to
// keep those libraries out of irb's.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

func main() {
	keyCount := flag.Int("keys", 200000, "how many keys are picked for")
	flag.Parse()
	if flag.NArg() > 0 || *keyCount < 1000 {
		fmt.Fprintln(os.Stderr, "pickers: want -keys of at least 1000 and nothing else")
		os.Exit(2)
	}
	keys := make([]string, *keyCount)
	for i := range keys {
		keys[i] = "session-" + strconv.Itoa(i)
	}
	fmt.Printf("%d keys. misplaced: share of keys beyond an engine's weight; irb's ranges fit exactly, what it shows is\n", len(keys))
	fmt.Println("the sampling of the keys. moved: keys that change engine when every weight changes by up to a fifth, as a")
	fmt.Println("multiple of the total variation distance, the least that must move. ns: hash of the key included.")
	fmt.Printf("Libraries without weights get %d aliases for an engine of mean weight.\n", aliasesPerEngine)
	for _, n := range []int{10, 1000} {
		if err := compare(n, keys); err != nil {
			fmt.Fprintln(os.Stderr, "pickers:", err)
			os.Exit(1)
		}
	}
}

// compare prints a table for n engines.
func compare(n int, keys []string) error {
	random := rand.New(rand.NewPCG(1, uint64(n)))
	before, after := make([]float64, n), make([]float64, n)
	for i := range before {
		before[i] = 0.5 + random.Float64()
		after[i] = before[i] * (0.8 + 0.4*random.Float64())
	}
	normalize(before)
	normalize(after)
	least := excess(after, before)
	fmt.Printf("\n%d engines; the weights change by %.2f %%\n", n, 100*least)
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tmisplaced %\tmoved / least\tns per pick\tbuild ms\t")
	for _, p := range pickers(len(keys)) {
		if n > p.most {
			fmt.Fprintf(t, "%s\t-\t-\t-\t-\t\n", p.name)
			continue
		}
		start := time.Now()
		build, err := p.make(before)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		buildTime := time.Since(start)
		first, perPick := pickAll(build, keys)
		if build, err = p.remake(before, after); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		second, _ := pickAll(build, keys)
		moved, shares := 0, make([]float64, n)
		for i, e := range first {
			shares[e] += 1 / float64(len(keys))
			if second[i] != e {
				moved++
			}
		}
		fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.0f\t%.1f\t\n", p.name, 100*excess(shares, before),
			float64(moved)/float64(len(keys))/least, perPick, float64(buildTime)/float64(time.Millisecond))
	}
	return t.Flush()
}

// pickAll picks for all keys and returns the time of one pick in ns: the median
// of batches, which what else runs on the machine hardly meets.
func pickAll(pick func(string) int, keys []string) (engines []int, perPick float64) {
	const batch = 500
	engines = make([]int, 0, len(keys))
	var times []float64
	for some := range slices.Chunk(keys, batch) {
		start := time.Now()
		for _, k := range some {
			engines = append(engines, pick(k))
		}
		times = append(times, float64(time.Since(start))/float64(len(some)))
	}
	slices.Sort(times)
	return engines, times[len(times)/2]
}

func normalize(w []float64) {
	sum := 0.0
	for _, v := range w {
		sum += v
	}
	for i := range w {
		w[i] /= sum
	}
}

// excess returns the total variation distance: sum of (a - b)+.
func excess(a, b []float64) (sum float64) {
	for i := range a {
		sum += max(0, a[i]-b[i])
	}
	return sum
}
