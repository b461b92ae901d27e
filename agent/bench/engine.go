package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// engine answers as an inference engine would, at as little cost as Go allows:
// the processor is shared with the proxies that are measured. It reads the
// whole request body; /v1/chat/completions answers at once, /v1/stream with
// one token each tokenEvery until the client leaves.
type engine struct {
	listen net.Listener
	began  time.Time
}

// tokenEvery is 20 tokens per second.
const tokenEvery = 50 * time.Millisecond

const (
	askPath    = "/v1/chat/completions"
	streamPath = "/v1/stream"
)

// sentAt comes before the time at which a token was sent, in nanoseconds since
// the engine's begin, in every frame.
const sentAt = `"content":"`

func startEngine(began time.Time) (*engine, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &engine{listen: l, began: began}
	go e.accept()
	return e, nil
}

func (e *engine) address() string { return e.listen.Addr().String() }

// accept ends when the listener is closed.
func (e *engine) accept() {
	for {
		c, err := e.listen.Accept()
		if err != nil {
			return
		}
		go e.serve(c)
	}
}

// answerText is a completion of about 600 bytes.
var answerText = func() string {
	body := `{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"chat","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("token ", 60) +
		`"},"finish_reason":"stop"}],"usage":{"prompt_tokens":900,"completion_tokens":60,"total_tokens":960}}`
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}()

const (
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
	notFound   = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
)

// serve answers requests on one connection until it breaks.
func (e *engine) serve(c net.Conn) {
	defer c.Close()
	reader := bufio.NewReaderSize(c, 8<<10)
	for {
		r, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		answer := notFound // of /metrics: this engine reports nothing
		switch r.URL.Path {
		case askPath:
			answer = answerText
		case streamPath:
			e.stream(c)
			return
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

// stream writes frames of the usual size, one chunk and one write each.
func (e *engine) stream(c net.Conn) {
	if _, err := io.WriteString(c, streamHead); err != nil {
		return
	}
	tick := time.NewTicker(tokenEvery)
	defer tick.Stop()
	var frame, chunk []byte
	for range tick.C {
		frame = append(frame[:0], `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"chat","choices":[{"index":0,"delta":{`+sentAt...)
		frame = strconv.AppendInt(frame, int64(time.Since(e.began)), 10)
		frame = append(frame, "\"},\"finish_reason\":null}]}\n\n"...)
		chunk = strconv.AppendInt(chunk[:0], int64(len(frame)), 16)
		chunk = append(chunk, "\r\n"...)
		chunk = append(chunk, frame...)
		chunk = append(chunk, "\r\n"...)
		if _, err := c.Write(chunk); err != nil {
			return
		}
	}
}

// tokenTime returns when the token in a line of the stream was sent, as the
// engine's clock had it; false if the line holds none.
func tokenTime(line []byte) (since time.Duration, ok bool) {
	_, rest, ok := bytes.Cut(line, []byte(sentAt))
	if !ok {
		return 0, false
	}
	digits, _, ok := bytes.Cut(rest, []byte(`"`))
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	return time.Duration(n), err == nil
}
