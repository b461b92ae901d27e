package standin

import "testing"

func TestPrefixCache(t *testing.T) {
	c := newPrefixCache(100)
	check := func(key uint64, prompt, want float64) {
		t.Helper()
		if got := c.hit(key, prompt); got != want {
			t.Errorf("key %d, prompt of %v tokens: %v cached, want %v", key, prompt, got, want)
		}
	}
	check(1, 50, 0)
	c.store(1, 40)
	check(1, 50, 40)
	check(1, 40, 39) // one is always computed
	c.store(2, 50)
	check(1, 50, 40) // makes 2 the least recently used
	c.store(3, 20)
	check(2, 60, 0)
	check(1, 50, 40)
	c.store(1, 60) // a further turn
	check(1, 90, 60)
	c.store(4, 200) // more than there is room for
	for key := range uint64(5) {
		check(key, 500, 0)
	}
	if c.used != 0 || c.order.Len() != 0 {
		t.Errorf("%v tokens of %d conversations, want none", c.used, c.order.Len())
	}
}
