package h1client

import (
	"bufio"
	"io"
	"net/http"
	"strings"

	"github.com/irb-project/irb/agent/h1wire"
)

// readPlain reads the header of an answer that is wholly here and of the plain
// kind: final, with a Content-Length. It returns nil, having read nothing, for
// any other, which is left to net/http.
func (x *exchange) readPlain(r *http.Request, from *bufio.Reader) *http.Response {
	if r.Method == http.MethodHead {
		return nil
	}
	buffered, _ := from.Peek(from.Buffered()) // what is buffered can be looked at
	n := h1wire.End(buffered)
	if n <= 0 {
		return nil
	}
	resp := &x.resp
	length, ok := parse(string(buffered[:n]), resp)
	if !ok {
		x.resp = http.Response{}
		return nil
	}
	_, _ = from.Discard(n) // it is buffered
	resp.Request, resp.ContentLength = r, length
	resp.Body = http.NoBody
	if length > 0 {
		x.rest = rest{from: from, left: length}
		resp.Body = &x.rest
	}
	return resp
}

// parse understands a header of the plain kind.
func parse(block string, resp *http.Response) (length int64, ok bool) {
	line, fields, ok := h1wire.Line(block)
	status, http11 := strings.CutPrefix(line, "HTTP/1.1 ")
	if !ok || !http11 || len(status) < 4 || status[3] != ' ' || strings.TrimSpace(status) != status {
		return 0, false
	}
	code := 0
	for i := range 3 {
		digit := status[i] - '0'
		if digit > 9 {
			return 0, false
		}
		code = 10*code + int(digit)
	}
	if code < 200 || code == http.StatusNoContent || code == http.StatusNotModified {
		return 0, false
	}
	h := make(http.Header, 8)
	if !h1wire.Fields(fields, h) || h["Pragma"] != nil || h["Trailer"] != nil {
		return 0, false
	}
	length, ok = h1wire.Length(h)
	if !ok || length < 0 {
		return 0, false
	}
	switch v := h["Connection"]; {
	case v == nil:
	case len(v) == 1 && (v[0] == "keep-alive" || v[0] == "Keep-Alive"):
	case len(v) == 1 && v[0] == "close":
		resp.Close = true
		delete(h, "Connection") // as net/http does
	default:
		return 0, false
	}
	resp.Status, resp.StatusCode, resp.Header = status, code, h
	resp.Proto, resp.ProtoMajor, resp.ProtoMinor = "HTTP/1.1", 1, 1
	return length, true
}

// rest is a body of known length.
type rest struct {
	from *bufio.Reader
	left int64
}

func (b *rest) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.from.Read(p)
	b.left -= int64(n)
	switch {
	case b.left == 0:
		return n, io.EOF
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Close does nothing: the exchange ends the connection.
func (b *rest) Close() error { return nil }
