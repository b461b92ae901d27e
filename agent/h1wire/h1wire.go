// Package h1wire reads headers of HTTP/1.1 messages of the plainest kind, in
// place and at little cost: what clients and engines send nearly always. It is
// sure or says no; the caller leaves everything else to net/http. What it takes
// it must understand as net/http does, which a fuzz test compares.
package h1wire

import (
	"bytes"
	"net/http"
	"net/textproto"
	"strings"
)

// End returns the length of the header that b begins with, its empty line
// included. It returns 0 if the header is not whole yet, and -1 if it has an
// end of line of another kind.
func End(b []byte) int {
	n := bytes.Index(b, []byte("\r\n\r\n"))
	if n >= 0 {
		return n + 4
	}
	for {
		i := bytes.IndexByte(b, '\n')
		switch {
		case i < 0:
			return 0
		case i == 0 || b[i-1] != '\r':
			return -1
		}
		b = b[i+1:]
	}
}

// Line cuts the first line off a block of lines that each end in CR LF. It
// returns false if there is none in plain characters.
func Line(block string) (line, rest string, ok bool) {
	line, rest, ok = strings.Cut(block, "\r\n")
	return line, rest, ok && plain(line)
}

func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// Fields adds the fields of a block, lines with their ends up to and with the
// empty one, to an empty header. It returns false if a line is not plain.
func Fields(block string, h http.Header) bool {
	// One piece of memory for the values of all fields; a name that comes twice
	// gets one of its own.
	values := make([]string, 0, strings.Count(block, "\n"))
	for {
		line, rest, ok := strings.Cut(block, "\r\n")
		if !ok {
			return false
		}
		if line == "" {
			return rest == ""
		}
		block = rest
		name, value, ok := field(line)
		if !ok {
			return false
		}
		if before := h[name]; before != nil {
			h[name] = append(before, value)
			continue
		}
		n := len(values)
		values = append(values, value)
		h[name] = values[n : n+1 : n+1]
	}
}

// field takes one line apart: a name, a colon, a value with blanks around it.
func field(line string) (name, value string, ok bool) {
	colon := -1
	canonical, upper := true, true // a letter after a dash is to be upper case
	for i := range len(line) {
		c := line[i]
		if c == ':' {
			colon = i
			break
		}
		switch kind[c] {
		case lower:
			canonical = canonical && !upper
		case upperCase:
			canonical = canonical && upper
		case other:
		default:
			return "", "", false
		}
		upper = c == '-'
	}
	if colon <= 0 {
		return "", "", false
	}
	name = line[:colon]
	if !canonical {
		name = textproto.CanonicalMIMEHeaderKey(name)
	}
	value = strings.Trim(line[colon+1:], " \t")
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c >= 0x7f {
			return "", "", false
		}
	}
	return name, value, true
}

// Kinds of bytes in names (RFC 9110, 5.6.2).
const (
	invalid = iota
	lower
	upperCase
	other // of a token
)

var kind = func() (k [256]uint8) {
	for c := 'a'; c <= 'z'; c++ {
		k[c], k[c-'a'+'A'] = lower, upperCase
	}
	for _, c := range "0123456789!#$%&'*+-.^_`|~" {
		k[c] = other
	}
	return k
}()

// Length returns the value of the Content-Length field, -1 if there is none. It
// returns false if the body is framed in another way, or not plainly.
func Length(h http.Header) (n int64, ok bool) {
	if h["Transfer-Encoding"] != nil {
		return 0, false
	}
	v := h["Content-Length"]
	switch {
	case v == nil:
		return -1, true
	case len(v) > 1 || v[0] == "" || len(v[0]) > 18:
		return 0, false
	}
	for i := range len(v[0]) {
		digit := v[0][i] - '0'
		if digit > 9 {
			return 0, false
		}
		n = 10*n + int64(digit)
	}
	return n, true
}
