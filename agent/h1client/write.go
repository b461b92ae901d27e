package h1client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"golang.org/x/net/http/httpguts"
)

// inlineBytes is the largest body that is written by the goroutine that asks. A
// larger one may not fit into the buffers between here and a server that
// answers before it reads on: another goroutine writes it.
const inlineBytes = 64 << 10

// scratch are pooled buffers in which a header, and a small body after it, are
// put together for one write.
var scratch = sync.Pool{New: func() any { b := make([]byte, 0, 16<<10); return &b }}

// writeError is a failure of the connection, as against one of the request.
type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

func (x *exchange) flush(b []byte) error {
	if _, err := x.conn.Conn.Write(b); err != nil {
		return &writeError{err}
	}
	return nil
}

// write sends the request, or begins to.
func (x *exchange) write(r *http.Request) error {
	buffer := scratch.Get().(*[]byte)
	header, err := appendHeader((*buffer)[:0], r)
	*buffer = header
	if err != nil || r.Body == nil || r.Body == http.NoBody {
		if err == nil {
			err = x.flush(header)
		}
		scratch.Put(buffer)
		closeBody(r)
		return err
	}
	if inline(r) {
		return x.writeBody(r, buffer)
	}
	x.written = make(chan error, 1)
	go func() {
		err := x.writeBody(r, buffer)
		var broken *writeError
		if err != nil && !errors.As(err, &broken) {
			x.conn.Close() // no answer will come to half a request
		}
		x.written <- err
	}()
	return nil
}

func inline(r *http.Request) bool { return r.ContentLength >= 0 && r.ContentLength <= inlineBytes }

// writeBody sends the header that is in buffer, then the body, and closes it.
func (x *exchange) writeBody(r *http.Request, buffer *[]byte) error {
	defer scratch.Put(buffer)
	defer r.Body.Close()
	b := *buffer
	left := r.ContentLength
	chunked := left < 0
	for {
		// Room for a chunk's length before it and its end after it.
		const endBytes = 2
		start := len(b)
		if chunked {
			b = append(b, "00000000\r\n"...)
		}
		if room := cap(b) - endBytes; room-len(b) < 1<<10 {
			b = append(b, make([]byte, 4<<10)...)[:len(b)]
		}
		room := b[len(b) : cap(b)-endBytes]
		if !chunked && int64(len(room)) > left {
			room = room[:left]
		}
		n, err := r.Body.Read(room)
		b = b[:len(b)+n]
		left -= int64(n)
		if chunked {
			if n == 0 {
				b = b[:start]
			} else {
				copy(b[start:], fmt.Sprintf("%08x", n))
				b = append(b, "\r\n"...)
			}
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("reading the request body: %w", err)
		}
		end := err == io.EOF || !chunked && left == 0
		if end && chunked {
			b = appendTrailer(b, r.Trailer)
		}
		if end && !chunked && left > 0 {
			return fmt.Errorf("request body ends %d bytes before its Content-Length", left)
		}
		if !end && inline(r) && cap(b)-len(b) > 1<<10 {
			continue // the rest is here too: there is room for more in this write
		}
		if err := x.flush(b); err != nil {
			return err
		}
		if end {
			return nil
		}
		b = b[:0]
	}
}

var errBadHeader = errors.New("request cannot be written")

// appendHeader appends the request line and the header. The framing headers are
// made here and nowhere else; a name or value that would break the framing is
// an error.
func appendHeader(b []byte, r *http.Request) ([]byte, error) {
	target := r.URL.RequestURI()
	if !validToken(r.Method) || !validTarget(target) || !validTarget(r.Host) || r.Host == "" {
		return b, fmt.Errorf("%w: method %q, target %q, host %q", errBadHeader, r.Method, target, r.Host)
	}
	b = append(b, r.Method...)
	b = append(b, ' ')
	b = append(b, target...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, r.Host...)
	b = append(b, "\r\n"...)
	for name, values := range r.Header {
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
			continue
		}
		if !httpguts.ValidHeaderFieldName(name) {
			return b, fmt.Errorf("%w: header name %q", errBadHeader, name)
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return b, fmt.Errorf("%w: value of header %s", errBadHeader, name)
			}
			if v == "" && name == "User-Agent" {
				continue // how callers of http.Transport say that there is none
			}
			b = append(b, name...)
			b = append(b, ": "...)
			b = append(b, v...)
			b = append(b, "\r\n"...)
		}
	}
	return append(appendFraming(b, r), "\r\n"...), nil
}

func appendFraming(b []byte, r *http.Request) []byte {
	hasBody := r.Body != nil && r.Body != http.NoBody
	switch {
	case hasBody && r.ContentLength < 0:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
		for name := range r.Trailer {
			b = append(b, "Trailer: "...)
			b = append(b, name...)
			b = append(b, "\r\n"...)
		}
	case hasBody:
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, r.ContentLength, 10)
		b = append(b, "\r\n"...)
	case r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch:
		b = append(b, "Content-Length: 0\r\n"...)
	}
	return b
}

// appendTrailer ends a chunked body. Trailers that would break the framing are
// left out: the body is sent already.
func appendTrailer(b []byte, trailer http.Header) []byte {
	b = append(b, "0\r\n"...)
	for name, values := range trailer {
		for _, v := range values {
			if httpguts.ValidTrailerHeader(name) && httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(v) {
				b = append(b, name...)
				b = append(b, ": "...)
				b = append(b, v...)
				b = append(b, "\r\n"...)
			}
		}
	}
	return append(b, "\r\n"...)
}

func validToken(s string) bool { return httpguts.ValidHeaderFieldName(s) }

// validTarget says whether s can stand in a request line.
func validTarget(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return false
		}
	}
	return true
}
