package h1server

import (
	"errors"
	"os"
	"sync"
	"time"
)

// watchAfter is how long an answer may take before anybody looks whether the
// client is still there. A shorter request is over before a cancel could save
// anything, and looking takes a goroutine and some system calls.
const watchAfter = 5 * time.Millisecond

// watch notices a client that leaves while its request is answered: by then all
// of the request was read, so a read returns when the connection ends, or when
// the client sends its next request before it has the answer to this one.
type watch struct {
	conn  *conn
	timer *time.Timer
	w     *response // of the request that is answered

	mu       sync.Mutex
	over     sync.Cond // reading is false
	wanted   bool
	reading  bool
	stopping bool
	next     [1]byte // of the next request
	has      bool    // next was read
}

func (l *watch) init(c *conn) {
	l.conn = c
	l.over.L = &l.mu
}

// begin is called when the whole request is read.
func (l *watch) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted = true
	if l.timer == nil {
		l.timer = time.AfterFunc(watchAfter, l.look)
		return
	}
	l.timer.Reset(watchAfter)
}

// look reads until the client leaves, sends something, or end is called. A timer
// that is late may call it for the next request, a little early.
func (l *watch) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.wanted || l.reading || l.has {
		return
	}
	l.reading = true
	ctx := &l.w.ctx
	n, err := l.read()
	for !l.stopping && l.meansNothing(n, err) {
		n, err = l.read()
	}
	l.reading = false
	l.has = n > 0
	if n == 0 && !l.stopping {
		ctx.End(nil)
	}
	l.over.Broadcast()
}

// meansNothing says whether a read has got a part of a blank line between
// requests, or was ended by a deadline that the handler set as the body ended.
func (l *watch) meansNothing(n int, err error) bool {
	if n > 0 {
		return l.next[0] == '\r' || l.next[0] == '\n'
	}
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// read reads with the lock let go.
func (l *watch) read() (int, error) {
	_ = l.conn.SetReadDeadline(time.Time{}) // the read fails too
	l.mu.Unlock()
	defer l.mu.Lock()
	return l.conn.Conn.Read(l.next[:])
}

// longAgo is a deadline that ends a read at once.
var longAgo = time.Unix(1, 0)

// end stops the watch and leaves what was read to the next request.
func (l *watch) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.wanted {
		return
	}
	l.wanted = false
	l.timer.Stop()
	if l.reading {
		l.stopping = true
		_ = l.conn.SetReadDeadline(longAgo)
		for l.reading {
			l.over.Wait()
		}
		l.stopping = false
	}
	if l.has {
		l.has = false
		l.conn.hold()
		l.conn.buffer[0] = l.next[0]
		l.conn.unread = l.conn.buffer[:1]
	}
}
