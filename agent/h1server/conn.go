package h1server

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// What a connection is doing.
const (
	fresh   int32 = iota // accepted, nothing was read
	idle                 // waits for its next request
	reading              // has a part of the header of one
	busy                 // answers one
	ended                // was closed while nothing was under way
)

// bufferBytes is what one read takes: most requests with their bodies. A header
// that is larger goes to net/http.
const bufferBytes = 16 << 10

// buffers are held from the first byte of a request to the last of its body, and
// while an answer has bytes that are not written yet.
var buffers = sync.Pool{New: func() any { return new([bufferBytes]byte) }}

// conn is one connection of a client.
type conn struct {
	net.Conn
	server *Server
	remote string
	state  atomic.Int32

	raw      syscall.RawConn // nil: the connection is no socket
	readOnce func(fd uintptr) bool
	readErr  error // of readOnce

	buffer *[bufferBytes]byte // nil: nothing is held
	unread []byte             // part of buffer

	idleUntil  time.Time // the read deadline, if nothing else set one
	otherUntil atomic.Bool
	writeUntil time.Time

	header, answer http.Header // used for each request again
	watch          watch
}

func newConn(s *Server, raw net.Conn) *conn {
	c := &conn{Conn: raw, server: s, remote: raw.RemoteAddr().String(), header: http.Header{}, answer: http.Header{}}
	if socket, ok := raw.(syscall.Conn); ok && socketReads {
		if r, err := socket.SyscallConn(); err == nil {
			c.raw, c.readOnce = r, c.readSocket
		}
	}
	c.watch.init(c)
	return c
}

// serve answers requests until either side has enough.
func (c *conn) serve() {
	defer c.server.forget(c)
	for c.awaitRequest() {
		r, length, err := c.readRequest()
		if err == errOther {
			c.server.Other(c.handOver())
			return
		}
		if err != nil {
			break
		}
		c.state.Store(busy)
		if !c.respond(r, length) {
			break
		}
		if c.server.draining.Load() {
			break
		}
		c.state.Store(idle)
	}
	c.letGo()
	c.Conn.Close()
}

// awaitRequest returns true when bytes of a request are here.
func (c *conn) awaitRequest() bool {
	if c.state.Load() == fresh {
		_ = c.SetReadDeadline(time.Now().Add(c.server.HeaderTimeout)) // the read fails too
		return c.fill() == nil && c.state.CompareAndSwap(fresh, reading)
	}
	for c.dropBlankLines(); len(c.unread) == 0; c.dropBlankLines() {
		c.letGo()
		c.limitWait()
		if err := c.fill(); err != nil {
			return false
		}
	}
	return c.state.CompareAndSwap(idle, reading)
}

// dropBlankLines drops ends of lines between requests: some clients send one
// after a body that its length does not count (RFC 9112, 2.2).
func (c *conn) dropBlankLines() { c.unread = bytes.TrimLeft(c.unread, "\r\n") }

// limitWait sets the deadline of the wait for the next request. It is set late
// by a quarter and moved when less than the limit is left: moving costs more
// than looking, and a client counts on the limit when it reuses a connection.
func (c *conn) limitWait() {
	now := time.Now()
	limit := c.server.IdleTimeout
	if c.otherUntil.Swap(false) || c.idleUntil.Sub(now) < limit {
		c.idleUntil = now.Add(limit + limit/4)
		_ = c.Conn.SetReadDeadline(c.idleUntil) // the read that follows fails too
	}
}

// SetReadDeadline sets a deadline that the next wait for a request replaces.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.otherUntil.Store(true)
	return c.Conn.SetReadDeadline(t)
}

// fill reads once, what comes, behind what is unread.
func (c *conn) fill() error {
	if c.buffer == nil && c.raw != nil {
		return c.fillSocket()
	}
	if c.buffer == nil {
		c.hold()
	}
	n := copy(c.buffer[:], c.unread)
	m, err := c.Conn.Read(c.buffer[n:])
	c.unread = c.buffer[:n+m]
	if m > 0 {
		return nil
	}
	return err
}

func (c *conn) hold() {
	c.buffer = buffers.Get().(*[bufferBytes]byte)
	c.unread = c.buffer[:0]
}

// letGo gives the buffer back if all of it was read.
func (c *conn) letGo() {
	if c.buffer != nil {
		buffers.Put(c.buffer)
		c.buffer, c.unread = nil, nil
	}
}

// fillSocket waits without holding a buffer and takes one when bytes are here.
func (c *conn) fillSocket() error {
	c.readErr = nil
	if err := c.raw.Read(c.readOnce); err != nil {
		return err
	}
	if c.readErr != nil {
		return c.readErr
	}
	if len(c.unread) == 0 {
		return io.EOF
	}
	return nil
}

// handOver returns the connection with what is unread before the rest.
func (c *conn) handOver() net.Conn {
	head := append([]byte(nil), c.unread...)
	c.letGo()
	_ = c.Conn.SetDeadline(time.Time{}) // net/http sets its own
	return &handedOver{Conn: c.Conn, head: head}
}

// handedOver is a connection whose first bytes were read already.
type handedOver struct {
	net.Conn
	head []byte
}

func (h *handedOver) Read(p []byte) (int, error) {
	if len(h.head) > 0 {
		n := copy(p, h.head)
		h.head = h.head[n:]
		return n, nil
	}
	return h.Conn.Read(p)
}

// NetConn is the connection itself.
func (h *handedOver) NetConn() net.Conn { return h.Conn }

// CloseWrite is what net/http ends a connection with whose client still sends.
func (h *handedOver) CloseWrite() error { return closeWrite(h.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// respond lets the handler answer a request. It returns false if the connection
// cannot serve another.
func (c *conn) respond(r *http.Request, length int64) (again bool) {
	w := c.newResponse(r, length)
	returned := false
	defer func() {
		// The client gets its answer, or its end, before a reader of the body is
		// awaited, who may wait for the client.
		if returned {
			again = w.finish()
		} else { // it panicked, or ended its goroutine
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				c.server.Log.Error("panic in a handler", "panic", p, "stack", string(debug.Stack()))
			}
			w.drop()
			c.Conn.Close()
		}
		unread := w.body.end()
		c.watch.end()
		w.ctx.End(nil)
		again = again && c.skip(unread)
		c.header, c.answer = cleared(c.header), cleared(c.answer)
		c.watch.w = nil // a client that waits should hold nothing of its last request
	}()
	c.server.Handler.ServeHTTP(w, w.request)
	returned = true
	return true
}

// keptFields is how large a header's map may be to be used again: a map does not
// shrink.
const keptFields = 64

func cleared(h http.Header) http.Header {
	if len(h) > keptFields {
		return http.Header{}
	}
	clear(h)
	return h
}

const (
	// skipBytes of a body that the handler did not want are read, so that the
	// connection can be used again.
	skipBytes = 256 << 10
	// lingering is how long a connection stays open after its answer while the
	// client still sends: closing at once would make its kernel throw the
	// answer away.
	lingering = 500 * time.Millisecond
)

// skip reads what the handler left of a body. It returns false if that is too
// much, or does not come within the deadline that the handler set.
func (c *conn) skip(unread int64) bool {
	if unread == 0 {
		return true
	}
	if unread <= skipBytes {
		n, err := io.CopyN(io.Discard, reader{c}, unread)
		if err == nil {
			return true
		}
		unread -= n
	}
	if closeWrite(c.Conn) == nil {
		time.Sleep(lingering)
	}
	return false
}

// reader reads what was buffered, then the connection, in full pieces.
type reader struct{ *conn }

func (r reader) Read(p []byte) (int, error) {
	if len(r.unread) > 0 {
		n := copy(p, r.unread)
		r.unread = r.unread[n:]
		return n, nil
	}
	return r.Conn.Read(p)
}
