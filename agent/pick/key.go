package pick

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// golden is 2^64 / golden ratio, odd: the step whose multiples, taken as
// fractions of 2^64, fill the interval most evenly (Knuth, TAOCP 3, 6.4).
const golden = 0x9E3779B97F4A7C15

// Material returns the digest of an affinity value (a header, a field of the
// body) that Key takes.
func Material(value string) uint64 { return xxhash.Sum64String(value) }

// Key returns the 64-bit key of a request: the xxhash64 of the little-endian
// digests of class, tenant and material. Equal material in another class or of
// another tenant is another key.
func Key(class, tenant string, material uint64) uint64 {
	var b [24]byte
	binary.LittleEndian.PutUint64(b[0:], xxhash.Sum64String(class))
	binary.LittleEndian.PutUint64(b[8:], xxhash.Sum64String(tenant))
	binary.LittleEndian.PutUint64(b[16:], material)
	return xxhash.Sum64(b[:])
}

// Position is where a key lies in the layout: its top 32 bits.
func Position(key uint64) uint32 { return uint32(key >> 32) }

// mix is a bijection of 64-bit integers whose every output bit depends on every
// input bit: the finaliser of SplitMix64 (Stafford's mix 13).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 27
	x *= 0x94D049BB133111EB
	return x ^ x>>31
}

// Spread gives keys to requests that have none. Consecutive keys fill the
// layout evenly, so after n requests every engine is within a few requests of
// n times its weight, where random keys would be off by sqrt(n).
// It is one atomic counter, without a lock.
type Spread struct{ n atomic.Uint64 }

// NewSpread starts the sequence at a random seed, so that agents which start
// together do not move in step.
func NewSpread(seed uint64) *Spread {
	s := &Spread{}
	s.n.Store(seed)
	return s
}

// Next returns the next key.
func (s *Spread) Next() uint64 { return s.n.Add(1) * golden }
