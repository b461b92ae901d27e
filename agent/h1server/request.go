package h1server

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/irb-project/irb/agent/h1wire"
)

// errOther means that a request is for net/http.
var errOther = errors.New("not of the plain kind")

// readRequest reads the header of a request. Its body, of length bytes, is next
// on the connection.
func (c *conn) readRequest() (r *http.Request, length int64, err error) {
	n := h1wire.End(c.unread)
	for limited := false; n == 0; n = h1wire.End(c.unread) {
		if len(c.unread) == bufferBytes {
			return nil, 0, errOther
		}
		if !limited {
			limited = true
			_ = c.SetReadDeadline(time.Now().Add(c.server.HeaderTimeout)) // the read fails too
		}
		if err := c.fill(); err != nil {
			return nil, 0, err
		}
	}
	if n < 0 {
		return nil, 0, errOther
	}
	r, length, ok := parse(string(c.unread[:n]), c.header)
	if !ok {
		clear(c.header)
		return nil, 0, errOther
	}
	c.unread = c.unread[n:]
	r.RemoteAddr = c.remote
	return r, length, nil
}

// parse understands a header of the plain kind, its fields go to h. It returns
// false for any other: those that no client of an API sends, and those that
// change how a message or a connection is to be treated.
func parse(block string, h http.Header) (r *http.Request, length int64, ok bool) {
	line, fields, ok := h1wire.Line(block)
	method, rest, _ := strings.Cut(line, " ")
	target, version, _ := strings.Cut(rest, " ")
	if method != http.MethodPost && method != http.MethodGet || version != "HTTP/1.1" || !ok || target == "" || target[0] != '/' {
		return nil, 0, false
	}
	u, err := url.ParseRequestURI(target)
	if err != nil || !h1wire.Fields(fields, h) || !plainFields(h) {
		return nil, 0, false
	}
	hosts := h["Host"]
	if len(hosts) != 1 || hosts[0] == "" || !httpguts.ValidHostHeader(hosts[0]) {
		return nil, 0, false
	}
	delete(h, "Host")
	length, ok = h1wire.Length(h)
	closes, plain := connection(h["Connection"])
	if !ok || !plain {
		return nil, 0, false
	}
	return &http.Request{
		Method: method, URL: u, Host: hosts[0], Header: h, RequestURI: target, ContentLength: max(0, length), Close: closes,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, max(0, length), true
}

// plainFields says whether there is none that net/http treats in a way of its
// own; those of the framing are looked at apart.
func plainFields(h http.Header) bool {
	return h["Expect"] == nil && h["Upgrade"] == nil && h["Trailer"] == nil && h["Pragma"] == nil
}

// connection reads the Connection fields of nearly all clients.
func connection(values []string) (closes, plain bool) {
	switch {
	case len(values) == 0:
		return false, true
	case len(values) > 1:
		return false, false
	}
	switch values[0] {
	case "keep-alive", "Keep-Alive":
		return false, true
	case "close":
		return true, true
	}
	return false, false
}
