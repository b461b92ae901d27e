package network

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// chunks is how many parts the sources are divided into for parallel passes.
// It does not depend on the machine, so neither does any sum over parts.
const chunks = 16

// aloneBelow is how many pairs a pass must have to be worth a second thread.
const aloneBelow = 30000

// eachChunk calls f for the sources from <= s < to of every chunk; chunks have
// about equal numbers of pairs, row being where those of each source begin.
func eachChunk(row []int, f func(chunk, from, to int)) {
	pairs := row[len(row)-1]
	bound := func(c int) int {
		lo, hi := 0, len(row)-1
		for lo < hi {
			mid := (lo + hi) / 2
			if row[mid]*chunks < pairs*c {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		return lo
	}
	run := func(c int) {
		to := len(row) - 1
		if c+1 < chunks {
			to = bound(c + 1)
		}
		f(c, bound(c), to)
	}
	threads := min(runtime.GOMAXPROCS(0), chunks)
	if pairs < aloneBelow || threads == 1 {
		for c := range chunks {
			run(c)
		}
		return
	}
	var next atomic.Int32
	var wait sync.WaitGroup
	for range threads {
		wait.Go(func() {
			for c := next.Add(1) - 1; c < chunks; c = next.Add(1) - 1 {
				run(int(c))
			}
		})
	}
	wait.Wait()
}
