package proxy

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// answer is one of our own in the form that clients of the OpenAI API read,
// nearly always a refusal.
type answer struct {
	status  int
	kind    string // "type" of the error
	code    string
	param   string // the field of the request that is wrong, if one is
	message string
	// dropped says in one word why we refused a request that was in order.
	dropped    string
	retryAfter time.Duration // 0: none
	content    []byte        // the whole body, where it is no refusal; nil: an error
}

// Words of the dropped-reason header, those of llm-d.
const (
	droppedSaturated   = "rejected-saturated"
	droppedNoEndpoints = "rejected-no-endpoints"
	droppedExpired     = "rejected-ttl-expired"
	droppedShutdown    = "rejected-shutting-down"
)

func badRequest(code, param, message string) *answer {
	return &answer{status: http.StatusBadRequest, kind: "invalid_request_error", code: code, param: param, message: message}
}

// body returns the JSON.
func (a *answer) body() []byte {
	if a.content != nil {
		return a.content
	}
	type fields struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Code    string  `json:"code"`
		Param   *string `json:"param"`
	}
	f := fields{Message: a.message, Type: a.kind, Code: a.code}
	if a.param != "" {
		f.Param = &a.param
	}
	b, err := json.Marshal(map[string]fields{"error": f})
	if err != nil {
		return []byte(`{"error":{"message":"internal error","type":"server_error","code":null,"param":null}}`)
	}
	return b
}

// write sends the error. The request id is in the header already.
func (a *answer) write(w http.ResponseWriter) {
	b := a.body()
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	if a.dropped != "" {
		h.Set("X-Irb-Request-Dropped-Reason", a.dropped)
	}
	if a.retryAfter > 0 {
		seconds := (a.retryAfter + time.Second - 1) / time.Second
		h.Set("Retry-After", strconv.Itoa(int(seconds)))
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(b) // a client that has left cannot be told so
}
