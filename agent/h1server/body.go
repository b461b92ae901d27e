package h1server

import (
	"io"
	"net/http"
	"sync"
)

// body is the body of a request. Another goroutine may read it than the
// handler's, also when the handler has returned: it then gets an error.
type body struct {
	mu     sync.Mutex
	w      *response
	left   int64 // bytes not read yet
	closed bool
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return 0, http.ErrBodyReadAfterClose
	case b.left == 0:
		return 0, io.EOF
	case int64(len(p)) > b.left:
		p = p[:b.left]
	}
	n, err := reader{b.w.conn}.Read(p)
	b.left -= int64(n)
	if b.left == 0 {
		b.w.conn.bodyEnded()
		return n, io.EOF
	}
	if err == nil {
		return n, nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	b.w.ctx.End(nil) // the client is gone, or as good as
	return n, err
}

// Close lets nobody read on.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return nil
}

// end closes the body and returns how much of it was not read. It waits for a
// reader that is under way, which the deadline that the handler set bounds.
func (b *body) end() (unread int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return b.left
}

// buffered says whether the rest of the body is here, so that nothing needs to
// be read from the client.
func (b *body) buffered() bool {
	if !b.mu.TryLock() {
		return false // somebody reads it
	}
	defer b.mu.Unlock()
	return b.left <= int64(len(b.w.conn.unread))
}

// bodyEnded is called when the whole request is read.
func (c *conn) bodyEnded() {
	c.dropBlankLines()
	if len(c.unread) > 0 {
		return // the next request is here: whoever sent it waits for both answers
	}
	c.letGo()
	c.watch.begin()
}
