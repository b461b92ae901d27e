package proxy

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/irb-project/irb/agent/metrics"
)

// TestFailuresInPlainWords: what clients read names neither an address of the
// fleet nor a setting; the log has the details.
func TestFailuresInPlainWords(t *testing.T) {
	closed := engine(t, nil)
	closed.Close()
	hung := make(chan bool)
	for _, test := range []struct {
		name   string
		engine *httptest.Server
		more   string
		status int
		want   string
		log    string
	}{
		{"refused", closed, "", 503, "could not be reached; endpoints tried: 1, no other is left", "connection refused"},
		{"reset", raw(t, func(_ int, c net.Conn, _ *http.Request) { reset(c) }), "",
			502, "broke the connection before it answered; endpoints tried: 1, no other is left", "connection reset"},
		{"closed", raw(t, func(int, net.Conn, *http.Request) {}), "",
			502, "broke the connection before it answered", "EOF"},
		{"no HTTP", raw(t, func(_ int, c net.Conn, _ *http.Request) { io.WriteString(c, "SSH-2.0\r\n\r\n") }), "",
			502, "gave no valid answer", "malformed HTTP"},
		{"cut", raw(t, func(_ int, c net.Conn, _ *http.Request) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello")
			reset(c)
		}), "", 502, "broke off its answer", "connection reset"},
		{"silent", engine(t, func(http.ResponseWriter, *http.Request) { <-hung }), "[timeouts]\nttft = \"20ms\"\n",
			504, "did not answer in time", "timeouts.ttft"},
		{"attempts", raw(t, func(_ int, c net.Conn, _ *http.Request) { reset(c) }), "[retry]\nattempts = 1\n",
			502, "broke the connection before it answered; endpoints tried: 1, no more may be tried for one request", "connection reset"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := start(t, fleet(named("a", test.engine)), test.more)
			resp := r.post(streamBody)
			text := read(t, resp)
			if resp.StatusCode != test.status || !strings.Contains(text, `engine \"a\" `+test.want) {
				t.Errorf("got %d %s, want %d %q", resp.StatusCode, text, test.status, test.want)
			}
			for _, secret := range []string{"127.0.0.1", "tcp", "read:", "dial", "allow_", "timeouts", "retry."} {
				if strings.Contains(text, secret) {
					t.Errorf("the client reads %q in %s", secret, text)
				}
			}
			r.logged(test.log)
		})
	}
	close(hung)
}

// TestNoMore: each reason not to try again has words of its own.
func TestNoMore(t *testing.T) {
	seen := map[string]metrics.Reason{}
	for held := metrics.HeldAttempts; held <= metrics.HeldNobody; held++ {
		words := noMore(held)
		if other, twice := seen[words]; twice || strings.Contains(words, "budget") {
			t.Errorf("%v and %v: %q", held, other, words)
		}
		seen[words] = held
	}
}
