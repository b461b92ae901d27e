package h1client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func dialTo(address string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", address)
	}
}

func newClient(t testing.TB, address string) *Client {
	c := &Client{Dial: dialTo(address), IdleTimeout: time.Minute, MaxIdle: 16}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func serve(t testing.TB, h http.HandlerFunc) *Client {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return newClient(t, s.Listener.Addr().String())
}

// raw serves each connection by hand; f gets its number, counted from 1.
func raw(t testing.TB, f func(n int, c net.Conn, r *bufio.Reader)) *Client {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				f(n, c, bufio.NewReader(c))
			}()
		}
	}()
	return newClient(t, l.Addr().String())
}

// skip reads one request.
func skip(r *bufio.Reader) error {
	req, err := http.ReadRequest(r)
	if err == nil {
		_, err = io.Copy(io.Discard, req.Body)
	}
	return err
}

func request(t testing.TB, method, body string) *http.Request {
	var b io.Reader
	if body != "" {
		b = strings.NewReader(body)
	}
	r, err := http.NewRequest(method, "http://engine/v1/x?y=1", b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func roundTrip(t testing.TB, c *Client, r *http.Request) (*http.Response, string) {
	t.Helper()
	resp, err := c.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp, string(b)
}

// TestLikeTransport sends the same requests through Client and http.Transport:
// the server must see the same, and both callers must get the same.
func TestLikeTransport(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		w.Header().Set("Date", "fixed")
		w.Header().Set("Trailer", "X-After")
		fmt.Fprintf(w, "%s %s %s %v %d %v %q %v %v", r.Method, r.RequestURI, r.Host, r.Header, r.ContentLength, r.TransferEncoding, b, err, r.Trailer)
		if r.URL.Query().Has("chunked") {
			w.(http.Flusher).Flush()
			io.WriteString(w, "more")
		}
		w.Header().Set("X-After", "1")
	}))
	defer s.Close()
	ours := newClient(t, s.Listener.Addr().String())
	theirs := &http.Transport{DisableCompression: true}
	defer theirs.CloseIdleConnections()
	big := strings.Repeat("0123456789abcdef", 20<<10)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 400 {
		method := []string{"GET", "POST", "PUT", "DELETE", "HEAD"}[random.IntN(5)]
		size := []int{0, 1, 100, 4 << 10, 16<<10 - 3, 64 << 10, 64<<10 + 1, len(big)}[random.IntN(8)]
		length := []int64{int64(size), -1}[random.IntN(2)]
		query := []string{"", "chunked"}[random.IntN(2)]
		trailer := random.IntN(2) == 0 && length < 0 && size > 0
		build := func() *http.Request {
			r, _ := http.NewRequest(method, s.URL+"/a%2fb?"+query, nil)
			r.Header = http.Header{"X-A": {"1", "2"}, "User-Agent": {""}, "Content-Type": {"text/plain"}}
			if size > 0 {
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(big[:size])), length
				if trailer {
					r.Trailer = http.Header{"X-T": {"v"}}
				}
			}
			return r
		}
		got, gotBody := roundTrip(t, ours, build())
		resp, err := theirs.RoundTrip(build())
		if err != nil {
			t.Fatal(err)
		}
		want, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if gotBody != string(want) || got.StatusCode != resp.StatusCode || got.ContentLength != resp.ContentLength ||
			fmt.Sprint(got.Trailer) != fmt.Sprint(resp.Trailer) || fmt.Sprint(got.Header) != fmt.Sprint(resp.Header) {
			t.Fatalf("request %d: %s of %d bytes, length %d, %q:\ngot  %.300s %v %v\nwant %.300s %v %v", i, method, size, length, query,
				gotBody, got.Header, got.Trailer, want, resp.Header, resp.Trailer)
		}
	}
}

func TestConnectionIsReused(t *testing.T) {
	var conns atomic.Int32
	c := raw(t, func(n int, c net.Conn, r *bufio.Reader) {
		conns.Add(1)
		for skip(r) == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	for range 10 {
		roundTrip(t, c, request(t, "POST", "hello"))
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections for 10 requests, want 1", n)
	}
}

// TestConnectionIsNotReused: each of these answers leaves a connection of which
// nobody can say what comes next.
func TestConnectionIsNotReused(t *testing.T) {
	for name, answer := range map[string]string{
		"close":         "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
		"http/1.0":      "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"bytes after":   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
		"after no body": "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
	} {
		var conns atomic.Int32
		c := raw(t, func(n int, c net.Conn, r *bufio.Reader) {
			conns.Add(1)
			for skip(r) == nil {
				io.WriteString(c, answer)
			}
		})
		for range 3 {
			if _, body := roundTrip(t, c, request(t, "GET", "")); body != "ok" && name != "after no body" {
				t.Errorf("%s: got %q", name, body)
			}
		}
		if n := conns.Load(); n != 3 {
			t.Errorf("%s: %d connections for 3 requests, want 3", name, n)
		}
	}
}

func TestStale(t *testing.T) {
	c := raw(t, func(n int, c net.Conn, r *bufio.Reader) {
		if skip(r) == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			if n == 1 {
				skip(r) // and close without an answer
			}
		}
	})
	roundTrip(t, c, request(t, "POST", "x"))
	_, err := c.RoundTrip(request(t, "POST", "x"))
	if !errors.Is(err, ErrStale) {
		t.Fatalf("got %v, want ErrStale", err)
	}
	if _, body := roundTrip(t, c, request(t, "POST", "x")); body != "ok" {
		t.Errorf("after that: %q", body)
	}
}

// TestLateEndIsNotStale: a server that dies over a request has not closed an idle
// connection.
func TestLateEndIsNotStale(t *testing.T) {
	c := raw(t, func(n int, c net.Conn, r *bufio.Reader) {
		if skip(r) == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			skip(r)
			time.Sleep(staleWithin + 10*time.Millisecond)
		}
	})
	roundTrip(t, c, request(t, "POST", "x"))
	if _, err := c.RoundTrip(request(t, "POST", "x")); err == nil || errors.Is(err, ErrStale) {
		t.Errorf("got %v, want an error that is not ErrStale", err)
	}
}

// TestFirstConnectionIsNotStale: on a new connection the same failure is the
// server's.
func TestFirstConnectionIsNotStale(t *testing.T) {
	c := raw(t, func(n int, c net.Conn, r *bufio.Reader) { skip(r) })
	_, err := c.RoundTrip(request(t, "POST", "x"))
	if err == nil || errors.Is(err, ErrStale) {
		t.Errorf("got %v, want an error that is not ErrStale", err)
	}
}

// TestClosedIdleConnectionIsNoticed: a connection that the server closed while
// it was idle is not used at all.
func TestClosedIdleConnectionIsNoticed(t *testing.T) {
	closed := make(chan bool, 1)
	c := raw(t, func(n int, c net.Conn, r *bufio.Reader) {
		if skip(r) == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			c.Close()
			closed <- true
		}
	})
	roundTrip(t, c, request(t, "POST", "x"))
	<-closed
	for range 1000 { // the end of the connection is on its way
		if !c.idle[0].alive() {
			break
		}
		time.Sleep(time.Millisecond)
	}
	roundTrip(t, c, request(t, "POST", "x"))
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	ended := make(chan bool, 1)
	c := raw(t, func(n int, c net.Conn, r *bufio.Reader) {
		for skip(r) == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
		ended <- true
	})
	c.IdleTimeout = 5 * time.Millisecond
	roundTrip(t, c, request(t, "GET", ""))
	<-ended
}

func TestCancel(t *testing.T) {
	waiting, gone := make(chan bool), make(chan bool)
	c := raw(t, func(n int, c net.Conn, r *bufio.Reader) {
		skip(r)
		waiting <- true
		_, _ = r.ReadByte() // returns when the client closes
		gone <- true
	})
	ctx, cancel := context.WithCancelCause(context.Background())
	mine := errors.New("mine")
	go func() {
		<-waiting
		cancel(mine)
	}()
	_, err := c.RoundTrip(request(t, "POST", "x").WithContext(ctx))
	if !errors.Is(err, mine) {
		t.Errorf("got %v, want the cause", err)
	}
	<-gone
}

func TestCancelWhileReading(t *testing.T) {
	gone := make(chan bool)
	c := raw(t, func(n int, c net.Conn, r *bufio.Reader) {
		skip(r)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
		_, _ = r.ReadByte()
		gone <- true
	})
	for _, end := range []string{"cancel", "close"} {
		ctx, cancel := context.WithCancel(context.Background())
		resp, err := c.RoundTrip(request(t, "POST", "x").WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		var b [2]byte
		if _, err := io.ReadFull(resp.Body, b[:]); err != nil || string(b[:]) != "ok" {
			t.Errorf("%q %v", b, err)
		}
		if end == "cancel" {
			cancel()
			if _, err := resp.Body.Read(b[:]); err == nil || err == io.EOF {
				t.Errorf("after cancel: %v, want an error", err)
			}
		}
		resp.Body.Close()
		<-gone
		cancel()
	}
	if n := len(c.idle); n != 0 {
		t.Errorf("%d idle connections, want 0", n)
	}
}

func TestBrokenAnswers(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing":       "",
		"no http":       "hello\r\n\r\n",
		"short body":    "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
		"short chunk":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nok",
		"no last chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
		"bad chunk":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n",
		"endless":       "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxHeaderBytes) + "\r\n\r\n",
		"interim":       strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", maxInterim+1),
		"two lengths":   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
	} {
		c := raw(t, func(n int, c net.Conn, r *bufio.Reader) {
			skip(r)
			io.WriteString(c, answer)
		})
		resp, err := c.RoundTrip(request(t, "GET", ""))
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestInterimAnswersArePassedOver(t *testing.T) {
	c := raw(t, func(n int, c net.Conn, r *bufio.Reader) {
		skip(r)
		io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	})
	if resp, body := roundTrip(t, c, request(t, "GET", "")); body != "ok" || resp.Header.Get("Link") != "" {
		t.Errorf("got %q %v", body, resp.Header)
	}
}

// TestEarlyAnswer: a server that refuses before it has read the request is
// heard.
func TestEarlyAnswer(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		_, _ = io.Copy(io.Discard, r.Body)
	})
	r := request(t, "POST", strings.Repeat("x", 32<<20))
	resp, body := roundTrip(t, c, r)
	if resp.StatusCode != 413 || body != "too large\n" {
		t.Errorf("got %d %q", resp.StatusCode, body)
	}
}

// closing tells when a body is closed.
type closing struct {
	io.Reader
	closed chan bool
}

func (c *closing) Close() error {
	close(c.closed)
	return nil
}

type failingReader struct{ after int }

func (f *failingReader) Read(p []byte) (int, error) {
	if f.after == 0 {
		return 0, errors.New("client left")
	}
	f.after--
	return copy(p, "x"), nil
}

func TestRequestBodyIsAlwaysClosed(t *testing.T) {
	ok := raw(t, func(n int, c net.Conn, r *bufio.Reader) {
		for skip(r) == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	refused := newClient(t, "")
	refused.Dial = func(context.Context) (net.Conn, error) { return nil, errors.New("refused") }
	for name, test := range map[string]struct {
		client *Client
		length int64
		body   io.Reader
		fails  string
	}{
		"small":       {ok, 5, strings.NewReader("hello"), ""},
		"chunked":     {ok, -1, strings.NewReader("hello"), ""},
		"large":       {ok, 1 << 20, bytes.NewReader(make([]byte, 1<<20)), ""},
		"refused":     {refused, 5, strings.NewReader("hello"), "refused"},
		"too short":   {ok, 9, strings.NewReader("hello"), "ends 4 bytes before its Content-Length"},
		"fails small": {ok, 9, &failingReader{3}, "client left"},
		"fails large": {ok, 1 << 20, &failingReader{3}, "closed"},
		"fails chunk": {ok, -1, &failingReader{3}, "closed"},
	} {
		b := &closing{test.body, make(chan bool)}
		r := request(t, "POST", "")
		r.Body, r.ContentLength = b, test.length
		resp, err := test.client.RoundTrip(r)
		if err == nil {
			resp.Body.Close()
		}
		if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%s: got %v, want %q", name, err, test.fails)
		}
		<-b.closed
	}
}

func TestBadRequestsAreNotSent(t *testing.T) {
	var seen atomic.Int32
	c := serve(t, func(w http.ResponseWriter, r *http.Request) { seen.Add(1) })
	for name, change := range map[string]func(*http.Request){
		"method":       func(r *http.Request) { r.Method = "GET /x HTTP/1.1\r\nX: y\r\n\r\nGET" },
		"target":       func(r *http.Request) { r.URL.RawQuery = "a b" },
		"newline":      func(r *http.Request) { r.URL.RawQuery = "a\r\nX: y" },
		"host":         func(r *http.Request) { r.Host = "a\r\nX: y" },
		"header name":  func(r *http.Request) { r.Header["X: y\r\nZ"] = []string{"1"} },
		"header value": func(r *http.Request) { r.Header["X"] = []string{"1\r\nZ: 2"} },
	} {
		r := request(t, "GET", "")
		change(r)
		if _, err := c.RoundTrip(r); !errors.Is(err, errBadHeader) {
			t.Errorf("%s: got %v, want errBadHeader", name, err)
		}
	}
	if n := seen.Load(); n != 0 {
		t.Errorf("%d of them were sent", n)
	}
}

func TestUpgrade(t *testing.T) {
	c := raw(t, func(n int, c net.Conn, r *bufio.Reader) {
		skip(r)
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhi")
		_, _ = io.Copy(c, r)
	})
	r := request(t, "GET", "")
	r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"echo"}}
	resp, err := c.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	rw := resp.Body.(io.ReadWriteCloser)
	defer rw.Close()
	if _, err := rw.Write([]byte("there")); err != nil {
		t.Fatal(err)
	}
	var b [7]byte
	if _, err := io.ReadFull(rw, b[:]); err != nil || string(b[:]) != "hithere" {
		t.Errorf("%q %v", b, err)
	}
}

// TestConcurrent mixes everything on one client; run it with -race.
func TestConcurrent(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Write(b)
	})
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 0))
			for i := range 50 {
				want := strings.Repeat(fmt.Sprint(g, i), 1+random.IntN(20<<10))
				r := request(t, "POST", want)
				if random.IntN(4) == 0 {
					ctx, cancel := context.WithCancel(context.Background())
					r = r.WithContext(ctx)
					go cancel()
				}
				resp, err := c.RoundTrip(r)
				if err != nil {
					if r.Context().Err() == nil {
						t.Errorf("%v", err)
					}
					continue
				}
				got, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err == nil && string(got) != want {
					t.Errorf("an answer of another request: %.20q, want %.20q", got, want)
				}
			}
		})
	}
	all.Wait()
}

// FuzzAnswer: whatever a server sends, the client ends, and keeps no connection
// on which something is left to read.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 304 Not Modified\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nyes"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		here, there := net.Pipe()
		c := &Client{Dial: func(context.Context) (net.Conn, error) { return here, nil }, IdleTimeout: time.Minute, MaxIdle: 1}
		go func() {
			_ = skip(bufio.NewReader(there))
			_, _ = there.Write(answer)
			there.Close()
		}()
		resp, err := c.RoundTrip(request(t, "GET", ""))
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		if len(c.idle) > 0 && c.idle[0].reader.Buffered() > 0 {
			t.Errorf("kept with %d bytes to read", c.idle[0].reader.Buffered())
		}
		c.CloseIdleConnections()
		here.Close()
	})
}

// TestRetire: a connection that is open when Retire is called serves no request
// after the one it has.
func TestRetire(t *testing.T) {
	var conns atomic.Int32
	c := raw(t, func(n int, c net.Conn, r *bufio.Reader) {
		conns.Store(int32(n))
		for skip(r) == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	want := func(n int32, what string) {
		t.Helper()
		if got := conns.Load(); got != n {
			t.Errorf("%s: %d connections, want %d", what, got, n)
		}
	}
	roundTrip(t, c, request(t, "GET", ""))
	roundTrip(t, c, request(t, "GET", ""))
	want(1, "kept")
	c.Retire()
	roundTrip(t, c, request(t, "GET", ""))
	want(2, "retired while idle")
	resp, err := c.RoundTrip(request(t, "GET", ""))
	if err != nil {
		t.Fatal(err)
	}
	c.Retire()
	if b, err := io.ReadAll(resp.Body); string(b) != "ok" || err != nil {
		t.Errorf("the answer under way: %q %v", b, err)
	}
	want(2, "busy")
	roundTrip(t, c, request(t, "GET", ""))
	want(3, "retired while busy")
	c.Retire()
	dial := c.Dial
	c.Dial = func(ctx context.Context) (net.Conn, error) {
		conn, err := dial(ctx)
		c.Retire()
		return conn, err
	}
	roundTrip(t, c, request(t, "GET", ""))
	roundTrip(t, c, request(t, "GET", ""))
	want(5, "retired while being dialed")
}
