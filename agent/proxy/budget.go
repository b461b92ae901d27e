package proxy

import (
	"sync/atomic"
	"time"
)

// RetryBudget bounds retries, so that they cannot multiply the traffic of a
// fleet that is failing because it is full. Deposit is called once per request,
// Withdraw before each retry.
type RetryBudget interface {
	Deposit()
	Withdraw() bool
}

// tokenBudget is a bucket of retry tokens: each request puts a share of a token
// in, time puts some in, a retry takes one out. It takes no lock.
type tokenBudget struct {
	now    func() time.Time
	tokens atomic.Int64 // in 1/1000
	filled atomic.Int64 // unix ns up to which the floor was paid in
	ratio  atomic.Int64 // 1/1000 tokens per request
	floor  atomic.Int64 // 1/1000 tokens per second
}

// budgetCap is the most that is saved up, in 1/1000: a calm hour must not pay
// for a storm of retries.
const budgetCap = 100 * 1000

func newTokenBudget(now func() time.Time) *tokenBudget {
	b := &tokenBudget{now: now}
	b.filled.Store(now().UnixNano())
	return b
}

// configure sets the share of requests and the retries per second.
func (b *tokenBudget) configure(ratio, floorPerSecond float64) {
	b.ratio.Store(int64(ratio * 1000))
	b.floor.Store(int64(floorPerSecond * 1000))
	// A second's floor is there from the start.
	b.add(b.floor.Load())
}

func (b *tokenBudget) add(n int64) {
	if n > 0 && b.tokens.Add(n) > budgetCap {
		b.tokens.Store(budgetCap)
	}
}

func (b *tokenBudget) Deposit() { b.add(b.ratio.Load()) }

func (b *tokenBudget) Withdraw() bool {
	now, last := b.now().UnixNano(), b.filled.Load()
	if earned := b.floor.Load() * (now - last) / int64(time.Second); earned > 0 && b.filled.CompareAndSwap(last, now) {
		b.add(earned)
	}
	for {
		have := b.tokens.Load()
		if have < 1000 {
			return false
		}
		if b.tokens.CompareAndSwap(have, have-1000) {
			return true
		}
	}
}
