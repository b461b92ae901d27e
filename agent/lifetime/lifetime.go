// Package lifetime is a context for the way of a request: ended by hand, with a
// cause, and without an allocation while nobody waits for its end. The contexts
// of the standard library cost several for each level, and a proxied request has
// three: the client's connection, the attempt, the engine's connection.
package lifetime

import (
	"context"
	"sync"
	"time"
)

// Context is a context.Context that End ends. Its zero value is ready for use
// and must not be copied.
type Context struct {
	parent context.Context // nil: none
	leave  func() bool     // stops the watch over parent

	mu    sync.Mutex
	cause error // not nil once ended
	done  chan struct{}
	hooks *hook
}

// hook is a function to call at the end.
type hook struct {
	call func()
	next *hook
}

// Follow makes c end when parent does, with its cause, and have its values. It
// must come before any other use of c, and End after it.
func (c *Context) Follow(parent context.Context) {
	c.parent = parent
	c.leave = AfterFunc(parent, func() { c.end(causeOf(parent)) })
}

func causeOf(ctx context.Context) error {
	if c, ok := ctx.(*Context); ok {
		return c.Cause()
	}
	return context.Cause(ctx)
}

// End ends the context; the first cause counts, nil stands for
// context.Canceled.
func (c *Context) End(cause error) {
	if c.leave != nil {
		c.leave()
	}
	c.end(cause)
}

func (c *Context) end(cause error) {
	if cause == nil {
		cause = context.Canceled
	}
	c.mu.Lock()
	if c.cause != nil {
		c.mu.Unlock()
		return
	}
	c.cause = cause
	hooks := c.hooks
	c.hooks = nil
	if c.done != nil {
		close(c.done)
	}
	c.mu.Unlock()
	for h := hooks; h != nil; h = h.next {
		go h.call()
	}
}

// Cause returns why the context has ended, nil if it has not.
func (c *Context) Cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// Err returns context.Canceled once the context has ended.
func (c *Context) Err() error {
	if c.Cause() == nil {
		return nil
	}
	return context.Canceled
}

// Done returns a channel that is closed at the end.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.cause != nil {
			close(c.done)
		}
	}
	return c.done
}

// Deadline returns none: whoever watches the clock calls End.
func (c *Context) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value returns the value that the context followed has.
func (c *Context) Value(key any) any {
	if c.parent == nil {
		return nil
	}
	return c.parent.Value(key)
}

// AfterFunc calls f in a goroutine of its own when c ends; stop returns true if
// it kept that from happening. The contexts of the standard library that are
// made from c look for this method.
func (c *Context) AfterFunc(f func()) (stop func() bool) {
	h := &hook{call: f}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		go f()
		return func() bool { return false }
	}
	h.next = c.hooks
	c.hooks = h
	return func() bool { return c.remove(h) }
}

func (c *Context) remove(h *hook) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := &c.hooks; *at != nil; at = &(*at).next {
		if *at == h {
			*at = h.next
			return true
		}
	}
	return false
}

// AfterFunc is context.AfterFunc, cheaper for a Context.
func AfterFunc(ctx context.Context, f func()) (stop func() bool) {
	if c, ok := ctx.(*Context); ok {
		return c.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}
