package h1server

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// WriteHeader makes the header of the answer, or sends an interim one (1xx) at
// once. The header is written with what follows.
func (w *response) WriteHeader(status int) {
	switch {
	case status < 100 || status > 999 || status == http.StatusSwitchingProtocols:
		panic(fmt.Sprintf("h1server: status %d cannot be sent", status))
	case w.status != 0:
		return
	case status < 200:
		w.interim(status)
		return
	}
	w.status = status
	h := w.conn.answer
	w.length = bodyLength(status, h)
	if w.length == chunked {
		w.announceTrailers(h["Trailer"])
	}
	w.closing = w.closing || w.conn.server.draining.Load() || slices.ContainsFunc(h["Connection"], isClose)
	b := w.statusLine(status)
	if h["Date"] == nil {
		b = append(b, "Date: "...)
		b = time.Now().UTC().AppendFormat(b, http.TimeFormat)
		b = append(b, "\r\n"...)
	}
	for name, values := range h {
		switch name {
		case "Connection", "Transfer-Encoding":
			continue // made below
		case "Content-Length":
			if w.length == chunked || status == http.StatusNoContent {
				continue
			}
		}
		if !slices.Contains(w.trailers, name) {
			b = appendField(b, name, values)
		}
	}
	if w.closing {
		b = append(b, "Connection: close\r\n"...)
	}
	if w.length == chunked {
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	w.keep(append(b, "\r\n"...))
}

// statusLine returns a status line in the buffer, behind what it holds.
func (w *response) statusLine(status int) []byte {
	w.hold()
	b := append(w.out, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(status)...)
	return append(b, "\r\n"...)
}

// keep takes b as what is held, written at once if it has outgrown the buffer.
func (w *response) keep(b []byte) {
	w.out = b
	if len(b) > bufferBytes {
		w.flush()
	}
}

func (w *response) interim(status int) {
	b := w.statusLine(status)
	for name, values := range w.conn.answer {
		if name != "Content-Length" && name != "Transfer-Encoding" && name != "Connection" {
			b = appendField(b, name, values)
		}
	}
	w.keep(append(b, "\r\n"...))
	w.flush()
}

func isClose(v string) bool { return httpguts.HeaderValuesContainsToken([]string{v}, "close") }

// bodyLength says how long the body of an answer will be: as the handler says,
// else chunked.
func bodyLength(status int, h http.Header) int64 {
	if status == http.StatusNoContent || status == http.StatusNotModified {
		return noBody
	}
	if v := h["Content-Length"]; len(v) == 1 {
		if n, err := strconv.ParseUint(v[0], 10, 63); err == nil {
			return int64(n)
		}
	}
	return chunked
}

func (w *response) announceTrailers(values []string) {
	for _, v := range values {
		for name := range strings.SplitSeq(v, ",") {
			if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); httpguts.ValidTrailerHeader(name) {
				w.trailers = append(w.trailers, name)
			}
		}
	}
}

// endChunks ends a chunked body, with the trailers that were announced and set,
// and those whose names begin with http.TrailerPrefix.
func (w *response) endChunks() {
	w.hold()
	b := append(w.out, "0\r\n"...)
	for _, name := range w.trailers {
		b = appendField(b, name, w.conn.answer[name])
	}
	for name, values := range w.conn.answer {
		if name, ok := strings.CutPrefix(name, http.TrailerPrefix); ok && httpguts.ValidTrailerHeader(name) {
			b = appendField(b, name, values)
		}
	}
	w.keep(append(b, "\r\n"...))
}

// appendField appends a field. What would end it early becomes a blank, and a
// name that is none is left out.
func appendField(b []byte, name string, values []string) []byte {
	if len(values) == 0 || !httpguts.ValidHeaderFieldName(name) {
		return b
	}
	for _, v := range values {
		b = append(b, name...)
		b = append(b, ": "...)
		start := len(b)
		b = append(b, v...)
		if strings.IndexByte(v, '\n') >= 0 || strings.IndexByte(v, '\r') >= 0 {
			for i, c := range b[start:] {
				if c == '\n' || c == '\r' {
					b[start+i] = ' '
				}
			}
		}
		b = append(b, "\r\n"...)
	}
	return b
}
