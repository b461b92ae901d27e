package h1server

import (
	"bufio"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/irb-project/irb/agent/h1wire"
)

// FuzzParse: what is taken as plain, net/http takes in the same way.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
		"GET /v1/models?x=%2f HTTP/1.1\r\nhost: a:80\r\nconnection: close\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 3\r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "POST / HTTP/1.1\r\n\r\n",
		"GET //a/../b HTTP/1.1\r\nHost: a\r\n\r\n", "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.0\r\nHost: a\r\n\r\n", "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nPragma: no-cache\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n := h1wire.End([]byte(text))
		if n <= 0 {
			return
		}
		got, length, ok := parse(text[:n], http.Header{})
		if !ok {
			return
		}
		reader := bufio.NewReader(strings.NewReader(text))
		want, err := http.ReadRequest(reader)
		if err != nil {
			t.Fatalf("%q: taken, but net/http: %v", text, err)
		}
		if want.ContentLength != length || reader.Buffered() != len(text)-n && len(text) < 4096 {
			t.Fatalf("%q: length %d, header of %d; net/http: %d, %d", text, length, n, want.ContentLength, len(text)-reader.Buffered())
		}
		want.Body = nil
		want.Header.Del("Host") // as http.Server does
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %+v, want %+v", text, got, want)
		}
	})
}
