package h1client

import (
	"bufio"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// FuzzReadPlain: what is taken as plain, net/http takes in the same way.
func FuzzReadPlain(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
		"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nConnection: close\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200  OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 999 x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := &http.Request{Method: http.MethodPost}
		x := &exchange{}
		from := bufio.NewReader(strings.NewReader(text))
		_, _ = from.Peek(1)
		held := from.Buffered()
		got := x.readPlain(r, from)
		if got == nil {
			if from.Buffered() != held {
				t.Fatalf("%q: not taken, but read", text)
			}
			return
		}
		fromToo := bufio.NewReader(strings.NewReader(text))
		want, err := http.ReadResponse(fromToo, r)
		if err != nil {
			t.Fatalf("%q: taken, but net/http: %v", text, err)
		}
		gotBody, gotErr := io.ReadAll(got.Body)
		wantBody, wantErr := io.ReadAll(want.Body)
		if string(gotBody) != string(wantBody) || gotErr != wantErr {
			t.Fatalf("%q: body %q %v, want %q %v", text, gotBody, gotErr, wantBody, wantErr)
		}
		gotRest, _ := io.ReadAll(from)
		wantRest, _ := io.ReadAll(fromToo)
		if string(gotRest) != string(wantRest) {
			t.Fatalf("%q: leaves %q, want %q", text, gotRest, wantRest)
		}
		g, w := *got, *want
		g.Body, w.Body = nil, nil
		if !reflect.DeepEqual(g, w) {
			t.Fatalf("%q: %+v, want %+v", text, g, w)
		}
	})
}
