package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestForwards(t *testing.T) {
	var got *http.Request
	var body string
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
		w.Header().Set("Endpoint-Load-Metrics", "TEXT named_metrics.x=1")
		w.Header().Set("X-Engine", "yes")
		w.WriteHeader(201)
		io.WriteString(w, "done")
	})
	r := start(t, fleet(named("a", e)), "")
	resp := r.post(chatBody, "X-Request-Id", "abc", "X-Gateway-Destination-Endpoint", "10.0.0.1:80", "X-Irb-Class", "gold",
		"Connection", "x-secret", "X-Secret", "1", "Traceparent", "00-1-2-01", "X-Forwarded-For", "8.8.8.8")
	expect(t, resp, 201, "done")
	if body != chatBody || got.ContentLength != int64(len(chatBody)) {
		t.Errorf("the engine got %q, length %d", body, got.ContentLength)
	}
	for name, want := range map[string]string{
		"X-Request-Id": "abc", "X-Gateway-Destination-Endpoint": "", "X-Irb-Class": "", "X-Secret": "",
		"Traceparent": "00-1-2-01", "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http",
		"X-Forwarded-Host": strings.TrimPrefix(r.url, "http://"),
	} {
		if v := got.Header.Get(name); v != want {
			t.Errorf("the engine got %s: %q, want %q", name, v, want)
		}
	}
	for name, want := range map[string]string{"X-Request-Id": "abc", "X-Engine": "yes", "Endpoint-Load-Metrics": ""} {
		if v := resp.Header.Get(name); v != want {
			t.Errorf("the client got %s: %q, want %q", name, v, want)
		}
	}
	r.idle()
	if n := r.metric(`irb_requests_total{class="chat",engine="a",outcome="ok"}`); n != "1" {
		t.Errorf("requests ok: %q, want 1", n)
	}
}
