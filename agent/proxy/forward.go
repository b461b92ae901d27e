package proxy

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/irb-project/irb/agent/metrics"
)

// copyBuffer is the size of the pooled buffers of answers. An answer that fits
// is read whole before a byte of it is forwarded. Small, because a thousand
// streams hold a thousand of them.
const copyBuffer = 8 << 10

// answerStream is an engine's answer on its way to the client.
type answerStream struct {
	x        *exchange
	try      *try
	response *http.Response
	buffer   *[copyBuffer]byte
	events   bool // server-sent events that can be read
	flush    bool // pass on each read at once
}

// forward sends an answer to the client, byte for byte. The failure is not nil
// only if nothing of it was forwarded.
func (x *exchange) forward(t *try, resp *http.Response) *failure {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return x.upgrade(t, resp)
	}
	s := &answerStream{x: x, try: t, response: resp, buffer: x.proxy.buffers.Get().(*[copyBuffer]byte)}
	defer func() {
		resp.Body.Close() // before its end: closes the connection, so the engine stops
		t.end()
		x.proxy.buffers.Put(s.buffer)
	}()
	s.events = strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") && plainCoding(resp.Header["Content-Encoding"])
	s.flush = resp.ContentLength < 0
	n, err := s.head()
	if err != nil && err != io.EOF {
		return s.failedBefore(err)
	}
	x.remember(t.at, s.buffer[:n])
	s.writeHeader()
	if !s.pass(s.buffer[:n]) {
		return nil
	}
	for err == nil {
		n, err = s.read(0)
		if !s.pass(s.buffer[:n]) {
			return nil
		}
	}
	if err != io.EOF {
		s.failedMidway(err)
		return nil
	}
	s.trailers()
	s.well(x.proxy.now())
	x.finishOutcome(resp.StatusCode)
	return nil
}

// plainCoding says whether a body is not compressed.
func plainCoding(values []string) bool {
	return len(values) == 0 || len(values) == 1 && strings.EqualFold(values[0], "identity")
}

// read reads once into the buffer after its first n bytes and returns how many
// are new, scanned and timed.
func (s *answerStream) read(n int) (int, error) {
	m, err := s.response.Body.Read(s.buffer[n:])
	if m == 0 {
		return 0, err
	}
	x := s.x
	now := x.proxy.now()
	if !s.events {
		if x.facts.Stream && s.response.StatusCode < 400 {
			s.try.guard.First(now) // the best sign there is, in what cannot be read
		}
		s.readUsage(n, m)
		s.limit(now)
		return m, err
	}
	if content := x.sse.scan(s.buffer[n : n+m]); content > 0 {
		if x.firstToken.IsZero() {
			x.firstToken = now
			x.ttft = now.Sub(s.try.started)
			s.try.guard.First(now)
		}
		x.lastToken = now
		s.try.guard.Progress(x.sse.Content-1, now)
	}
	if x.sse.Content > 0 || x.sse.Progress {
		s.limit(now)
	}
	return m, err
}

// limit starts another wait for the engine.
func (s *answerStream) limit(now time.Time) {
	s.try.watch.move(now.Add(s.x.limits.idleStream), &errIdle)
}

// head reads the beginning of the answer, up to which a failure can still be
// mended by another attempt: all of a short answer of known length; of events
// those that only open an answer; else whatever comes first.
func (s *answerStream) head() (n int, err error) {
	whole := s.response.ContentLength >= 0 && s.response.ContentLength <= copyBuffer
	for n < copyBuffer && err == nil {
		var m int
		m, err = s.read(n)
		n += m
		switch {
		case whole:
		case s.events:
			if !s.x.sse.openersOnly() {
				return n, err
			}
		case n > 0:
			return n, err
		}
	}
	return n, err
}

func (s *answerStream) writeHeader() {
	x, resp := s.x, s.response
	h := x.writer.Header()
	x.responseHeader(h, resp.Header)
	for name := range resp.Trailer {
		if passedTrailer(name) {
			h.Add("Trailer", name)
		}
	}
	x.closeIfDraining()
	x.status = resp.StatusCode
	if x.body != nil {
		x.body.drop() // no attempt will follow
	}
	x.extendWrite()
	x.writer.WriteHeader(resp.StatusCode)
}

// pass writes bytes to the client. It returns false if the client is gone.
func (s *answerStream) pass(b []byte) bool {
	x := s.x
	if len(b) > 0 {
		x.extendWrite()
		if _, err := x.writer.Write(b); err != nil {
			return s.clientGone()
		}
	}
	if s.flush {
		if err := x.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return s.clientGone()
		}
	}
	return true
}

func (s *answerStream) clientGone() bool {
	s.x.outcome = metrics.Canceled
	return false
}

// passedTrailer says whether a client gets a trailer: not what belongs into a
// header, the framing for one.
func passedTrailer(name string) bool {
	return !ofGateways(name) && httpguts.ValidTrailerHeader(name)
}

// trailers sends what the engine sent after the body, announced or not.
func (s *answerStream) trailers() {
	h := s.x.writer.Header()
	for name, values := range s.response.Trailer {
		if passedTrailer(name) {
			h[http.TrailerPrefix+name] = values
		}
	}
}

// failedBefore is a failure that the client need not see.
func (s *answerStream) failedBefore(err error) *failure {
	x := s.x
	x.sse.reset()
	x.firstToken, x.lastToken, x.ttft = time.Time{}, time.Time{}, 0
	reason, canceled := x.reasonOf(s.try, err)
	if canceled {
		x.abandoned()
		return nil
	}
	if reason != metrics.Timeout {
		reason = metrics.Truncated
		err = &truncated{err}
	} else {
		err = s.try.ctx.Cause()
	}
	s.try.blame(reason)
	return &failure{reason: reason, err: err, try: s.try}
}

// truncated is an answer that ends before its Content-Length or its last chunk.
type truncated struct{ err error }

func (e *truncated) Error() string { return "the answer broke off: " + e.err.Error() }
func (e *truncated) Unwrap() error { return e.err }

// failedMidway ends an answer of which the client has a part, such that the
// client notices.
func (s *answerStream) failedMidway(err error) {
	x := s.x
	if x.clientLeft() {
		x.outcome = metrics.Canceled
		return
	}
	if cause := s.try.ctx.Cause(); cause != nil {
		err = cause
	}
	x.outcome = metrics.Broken
	s.try.blame(metrics.Truncated)
	x.proxy.metrics.RetryHeld(metrics.HeldForwarded)
	engine := x.plan.engineName(s.try.at.engine)
	x.proxy.log.Warn("answer broke off", "request_id", x.requestIDValue[0], "class", x.class.Spec.Name,
		"engine", engine, "endpoint", s.try.at.endpoint.id, "err", err)
	if s.events && x.plan.eventOnFailure {
		s.errorEvent(engine)
		return
	}
	if !x.request.ProtoAtLeast(1, 1) {
		x.reset()
	}
	// The server closes the connection, or resets the HTTP/2 stream, without
	// the mark that a complete body ends with.
	panic(http.ErrAbortHandler)
}

// reset breaks the client's connection. To HTTP/1.0 an answer of unknown length
// ends with its connection, so that a close would be taken for its end, and so
// would the alert with which TLS closes.
func (x *exchange) reset() {
	conn, rest, err := x.control.Hijack()
	if err != nil {
		return // then it is only closed
	}
	_ = rest.Flush() // the client may be gone
	for {
		wrapped, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		conn = wrapped.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails if it is gone
	}
	conn.Close()
}

// errorEvent ends a stream with an event that tells of the failure; no [DONE]
// follows.
func (s *answerStream) errorEvent(engine string) {
	a := &answer{kind: "server_error", code: "stream_broken", message: "engine \"" + engine + "\" failed in the middle of its answer"}
	var event []byte
	if s.x.sse.midFrame {
		event = append(event, "\n\n"...) // end what is unfinished
	}
	event = append(event, "data: "...)
	event = append(event, a.body()...)
	event = append(event, "\n\n"...)
	s.pass(event)
}
