package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestDrainWaitsForHeaders: a request of which only a part was read when the
// server stops is answered, also if its rest shows that it is for net/http.
func TestDrainWaitsForHeaders(t *testing.T) {
	e := engine(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "{}") })
	plain := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(chatBody), chatBody)
	chunked := fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(chatBody), chatBody)
	const line = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
	for name, test := range map[string]struct{ before, begin, rest string }{
		"plain":                 {"", line, plain},
		"chunked":               {"", line, chunked},
		"chunked on a kept one": {line + plain, line, chunked},
		"larger than one read":  {"", line + "X-A: " + strings.Repeat("a", 20<<10) + "\r\n", chunked},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, fleet(named("a", e)), "")
			c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(20 * time.Second))
			in := bufio.NewReader(c)
			answer := func() {
				t.Helper()
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				expect(t, resp, http.StatusOK, "{}")
			}
			if test.before != "" {
				io.WriteString(c, test.before)
				answer()
			}
			io.WriteString(c, test.begin)
			time.Sleep(50 * time.Millisecond) // it is read
			closed, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			drained := make(chan error)
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				defer cancel()
				drained <- r.server.Drain(ctx, closed)
			}()
			time.Sleep(10 * freshPoll)
			io.WriteString(c, test.rest)
			answer()
			c.Close()
			if err := <-drained; err != nil {
				t.Error(err)
			}
		})
	}
}
