// Package h1client is an HTTP/1.1 client for a proxy: a request is written and
// its answer read by the goroutine that asks, without the two goroutines per
// connection of http.Transport, which cost a gateway half of its CPU time.
//
// It is an http.RoundTripper for one address. It follows no redirect, adds no
// header but Host and the framing, keeps no cookie, and leaves the parsing of all
// but the plainest answers to net/http. Interim answers (1xx) are read past: the
// agent itself answers 100-continue, and no engine sends others. A request ends
// at once when its context does.
package h1client

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/irb-project/irb/agent/lifetime"
)

// ErrStale is wrapped by the error of a request that met a kept connection
// which the server had closed meanwhile: it got no byte of an answer, and can be
// sent again on a new connection. All other kept connections are closed, since
// a server that restarted has closed them too. A connection that ends later than
// such a server's refusal takes ended during the request, which is no excuse for
// the server.
var ErrStale = errors.New("kept connection was closed by the server")

// Client sends requests to one address.
type Client struct {
	// Dial opens a connection.
	Dial func(ctx context.Context) (net.Conn, error)
	// IdleTimeout is how long an unused connection is kept.
	IdleTimeout time.Duration
	// MaxIdle is how many unused connections are kept.
	MaxIdle int

	mu         sync.Mutex
	idle       []*conn     // the one used last at the end
	sweeper    *time.Timer // nil: does not run
	generation int         // of connections that may be kept
}

// conn is a connection to the server, used by one request at a time.
type conn struct {
	net.Conn
	client     *Client
	generation int
	reader     *bufio.Reader
	alive      func() bool
	limit      int64 // bytes that may still be read; a header must not be endless
	reused     bool
	since      time.Time // in idle since, or used since if it was kept
}

const (
	readBufferBytes = 4 << 10
	// maxHeaderBytes bounds the header of an answer, interim ones included.
	maxHeaderBytes = 256 << 10
	noLimit        = 1<<63 - 1
	// staleWithin is how long the end of a connection that was closed before the
	// request may take to arrive: the longest way there and back, with room.
	staleWithin = time.Second
)

var errHeaderTooLarge = errors.New("header of the answer is too large")

// Read is the source of reader.
func (c *conn) Read(p []byte) (int, error) {
	if c.limit <= 0 {
		return 0, errHeaderTooLarge
	}
	if int64(len(p)) > c.limit {
		p = p[:c.limit]
	}
	n, err := c.Conn.Read(p)
	if c.limit != noLimit {
		c.limit -= int64(n)
	}
	return n, err
}

func (c *conn) closeQuietly() { c.Close() } // nobody waits for its error

// RoundTrip sends a request and returns the answer once its header is here. The
// request's body is closed, perhaps after RoundTrip has returned.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	cn, err := c.get(r.Context())
	if err != nil {
		closeBody(r)
		return nil, err
	}
	x := &exchange{conn: cn}
	x.stop = lifetime.AfterFunc(r.Context(), cn.closeQuietly)
	resp, err := x.do(r)
	if err == nil {
		return resp, nil
	}
	x.abandon()
	if cause := context.Cause(r.Context()); cause != nil {
		return nil, cause
	}
	if cn.reused && x.silent && time.Since(cn.since) < staleWithin {
		c.CloseIdleConnections()
		return nil, &staleError{err}
	}
	return nil, err
}

type staleError struct{ err error }

func (e *staleError) Error() string   { return ErrStale.Error() + ": " + e.err.Error() }
func (e *staleError) Unwrap() []error { return []error{ErrStale, e.err} }

func closeBody(r *http.Request) {
	if r.Body != nil {
		r.Body.Close()
	}
}

// get returns a connection, a kept one if there is one that looks alive.
func (c *Client) get(ctx context.Context) (*conn, error) {
	var generation int
	for {
		var cn *conn
		if cn, generation = c.pop(); cn == nil {
			break
		}
		// Also one that was used a moment ago is looked at: bytes that nobody
		// asked for would be taken for the answer to this request.
		now := time.Now()
		if now.Sub(cn.since) < c.IdleTimeout && cn.alive() {
			cn.reused, cn.since = true, now
			return cn, nil
		}
		cn.Close()
	}
	raw, err := c.Dial(ctx)
	if err != nil {
		return nil, err
	}
	cn := &conn{Conn: raw, client: c, generation: generation, alive: look(raw)}
	cn.reader = bufio.NewReaderSize(cn, readBufferBytes)
	return cn, nil
}

// pop returns a kept connection, nil if there is none, and the generation of
// one that is dialed from now on.
func (c *Client) pop() (*conn, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.idle) - 1
	if n < 0 {
		return nil, c.generation
	}
	cn := c.idle[n]
	c.idle[n] = nil
	c.idle = c.idle[:n]
	return cn, c.generation
}

// put keeps a connection for the next request.
func (c *Client) put(cn *conn) {
	cn.since = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) >= c.MaxIdle || cn.generation != c.generation {
		cn.Close()
		return
	}
	c.idle = append(c.idle, cn)
	if c.sweeper == nil {
		c.sweeper = time.AfterFunc(c.IdleTimeout, c.sweep)
	}
}

// sweep closes connections that nobody used for too long. Those at the front
// have waited longest.
func (c *Client) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for n < len(c.idle) && time.Since(c.idle[n].since) >= c.IdleTimeout {
		c.idle[n].Close()
		n++
	}
	c.idle = append(c.idle[:0:0], c.idle[n:]...)
	c.sweeper = nil
	if len(c.idle) > 0 {
		c.sweeper = time.AfterFunc(c.IdleTimeout-time.Since(c.idle[0].since), c.sweep)
	}
}

// Retire closes the connections that no request uses, and makes the others,
// also those that are being dialed, serve no request after the present one.
func (c *Client) Retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	c.closeIdle()
}

// CloseIdleConnections closes the connections that no request uses.
func (c *Client) CloseIdleConnections() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeIdle()
}

func (c *Client) closeIdle() {
	for _, cn := range c.idle {
		cn.Close()
	}
	c.idle = nil
	if c.sweeper != nil {
		c.sweeper.Stop()
		c.sweeper = nil
	}
}

// exchange is one request on one connection.
type exchange struct {
	conn    *conn
	stop    func() bool // ends the watch over the request's context
	silent  bool        // no byte of an answer came
	written chan error  // the body is written by another goroutine; nil: it is written

	resp http.Response // of the plain kind
	rest rest          // of its body
	body body          // what the caller gets
}

// abandon ends the connection.
func (x *exchange) abandon() {
	x.stop()
	x.conn.Close()
}

// do writes the request and reads the header of the answer.
func (x *exchange) do(r *http.Request) (*http.Response, error) {
	writeErr := x.write(r)
	var broken *writeError
	if writeErr != nil && !errors.As(writeErr, &broken) {
		return nil, writeErr
	}
	// A server that refuses a request may answer and close before it has read
	// all of it, so there may be an answer even when the writing failed.
	resp, err := x.readHeader(r)
	if err != nil {
		if writeErr != nil {
			return nil, writeErr
		}
		return nil, err
	}
	keep := writeErr == nil && !resp.Close && !r.Close
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		x.stop() // from here on the caller closes it
		resp.Body = &upgraded{x.conn}
	case resp.Body == http.NoBody || r.Method == http.MethodHead:
		x.finish(keep)
		resp.Body = http.NoBody
	default:
		x.body = body{exchange: x, inner: resp.Body, keep: keep}
		resp.Body = &x.body
	}
	return resp, nil
}

// maxInterim bounds the 1xx answers before the real one.
const maxInterim = 8

func (x *exchange) readHeader(r *http.Request) (*http.Response, error) {
	c := x.conn
	c.limit = maxHeaderBytes
	if _, err := c.reader.Peek(1); err != nil {
		x.silent = true
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if resp := x.readPlain(r, c.reader); resp != nil {
		c.limit = noLimit
		return resp, nil
	}
	for range maxInterim {
		resp, err := http.ReadResponse(c.reader, r)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			c.limit = noLimit
			return resp, nil
		}
	}
	return nil, errors.New("too many interim answers")
}

// finish gives the connection back if it can serve another request.
func (x *exchange) finish(keep bool) {
	if !x.stop() { // the context has ended: the connection is closed, or about to be
		return
	}
	if keep && x.written != nil {
		select {
		case err := <-x.written:
			keep = err == nil
		default: // the answer is complete before the request is
			keep = false
		}
	}
	if !keep || !x.conn.drained() {
		x.conn.Close()
		return
	}
	x.conn.client.put(x.conn)
}

// body is the body of an answer. Its end gives the connection back; Close
// before its end closes the connection, which tells the server to stop.
type body struct {
	exchange *exchange
	inner    io.Reader
	keep     bool
	done     bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.done {
		return 0, io.EOF
	}
	n, err := b.inner.Read(p)
	if err == nil {
		return n, nil
	}
	b.done = true
	if err == io.EOF {
		b.exchange.finish(b.keep)
	} else {
		b.exchange.abandon()
	}
	return n, err
}

func (b *body) Close() error {
	if !b.done {
		b.done = true
		b.exchange.abandon()
	}
	return nil
}

// upgraded is a connection that left HTTP.
type upgraded struct{ conn *conn }

func (u *upgraded) Read(p []byte) (int, error)  { return u.conn.reader.Read(p) }
func (u *upgraded) Write(p []byte) (int, error) { return u.conn.Conn.Write(p) }
func (u *upgraded) Close() error                { return u.conn.Close() }

// RemoteAddr is the address of the server.
func (u *upgraded) RemoteAddr() net.Addr { return u.conn.RemoteAddr() }
