package h1wire

import (
	"bufio"
	"maps"
	"net/http"
	"net/textproto"
	"reflect"
	"strings"
	"testing"
)

func TestEnd(t *testing.T) {
	for text, want := range map[string]int{
		"":                           0,
		"GET / HTTP/1.1\r\n":         0,
		"GET / HTTP/1.1\r\n\r":       0,
		"a: b\r\n\r\n":               8,
		"a: b\r\n\r\nbody\r\n\r\n":   8,
		"a: b\n":                     -1, // net/http takes it
		"\nGET":                      -1,
		"a: b\r\nc: d\n\r\nbody":     -1,
		"a: b\nc: d\n\nbody\r\n\r\n": 19, // Fields refuses what is in it
	} {
		if got := End([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestFields(t *testing.T) {
	tests := []struct {
		block string
		want  http.Header // nil: not plain
	}{
		{"\r\n", http.Header{}},
		{"Host: a\r\ncontent-type: text/plain \r\nX-A:1\r\nx-a:\t2\r\nX-Empty:\r\n\r\n", http.Header{
			"Host": {"a"}, "Content-Type": {"text/plain"}, "X-A": {"1", "2"}, "X-Empty": {""},
		}},
		{"x-REQUEST-id: é\r\n\r\n", nil},
		{"Host: a\r\n", nil},
		{"Host: a\r\n b\r\n\r\n", nil},
		{"Host : a\r\n\r\n", nil},
		{": a\r\n\r\n", nil},
		{"Host\r\n\r\n", nil},
		{"A: b\x00\r\n\r\n", nil},
		{"A: b\nC: d\r\n\r\n", nil},
		{"A: b\r\n\r\nC: d\r\n\r\n", nil},
	}
	for _, test := range tests {
		h := http.Header{}
		ok := Fields(test.block, h)
		if ok != (test.want != nil) || ok && !reflect.DeepEqual(h, test.want) {
			t.Errorf("%q: %v %v, want %v", test.block, ok, h, test.want)
		}
	}
}

func TestFieldsDoNotShareRoom(t *testing.T) {
	h := http.Header{}
	if !Fields("A: 1\r\nB: 2\r\n\r\n", h) {
		t.Fatal("not plain")
	}
	h.Add("A", "3")
	if h.Get("B") != "2" {
		t.Errorf("adding to A changed B to %q", h.Get("B"))
	}
}

func TestLength(t *testing.T) {
	tests := []struct {
		h    http.Header
		want int64 // -2: not plain
	}{
		{http.Header{}, -1},
		{http.Header{"Content-Length": {"0"}}, 0},
		{http.Header{"Content-Length": {"4096"}}, 4096},
		{http.Header{"Content-Length": {"1", "1"}}, -2},
		{http.Header{"Content-Length": {""}}, -2},
		{http.Header{"Content-Length": {"+1"}}, -2},
		{http.Header{"Content-Length": {"1,1"}}, -2},
		{http.Header{"Content-Length": {"9999999999999999999"}}, -2},
		{http.Header{"Content-Length": {"1"}, "Transfer-Encoding": {"chunked"}}, -2},
	}
	for _, test := range tests {
		n, ok := Length(test.h)
		if !ok {
			n = -2
		}
		if n != test.want {
			t.Errorf("%v: %d, want %d", test.h, n, test.want)
		}
	}
}

// FuzzFields: what is taken, net/textproto takes in the same way.
func FuzzFields(f *testing.F) {
	for _, seed := range []string{
		"Host: a\r\nContent-Length: 3\r\n\r\n", "a:b\r\nA: c\r\n\r\n", "x-\x00: a\r\n\r\n", "A:\r\n b\r\n\r\n", "\r\n",
		"accept-encoding: gzip, br\r\nX_y: 1\r\n\r\n", "A: \t b \t\r\n\r\n", "A-b-: c\r\n\r\n", "-a: 1\r\n\r\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, block string) {
		h := http.Header{}
		if !Fields(block, h) {
			return
		}
		if n := End([]byte("x\r\n" + block)); n != len(block)+3 {
			t.Fatalf("%q ends at %d", block, n-3)
		}
		want, err := textproto.NewReader(bufio.NewReader(strings.NewReader(block))).ReadMIMEHeader()
		if err != nil || !maps.EqualFunc(h, want, func(a, b []string) bool { return reflect.DeepEqual(a, b) }) {
			t.Fatalf("%q: %v, but net/textproto: %v %v", block, h, want, err)
		}
	})
}
