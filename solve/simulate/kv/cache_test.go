package kv

import (
	"math/rand/v2"
	"testing"
)

func conversation(n uint64) *Prefix { return &Prefix{Conversation: n} }

// A prompt hits what the turn before left, up to the first block that is gone.
func TestTurnsShareTheirPrefix(t *testing.T) {
	c := NewCache(100)
	a := conversation(1)
	if hit, ok := c.Pin(a, 10, 14); hit != 0 || !ok {
		t.Fatalf("first turn: hit %d, %v", hit, ok)
	}
	if got := c.Usage(); got != 0.14 {
		t.Errorf("usage is %v, want 14 of 100 blocks", got)
	}
	c.Unpin(a, 10, 14, 14) // the answer is part of the conversation now
	if got := c.Usage(); got != 0 {
		t.Errorf("usage is %v after the end", got)
	}
	if hit, _ := c.Pin(a, 20, 24); hit != 14 {
		t.Errorf("second turn hits %d blocks, want 14", hit)
	}
	if got := c.Match(conversation(2), 20); got != 0 {
		t.Errorf("a stranger hits %d", got)
	}
	shared := &Prefix{Conversation: 3, Shared: 9, SharedBlocks: 4}
	c.Touch(shared, 6)
	other := &Prefix{Conversation: 4, Shared: 9, SharedBlocks: 4}
	if got := c.Match(other, 6); got != 4 {
		t.Errorf("shares %d blocks of the opening, want 4", got)
	}
}

// The least recently used goes first, and of a conversation its end.
func TestEviction(t *testing.T) {
	c := NewCache(10)
	c.Touch(conversation(1), 4)
	c.Touch(conversation(2), 4)
	c.Touch(conversation(1), 4) // used again
	c.Touch(conversation(3), 4) // two too many
	for i, want := range []int{4, 2, 4} {
		if got := c.Match(conversation(uint64(i+1)), 4); got != want {
			t.Errorf("conversation %d has %d blocks, want %d", i+1, got, want)
		}
	}
}

// What is in use cannot be evicted: who needs its room waits.
func TestPinnedBlocksStay(t *testing.T) {
	c := NewCache(10)
	a, b := conversation(1), conversation(2)
	c.Pin(a, 6, 6)
	if _, ok := c.Pin(b, 6, 6); ok {
		t.Fatal("12 blocks are in use of 10")
	}
	if got := c.Match(b, 6); got != 0 {
		t.Errorf("who waits has %d blocks", got)
	}
	c.Unpin(a, 6, 6, 6)
	if _, ok := c.Pin(b, 6, 6); !ok {
		t.Error("no room although nothing is in use")
	}
	if got := c.Match(a, 6); got != 4 {
		t.Errorf("%d blocks are left of the other, want 4", got)
	}
	c.Unpin(b, 6, 6, 6)
	if _, ok := c.Pin(conversation(3), 20, 20); !ok {
		t.Error("what is larger than the cache never runs")
	}
}

// Shared blocks in use twice are let go of once both are done.
func TestSharedUse(t *testing.T) {
	c := NewCache(10)
	p := &Prefix{Named: []uint64{1, 2, 3}}
	c.Pin(p, 3, 4)
	c.Pin(p, 3, 4) // the same blocks and one nameless more
	if got := c.Usage(); got != 0.5 {
		t.Errorf("usage is %v, want 3 shared and 2 nameless blocks of 10", got)
	}
	c.Unpin(p, 3, 3, 4)
	c.Clear()
	if got := c.Match(p, 3); got != 3 {
		t.Errorf("%d blocks in use are left, want 3", got)
	}
	c.Unpin(p, 3, 3, 4)
	c.Clear()
	if got := c.Match(p, 3); got != 0 || c.Usage() != 0 {
		t.Errorf("%d blocks are left, usage %v, want none", got, c.Usage())
	}
}

// FuzzCache holds the book of the cache against a plain count.
func FuzzCache(f *testing.F) {
	f.Add(uint64(1), uint8(20))
	f.Fuzz(func(t *testing.T, seed uint64, capacity uint8) {
		rng := rand.New(rand.NewPCG(seed, 0))
		c := NewCache(int(capacity) + 1)
		type use struct {
			p             *Prefix
			named, blocks int
		}
		var uses []use
		for range 200 {
			if len(uses) > 0 && rng.IntN(2) == 0 {
				n := rng.IntN(len(uses))
				u := uses[n]
				uses = append(uses[:n], uses[n+1:]...)
				c.Unpin(u.p, u.named, u.named+rng.IntN(u.blocks-u.named+1), u.blocks)
			} else {
				u := use{p: conversation(1 + rng.Uint64N(5)), named: rng.IntN(8)}
				u.blocks = u.named + rng.IntN(4)
				if _, ok := c.Pin(u.p, u.named, u.blocks); ok {
					uses = append(uses, u)
				}
			}
			pinned, idle := 0, 0
			for _, n := range c.index {
				if c.nodes[n].users > 0 {
					pinned++
				} else {
					idle++
				}
			}
			for _, u := range uses {
				pinned += u.blocks - u.named
				if c.Match(u.p, u.named) != u.named {
					t.Fatal("a block in use is gone")
				}
			}
			if pinned != c.pinned || idle != c.idle {
				t.Fatalf("counted %d pinned and %d idle blocks, the cache says %d and %d", pinned, idle, c.pinned, c.idle)
			}
			if c.idle > 0 && c.pinned+c.idle > c.capacity {
				t.Fatalf("%d blocks in a cache of %d", c.pinned+c.idle, c.capacity)
			}
		}
	})
}
