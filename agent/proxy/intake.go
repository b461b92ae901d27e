package proxy

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/irb-project/irb/agent/body"
)

// modelHeader names the model of a request whose body cannot say it.
const modelHeader = "X-Gateway-Model-Name"

// intake reads the body where it may hold the model, and what it says.
func (x *exchange) intake() *answer {
	r := x.request
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		x.facts.Model = modelFromTarget(r)
		return nil
	}
	if r.Header.Get("Expect") != "" {
		x.extendWrite() // of the 100 Continue that the server sends
	}
	mediaType := r.Header.Get("Content-Type")
	source := &x.source
	source.body.x, source.body.limit = x, x.plan.config.Timeouts.ClientRead
	if !scannable(mediaType) {
		// An engine may read a JSON object whatever its type says, so what it says
		// counts more than what the target does.
		object, err := source.beginsObject()
		if err != nil {
			return x.unreadable(err)
		}
		if !object {
			x.facts.Model = modelFromTarget(r)
			x.upload, x.opaque = source, true
			return nil
		}
	}
	if refusal := x.readBody(source); refusal != nil {
		return refusal
	}
	return x.scanBody(mediaType)
}

func modelFromTarget(r *http.Request) string {
	if m := r.Header[modelHeader]; len(m) == 1 {
		return m[0]
	}
	if r.URL.RawQuery == "" {
		return ""
	}
	return r.URL.Query().Get("model")
}

// scannable says whether a body of this type may name its model. Clients often
// send JSON without saying so.
func scannable(contentType string) bool {
	if contentType == "application/json" { // nearly always
		return true
	}
	t, _, err := mime.ParseMediaType(contentType)
	return err != nil || t == "application/json" || strings.HasSuffix(t, "+json") || t == "multipart/form-data" ||
		strings.HasPrefix(t, "text/")
}

// readBody takes the body into memory, within the limits of a request and of
// the agent.
func (x *exchange) readBody(source io.Reader) *answer {
	x.body = x.proxy.bodies.get()
	if err := x.body.read(source, x.request.ContentLength, int64(x.plan.config.Body.MaxRequest)); err != nil {
		return x.unreadable(err)
	}
	return nil
}

// unreadable is the answer to a body that could not be taken into memory.
func (x *exchange) unreadable(err error) *answer {
	switch {
	case errors.Is(err, errBodyTooLarge):
		return &answer{
			status: http.StatusRequestEntityTooLarge, kind: "invalid_request_error", code: "request_too_large",
			message: fmt.Sprintf("the request body is larger than the %d bytes that are read to find its model", int64(x.plan.config.Body.MaxRequest)),
		}
	case errors.Is(err, errAgentFull):
		// A 413 that passes: RFC 9110 says so with Retry-After.
		return &answer{
			status: http.StatusRequestEntityTooLarge, kind: "overloaded_error", code: "bodies_full", dropped: droppedSaturated,
			message: "request bodies held by this gateway fill its memory budget, try again", retryAfter: time.Second,
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return bodyTimeout()
	}
	return badRequest("body_unreadable", "", "the request body could not be read: "+err.Error())
}

func bodyTimeout() *answer {
	return &answer{
		status: http.StatusRequestTimeout, kind: "invalid_request_error", code: "body_timeout",
		message: "the request body did not arrive in time",
	}
}

// slowReader reads the client's body with a limit on silence, which acts up to a
// quarter late: it is moved when less than the limit is left. The deadline of the
// request holds too. At the end the limit is lifted: the server goes on reading
// the connection to notice a client that leaves.
type slowReader struct {
	x       *exchange
	limit   time.Duration
	until   time.Time
	waiting atomic.Bool // for the client
}

func (s *slowReader) Read(p []byte) (int, error) {
	if now := s.x.proxy.now(); s.until.Sub(now) < s.limit {
		s.until = now.Add(s.limit + s.limit/4)
		if s.x.deadline.Before(s.until) {
			s.until = s.x.deadline
		}
		_ = s.x.control.SetReadDeadline(s.until) // a reader without deadlines needs none
	}
	s.waiting.Store(true)
	n, err := s.x.request.Body.Read(p)
	s.waiting.Store(false)
	switch {
	case err == io.EOF:
		s.x.bodyEnded.Store(true)
		_ = s.x.control.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.x.silent.Store(true)
	}
	return n, err
}

// boundUnread limits what the server may wait for when it discards a body that
// was not read to its end.
func (x *exchange) boundUnread() {
	if x.request.ContentLength == 0 || x.bodyEnded.Load() {
		return
	}
	limit := defaultWriteTimeout
	if x.plan != nil {
		limit = x.plan.config.Timeouts.ClientRead
	}
	_ = x.control.SetReadDeadline(x.proxy.now().Add(limit))
}

// scanBody looks for the model and the affinity. The body itself goes on as it
// came, compressed if it was.
func (x *exchange) scanBody(contentType string) *answer {
	plain, refusal := x.plainBody()
	if refusal != nil {
		return refusal
	}
	if plain != x.body {
		defer plain.drop()
	}
	mediaType, params := contentType, map[string]string(nil)
	if contentType != "application/json" {
		mediaType, params, _ = mime.ParseMediaType(contentType)
	}
	var err error
	if mediaType == "multipart/form-data" {
		x.facts, err = body.ScanForm(plain.data, params["boundary"])
	} else {
		x.facts, err = body.ScanJSON(plain.data)
	}
	isJSON := mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
	switch {
	case errors.Is(err, body.ErrDuplicateModel):
		return badRequest("duplicate_model", "model", "the request names its model twice")
	case err != nil && (isJSON || mediaType == "multipart/form-data"):
		return badRequest("bad_body", "", err.Error())
	}
	x.opaque = err != nil
	if x.facts.Model == "" {
		x.facts.Model = modelFromTarget(x.request)
	}
	return nil
}

// plainBody returns the body without its content encoding, within the same
// limits: a small body may unpack to a very large one.
func (x *exchange) plainBody() (*bodyBuffer, *answer) {
	encoding := x.request.Header.Get("Content-Encoding")
	if encoding == "" || strings.EqualFold(encoding, "identity") {
		return x.body, nil
	}
	var unpack io.Reader
	var err error
	switch packed := bytes.NewReader(x.body.data); strings.ToLower(encoding) {
	case "gzip", "x-gzip":
		unpack, err = gzip.NewReader(packed)
	case "deflate":
		unpack, err = zlib.NewReader(packed)
	default:
		return nil, &answer{
			status: http.StatusUnsupportedMediaType, kind: "invalid_request_error", code: "unsupported_encoding",
			message: fmt.Sprintf("Content-Encoding %q cannot be read here, want gzip, deflate or none", encoding),
		}
	}
	plain := x.proxy.bodies.get()
	if err == nil {
		err = plain.read(unpack, -1, int64(x.plan.config.Body.MaxRequest))
	}
	if err != nil {
		plain.drop()
		return nil, x.unreadable(err)
	}
	return plain, nil
}
