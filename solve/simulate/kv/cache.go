package kv

// Cache holds blocks: those in use are pinned, the others stay until the room
// is needed, the least recently used out first. A conversation is let go of
// from its end, so its last blocks go first, as in vLLM.
//
// Blocks without names (answers of one-off requests) take room while in use.
type Cache struct {
	capacity int // blocks
	pinned   int // blocks in use, nameless ones too
	idle     int // named blocks not in use
	index    map[uint64]int32
	nodes    []node
	free     []int32
}

// node is a named block. Idle ones are linked in a ring through node 0, the
// most recently used after it, the least recently used before it.
type node struct {
	name       uint64
	users      int32
	prev, next int32
}

// NewCache returns an empty cache.
func NewCache(blocks int) *Cache {
	return &Cache{capacity: blocks, index: make(map[uint64]int32), nodes: make([]node, 1)}
}

// Match returns how many leading blocks of a text of that many blocks are there.
func (c *Cache) Match(p *Prefix, blocks int) int {
	n := p.Len(blocks)
	for i := range n {
		if _, ok := c.index[p.Block(i)]; !ok {
			return i
		}
	}
	return n
}

// Pin takes the room for a text of that many blocks, the first named of which
// have names, and returns how many leading ones were there; false if others in
// use leave no room. A text larger than the whole cache gets in when it is alone.
func (c *Cache) Pin(p *Prefix, named, blocks int) (hit int, ok bool) {
	hit = c.Match(p, named)
	reused := 0 // of them, those that nobody else uses
	for i := range hit {
		if c.nodes[c.index[p.Block(i)]].users == 0 {
			reused++
		}
	}
	if c.pinned > 0 && c.pinned+reused+blocks-hit > c.capacity {
		return hit, false
	}
	for i := range hit {
		c.take(c.index[p.Block(i)])
	}
	for i := hit; i < named; i++ {
		c.insert(p.Block(i))
	}
	c.pinned += blocks - named
	c.evict()
	return hit, true
}

// Unpin gives back what Pin took. Nameless blocks are gone; those up to then
// named may be more than when they were pinned, because the answer is now part
// of the conversation.
func (c *Cache) Unpin(p *Prefix, named, grown, blocks int) {
	c.pinned -= blocks - named
	for i := named; i < grown; i++ {
		c.insert(p.Block(i))
	}
	for i := grown - 1; i >= 0; i-- {
		c.release(p.Block(i))
	}
	c.evict()
}

// Touch notes a text that somebody else holds, for who keeps book of caches
// from afar.
func (c *Cache) Touch(p *Prefix, blocks int) {
	n := p.Len(blocks)
	for i := range n {
		c.insert(p.Block(i))
	}
	for i := n - 1; i >= 0; i-- {
		c.release(p.Block(i))
	}
	c.evict()
}

// Clear forgets everything that is not in use.
func (c *Cache) Clear() {
	for c.idle > 0 {
		c.drop(c.nodes[0].prev)
	}
}

// Usage returns the part of the cache that is in use.
func (c *Cache) Usage() float64 { return min(1, float64(c.pinned)/float64(max(1, c.capacity))) }

// take adds a user to a block.
func (c *Cache) take(n int32) {
	b := &c.nodes[n]
	if b.users == 0 {
		c.unlink(n)
		c.idle--
		c.pinned++
	}
	b.users++
}

// insert adds a user to the block of this name, which may be new.
func (c *Cache) insert(name uint64) {
	if n, ok := c.index[name]; ok {
		c.take(n)
		return
	}
	var n int32
	if last := len(c.free) - 1; last >= 0 {
		n, c.free = c.free[last], c.free[:last]
	} else {
		n = int32(len(c.nodes))
		c.nodes = append(c.nodes, node{})
	}
	c.nodes[n] = node{name: name, users: 1}
	c.index[name] = n
	c.pinned++
}

// release takes a user from a block; without any it is the most recently used.
func (c *Cache) release(name uint64) {
	n := c.index[name]
	b := &c.nodes[n]
	if b.users--; b.users > 0 {
		return
	}
	c.pinned--
	c.idle++
	first := c.nodes[0].next
	b.prev, b.next = 0, first
	c.nodes[first].prev = n
	c.nodes[0].next = n
}

// evict drops idle blocks until all fit.
func (c *Cache) evict() {
	for c.idle > 0 && c.pinned+c.idle > c.capacity {
		c.drop(c.nodes[0].prev)
	}
}

func (c *Cache) drop(n int32) {
	c.unlink(n)
	c.idle--
	delete(c.index, c.nodes[n].name)
	c.free = append(c.free, n)
}

func (c *Cache) unlink(n int32) {
	b := &c.nodes[n]
	c.nodes[b.prev].next = b.next
	c.nodes[b.next].prev = b.prev
}

// Len returns how many named blocks are there.
func (c *Cache) Len() int { return len(c.index) }

// Capacity returns how many blocks fit.
func (c *Cache) Capacity() int { return c.capacity }
