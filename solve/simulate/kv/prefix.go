// Package kv is prompts as blocks of a KV cache, and a cache of such blocks.
//
// A block is named by a hash of all tokens up to its end, so equal names mean
// equal prefixes, as in vLLM, SGLang and the Mooncake traces.
package kv

// Prefix says which blocks a prompt is made of: the named ones, or, where none
// are, those of a conversation that only grows, behind an opening that it
// shares with others. The zero Prefix shares nothing with anybody.
type Prefix struct {
	Named        []uint64 // names by position; nil: derived from the fields below
	Conversation uint64   // 0: none
	Shared       uint64   // the opening, such as a system prompt; 0: none
	SharedBlocks int      // blocks of the opening
}

// Len returns how many blocks of a text of that many blocks have names.
func (p *Prefix) Len(blocks int) int {
	switch {
	case p.Named != nil:
		return min(len(p.Named), blocks)
	case p.Conversation != 0:
		return blocks
	case p.Shared != 0:
		return min(p.SharedBlocks, blocks)
	}
	return 0
}

// Block returns the name of block i.
func (p *Prefix) Block(i int) uint64 {
	switch {
	case p.Named != nil:
		return p.Named[i]
	case p.Shared != 0 && i < p.SharedBlocks:
		return mix(p.Shared + uint64(i)*golden)
	}
	return mix(p.Conversation + uint64(i)*golden)
}

// golden is 2^64 / golden ratio, odd.
const golden = 0x9E3779B97F4A7C15

// mix is the finaliser of SplitMix64 (Stafford's mix 13).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 27
	x *= 0x94D049BB133111EB
	return x ^ x>>31
}
