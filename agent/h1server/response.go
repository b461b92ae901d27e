package h1server

import (
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/irb-project/irb/agent/lifetime"
)

// response answers one request.
type response struct {
	conn    *conn
	request *http.Request
	ctx     lifetime.Context
	body    body

	status   int      // 0: the header is not made yet
	length   int64    // of the body; chunked if it is not known
	written  int64    // of the body
	trailers []string // names that the header announced
	closing  bool     // no request follows
	limited  bool     // the handler has set a deadline for writing
	err      error    // of writing

	buffer *[bufferBytes]byte // nil: nothing is held
	out    []byte             // part of buffer, not written yet
}

const (
	chunked = -1
	noBody  = -2
)

func (c *conn) newResponse(r *http.Request, length int64) *response {
	w := &response{conn: c, closing: r.Close}
	c.watch.w = w
	w.body.w, w.body.left = w, length
	w.request = r.WithContext(&w.ctx)
	w.request.Body = http.NoBody
	if length > 0 {
		w.request.Body = &w.body
		if length > int64(len(c.unread)) {
			_ = c.SetReadDeadline(time.Time{}) // from here on the handler's; the read fails too
		}
	} else {
		c.bodyEnded()
	}
	return w
}

// Header is the header of the answer.
func (w *response) Header() http.Header { return w.conn.answer }

// SetReadDeadline bounds the reading of the body. It does nothing once the whole
// request is here.
func (w *response) SetReadDeadline(t time.Time) error {
	if w.body.buffered() {
		return nil
	}
	return w.conn.SetReadDeadline(t)
}

// SetWriteDeadline bounds the writing of the answer. It is set late by an eighth
// of the time, and one that the connection has from before stays if it is no
// earlier than t and no later than that: a busy connection would set it for each
// request.
func (w *response) SetWriteDeadline(t time.Time) error {
	w.limited = true
	c := w.conn
	if left := time.Until(t); left > 0 {
		latest := t.Add(left / 8)
		if !c.writeUntil.Before(t) && !c.writeUntil.After(latest) {
			return nil
		}
		t = latest
	}
	c.writeUntil = t
	return c.Conn.SetWriteDeadline(t)
}

// Write adds to the body.
func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case w.err != nil:
		return 0, w.err
	case w.length == noBody:
		return 0, http.ErrBodyNotAllowed
	case w.length != chunked && w.written+int64(len(p)) > w.length:
		return 0, http.ErrContentLength
	case len(p) == 0:
		return 0, nil
	}
	w.written += int64(len(p))
	const frameBytes = 20 // a chunk's length and the ends of two lines
	if w.buffer != nil && len(w.out)+len(p)+frameBytes > bufferBytes && len(p)+frameBytes <= bufferBytes {
		w.flush()
	}
	w.hold()
	if w.length == chunked {
		w.out = strconv.AppendInt(w.out, int64(len(p)), 16)
		w.out = append(w.out, "\r\n"...)
	}
	if len(w.out)+len(p)+frameBytes > bufferBytes {
		w.writeLarge(p)
	} else {
		w.out = append(w.out, p...)
		if w.length == chunked {
			w.out = append(w.out, "\r\n"...)
		}
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// writeLarge writes what is held and p with one system call.
func (w *response) writeLarge(p []byte) {
	parts := net.Buffers{w.out, p}
	if w.length == chunked {
		parts = append(parts, []byte("\r\n"))
	}
	w.beforeWrite()
	if _, err := parts.WriteTo(w.conn.Conn); err != nil {
		w.fail(err)
	}
	w.out = w.out[:0]
}

func (w *response) hold() {
	if w.buffer == nil {
		w.buffer = buffers.Get().(*[bufferBytes]byte)
		w.out = w.buffer[:0]
	}
}

// drop forgets what is not written.
func (w *response) drop() {
	if w.buffer != nil {
		buffers.Put(w.buffer)
		w.buffer, w.out = nil, nil
	}
}

// beforeWrite lifts the deadline of an earlier request.
func (w *response) beforeWrite() {
	if c := w.conn; !w.limited && !c.writeUntil.IsZero() {
		c.writeUntil = time.Time{}
		_ = c.Conn.SetWriteDeadline(time.Time{}) // the write fails too
	}
}

func (w *response) fail(err error) {
	w.err = err
	w.ctx.End(nil) // nobody reads the answer
}

// flush writes what is held.
func (w *response) flush() {
	if len(w.out) > 0 && w.err == nil {
		w.beforeWrite()
		if _, err := w.conn.Conn.Write(w.out); err != nil {
			w.fail(err)
		}
	}
	if w.buffer != nil {
		w.out = w.buffer[:0]
	}
}

// FlushError writes what is held and lets the buffer go.
func (w *response) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.flush()
	w.drop()
	return w.err
}

// Flush is for callers that do not want the error.
func (w *response) Flush() { _ = w.FlushError() }

// finish ends the answer. It returns false if the connection cannot serve
// another request.
func (w *response) finish() bool {
	if w.status == 0 {
		w.conn.answer["Content-Length"] = []string{"0"}
		w.WriteHeader(http.StatusOK)
	}
	if w.length == chunked && w.err == nil {
		w.endChunks()
	}
	w.flush()
	w.drop()
	return w.err == nil && !w.closing && (w.length < 0 || w.written == w.length)
}
