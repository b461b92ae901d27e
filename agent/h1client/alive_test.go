package h1client

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// rawTLS is raw, over TLS.
func rawTLS(t *testing.T, f func(n int, c net.Conn, r *bufio.Reader)) *Client {
	certified := httptest.NewTLSServer(nil)
	t.Cleanup(certified.Close)
	config := certified.TLS.Clone()
	config.NextProtos, config.DynamicRecordSizingDisabled = nil, true
	c := raw(t, func(n int, plain net.Conn, _ *bufio.Reader) {
		secure := tls.Server(plain, config)
		f(n, secure, bufio.NewReader(secure))
	})
	dial := c.Dial
	c.Dial = func(ctx context.Context) (net.Conn, error) {
		plain, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		secure := tls.Client(plain, &tls.Config{InsecureSkipVerify: true}) // a test of framing
		return secure, secure.HandshakeContext(ctx)
	}
	return c
}

// readAtOnce sends a request and reads the answer past the client's buffer.
func readAtOnce(t *testing.T, c *Client) string {
	t.Helper()
	resp, err := c.RoundTrip(request(t, "GET", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b := make([]byte, 16*readBufferBytes)
	n, err := io.ReadFull(resp.Body, b)
	if err != io.ErrUnexpectedEOF {
		t.Fatal(err)
	}
	return string(b[:n])
}

// TestNothingBehindAnAnswerIsTaken: what a server sends beyond an answer is never
// the answer to the next request, though that follows at once. Bodies larger than
// the buffer are read past it.
func TestNothingBehindAnAnswerIsTaken(t *testing.T) {
	const evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	large := strings.Repeat("x", 2*readBufferBytes)
	transports := map[string]func(*testing.T, func(int, net.Conn, *bufio.Reader)) *Client{
		"plain": func(t *testing.T, f func(int, net.Conn, *bufio.Reader)) *Client { return raw(t, f) },
		"TLS":   rawTLS,
	}
	for name, start := range transports {
		for _, late := range []bool{false, true} {
			evilNow := make(chan bool)
			c := start(t, func(n int, c net.Conn, r *bufio.Reader) {
				if skip(r) != nil {
					return
				}
				answer := "HTTP/1.1 200 OK\r\nContent-Length: 8192\r\n\r\n" + large
				switch {
				case n > 1:
					io.WriteString(c, answer)
				case late:
					io.WriteString(c, answer)
					<-evilNow
					io.WriteString(c, evil)
				default:
					io.WriteString(c, answer+evil) // one record of TLS
				}
				skip(r)
			})
			if body := readAtOnce(t, c); body != large {
				t.Fatalf("%s: %d bytes", name, len(body))
			}
			if late {
				evilNow <- true
			}
			for range 1000 { // it is on its way
				if len(c.idle) == 0 || !c.idle[0].alive() {
					break
				}
				time.Sleep(time.Millisecond)
			}
			if body := readAtOnce(t, c); body != large {
				t.Errorf("%s, late %v: the next answer is %q", name, late, body[:min(10, len(body))])
			}
		}
	}
}

// TestTLSConnectionIsReused: the look for more does not end a connection.
func TestTLSConnectionIsReused(t *testing.T) {
	var conns atomic.Int32
	large := strings.Repeat("x", 2*readBufferBytes)
	c := rawTLS(t, func(n int, c net.Conn, r *bufio.Reader) {
		conns.Add(1)
		for skip(r) == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 8192\r\n\r\n"+large)
		}
	})
	for range 5 {
		if _, body := roundTrip(t, c, request(t, "POST", "x")); body != large {
			t.Fatalf("%d bytes", len(body))
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}
