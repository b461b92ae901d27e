package metrics

import (
	"math"
	"math/bits"
	"sync/atomic"
)

// distinct counts different keys in bounded memory: HyperLogLog (Flajolet,
// Fusy, Gandouet, Meunier, 2007) with 2^10 registers, standard error
// 1.04/sqrt(1024) = 3.3 %; small numbers by linear counting. Registers are four
// to a word, so adding a key is a load and, rarely, a compare-and-swap.
type distinct struct {
	words [registers / 4]atomic.Uint32
}

const (
	registerBits = 10
	registers    = 1 << registerBits
)

// add counts a key, which need not be random.
func (d *distinct) add(key uint64) {
	h := scramble(key)
	index := h >> (64 - registerBits)
	rank := uint32(bits.LeadingZeros64(h<<registerBits|1<<(registerBits-1))) + 1
	word, shift := &d.words[index/4], index%4*8
	for {
		old := word.Load()
		if old>>shift&0xff >= rank {
			return
		}
		if word.CompareAndSwap(old, old&^(0xff<<shift)|rank<<shift) {
			return
		}
	}
}

// merge takes over what another has counted.
func (d *distinct) merge(o *distinct) {
	for i := range d.words {
		a, b := d.words[i].Load(), o.words[i].Load()
		merged := uint32(0)
		for shift := 0; shift < 32; shift += 8 {
			merged |= max(a>>shift&0xff, b>>shift&0xff) << shift
		}
		d.words[i].Store(merged)
	}
}

// count returns about how many different keys were added.
func (d *distinct) count() float64 {
	sum, empty := 0.0, 0
	for i := range d.words {
		word := d.words[i].Load()
		for shift := 0; shift < 32; shift += 8 {
			rank := word >> shift & 0xff
			if rank == 0 {
				empty++
			}
			sum += math.Ldexp(1, -int(rank))
		}
	}
	const m = registers
	estimate := 0.7213 / (1 + 1.079/m) * m * m / sum
	if estimate <= 2.5*m && empty > 0 {
		return m * math.Log(m/float64(empty))
	}
	return estimate
}

// scramble is the finaliser of SplitMix64: a bijection whose every output bit
// depends on every input bit.
func scramble(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 27
	x *= 0x94D049BB133111EB
	return x ^ x>>31
}
