// Package chunk makes passes over the pairs of a program in parallel, in parts
// that do not depend on the machine.
package chunk

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Count is how many parts the sources are divided into. It does not depend on
// the machine, so neither does any sum over parts.
const Count = 16

// aloneBelow is how many pairs a pass must have to be worth a second thread.
const aloneBelow = 30000

// Each calls f for the sources from <= s < to of every chunk; chunks have
// about equal numbers of pairs, row being where those of each source begin.
func Each(row []int, f func(chunk, from, to int)) {
	pairs := row[len(row)-1]
	bound := func(c int) int {
		lo, hi := 0, len(row)-1
		for lo < hi {
			mid := (lo + hi) / 2
			if row[mid]*Count < pairs*c {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		return lo
	}
	run := func(c int) {
		to := len(row) - 1
		if c+1 < Count {
			to = bound(c + 1)
		}
		f(c, bound(c), to)
	}
	threads := min(runtime.GOMAXPROCS(0), Count)
	if pairs < aloneBelow || threads == 1 {
		for c := range Count {
			run(c)
		}
		return
	}
	var next atomic.Int32
	var wait sync.WaitGroup
	for range threads {
		wait.Go(func() {
			for c := next.Add(1) - 1; c < Count; c = next.Add(1) - 1 {
				run(int(c))
			}
		})
	}
	wait.Wait()
}
