package standin

import "container/list"

// prefixCache remembers how many tokens of a conversation are in the KV
// cache, least recently used out first. A conversation is known by its start;
// that a later turn repeats the earlier ones is taken on trust.
type prefixCache struct {
	capacity float64 // tokens
	used     float64
	order    *list.List // of *prefix, most recently used first
	byKey    map[uint64]*list.Element
}

type prefix struct {
	key    uint64
	tokens float64
}

func newPrefixCache(capacity float64) *prefixCache {
	return &prefixCache{capacity: capacity, order: list.New(), byKey: map[uint64]*list.Element{}}
}

// hit returns how many of a prompt's tokens need no computing. At least one
// always does: it gives the first output token.
func (c *prefixCache) hit(key uint64, promptTokens float64) float64 {
	e, ok := c.byKey[key]
	if !ok {
		return 0
	}
	c.order.MoveToFront(e)
	return max(0, min(e.Value.(*prefix).tokens, promptTokens-1))
}

// store remembers a conversation that now has this many tokens.
func (c *prefixCache) store(key uint64, tokens float64) {
	e, ok := c.byKey[key]
	if !ok {
		e = c.order.PushFront(&prefix{key: key})
		c.byKey[key] = e
	}
	c.order.MoveToFront(e)
	p := e.Value.(*prefix)
	c.used += tokens - p.tokens
	p.tokens = tokens
	for c.used > c.capacity {
		last := c.order.Back()
		old := last.Value.(*prefix)
		c.order.Remove(last)
		delete(c.byKey, old.key)
		c.used -= old.tokens
	}
}
