package h1server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// listen starts a Server whose refused connections go to net/http, and returns
// its address.
func listen(t *testing.T, h http.HandlerFunc) (*Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		Handler: h, HeaderTimeout: 10 * time.Second, IdleTimeout: 10 * time.Second, Log: slog.New(slog.DiscardHandler),
		Other: func(c net.Conn) { serveFully(c, h) },
	}
	go s.Serve(l)
	t.Cleanup(func() {
		l.Close()
		s.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Wait(ctx); err != nil {
			t.Errorf("connections left: %v", err)
		}
	})
	return s, l.Addr().String()
}

// serveFully lets net/http serve one connection; its answers say so.
func serveFully(c net.Conn, h http.HandlerFunc) {
	one := &oneConn{conn: c}
	_ = (&http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Full", "1")
		if r.URL.Path != "/first" {
			h(w, r)
		}
	})}).Serve(one)
}

type oneConn struct {
	net.Listener
	conn net.Conn
}

func (o *oneConn) Accept() (net.Conn, error) {
	if c := o.conn; c != nil {
		o.conn = nil
		return c, nil
	}
	return nil, net.ErrClosed
}
func (o *oneConn) Close() error   { return nil }
func (o *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// client is a raw connection.
type client struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dial(t *testing.T, address string) *client {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return &client{t, c, bufio.NewReader(c)}
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads one answer with its body.
func (c *client) answer() (*http.Response, string, error) {
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, "", err
	}
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}

func post(body string, fields ...string) string {
	return fmt.Sprintf("POST /p?q=1 HTTP/1.1\r\nHost: h\r\n%sContent-Length: %d\r\n\r\n%s", strings.Join(fields, ""), len(body), body)
}

// handlers do what handlers may do.
var handlers = map[string]http.HandlerFunc{
	"nothing": func(http.ResponseWriter, *http.Request) {},
	"echo": func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		w.Header().Set("Content-Length", strconv.Itoa(len(b)))
		w.Header().Set("X-Saw", fmt.Sprint(r.Method, r.RequestURI, r.URL.Path, r.Host, r.ContentLength, r.Proto, len(r.Header), err, r.Close))
		w.Write(b)
	},
	"chunks and trailers": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Trailer", "X-Sum, X-None")
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			if err := http.NewResponseController(w).Flush(); err != nil {
				panic(err)
			}
		}
		w.Write([]byte(strings.Repeat("x", 40<<10)))
		w.Header().Set("X-Sum", "7")
		w.Header().Set(http.TrailerPrefix+"X-Late", "8")
	},
	"large": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", strconv.Itoa(100<<10))
		for range 10 {
			w.Write([]byte(strings.Repeat("y", 10<<10)))
		}
	},
	"no content": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-A", "1")
		w.WriteHeader(http.StatusNoContent)
		if _, err := w.Write([]byte("b")); err != http.ErrBodyNotAllowed {
			panic(fmt.Sprint("body of a 204: ", err))
		}
	},
	"error without reading": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", "2")
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, "no")
	},
	"lines in values": func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Evil"] = []string{"a\r\nX-Injected: 1"}
		w.Header()["Bad Name"] = []string{"b"}
		w.Header().Set("Content-Length", "0")
	},
	"close": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		w.Header().Set("Content-Length", "0")
	},
	"short": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "10")
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, "abc")
	},
	"abort in the middle": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, "abc")
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	},
	"panic": func(http.ResponseWriter, *http.Request) { panic("test") },
}

// TestAnswersAsNetHTTP: whatever a handler does, the client sees what net/http
// would make of it.
func TestAnswersAsNetHTTP(t *testing.T) {
	requests := map[string]string{
		"get":         "GET /g%2Fh HTTP/1.1\r\nHost: h\r\nx-lower: 1\r\nX-lower: 2\r\n\r\n",
		"post":        post("hello"),
		"large post":  post(strings.Repeat("z", 100<<10)),
		"close":       post("hello", "Connection: close\r\n"),
		"two at once": post("hello") + post("again"),
	}
	for name, handler := range handlers {
		for kind, request := range requests {
			t.Run(name+", "+kind, func(t *testing.T) {
				var seen [2][]string
				for i := range seen {
					_, address := listen(t, handler)
					c := dial(t, address)
					if i == 1 { // lets net/http serve the connection from here on
						c.send("GET /first HTTP/1.1\r\nHost: h\r\nPragma: x\r\n\r\n")
						if _, _, err := c.answer(); err != nil {
							t.Fatal(err)
						}
					}
					c.send(request)
					for range strings.Count(request, " HTTP/1.1\r\n") {
						resp, body, err := c.answer()
						if err != nil && resp == nil {
							seen[i] = append(seen[i], "no answer")
							break
						}
						if full := resp.Header.Get("X-Full"); (full != "") != (i == 1) {
							t.Fatalf("served by the wrong server")
						}
						resp.Header.Del("X-Full")
						resp.Header.Del("Date")
						resp.Header.Del("Content-Type") // net/http guesses one
						seen[i] = append(seen[i], fmt.Sprint(resp.Status, resp.Header, resp.ContentLength, resp.TransferEncoding, resp.Trailer, resp.Close, len(body), body[:min(20, len(body))], err == nil))
						if resp.Close {
							break
						}
					}
				}
				if !reflect.DeepEqual(seen[0], seen[1]) {
					t.Errorf("\n%q, net/http:\n%q", seen[0], seen[1])
				}
			})
		}
	}
}

func TestNoMoreThanTheLength(t *testing.T) {
	_, address := listen(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "2")
		if _, err := io.WriteString(w, "abc"); err != http.ErrContentLength {
			t.Error(err)
		}
		io.WriteString(w, "ab")
	})
	c := dial(t, address)
	c.send(post(""))
	if _, body, err := c.answer(); body != "ab" || err != nil {
		t.Errorf("%q %v", body, err)
	}
}

// TestOtherKinds: what is not plain is served by net/http, none of it lost.
func TestOtherKinds(t *testing.T) {
	_, address := listen(t, handlers["echo"])
	for name, request := range map[string]string{
		"chunked":        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"expect":         "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
		"other method":   "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
		"version 1.0":    "POST / HTTP/1.0\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
		"bare line feed": "POST / HTTP/1.1\nHost: h\nContent-Length: 5\n\nhello",
		"large header":   "POST / HTTP/1.1\r\nHost: h\r\nX-Large: " + strings.Repeat("a", 20<<10) + "\r\nContent-Length: 5\r\n\r\nhello",
	} {
		c := dial(t, address)
		c.send(post("plain"))
		resp, body, err := c.answer()
		if err != nil || body != "plain" || resp.Header.Get("X-Full") != "" {
			t.Fatalf("%s: before it: %v %q", name, err, body)
		}
		c.send(request)
		for {
			if resp, body, err = c.answer(); err != nil || resp.StatusCode != http.StatusContinue {
				break
			}
		}
		if err != nil || body != "hello" || resp.Header.Get("X-Full") != "1" {
			t.Errorf("%s: %v, %q of %v", name, err, body, resp)
		}
	}
	c := dial(t, address)
	c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5, 5\r\n\r\nhello")
	if resp, _, err := c.answer(); err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("bad length: %v %v", err, resp)
	}
}

func TestHeaderInPieces(t *testing.T) {
	_, address := listen(t, handlers["echo"])
	c := dial(t, address)
	for range 2 {
		request := post("hello")
		for len(request) > 0 {
			n := min(7, len(request))
			c.send(request[:n])
			request = request[n:]
			time.Sleep(time.Millisecond)
		}
		if _, body, err := c.answer(); err != nil || body != "hello" {
			t.Fatalf("%v %q", err, body)
		}
	}
}

// TestClientLeaves: the context of a request whose client leaves ends, before
// and while the answer is written.
func TestClientLeaves(t *testing.T) {
	for _, streams := range []bool{false, true} {
		left := make(chan error, 1)
		_, address := listen(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			if streams {
				io.WriteString(w, "begun")
				w.(http.Flusher).Flush()
			}
			<-r.Context().Done()
			left <- r.Context().Err()
		})
		c := dial(t, address)
		c.send(post("hello"))
		if streams {
			if _, err := http.ReadResponse(c.in, nil); err != nil {
				t.Fatal(err)
			}
		}
		c.conn.Close()
		select {
		case err := <-left:
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("streams %v: the handler never heard of it", streams)
		}
	}
}

// TestNextRequestWhileAnswering: what a client sends before it has its answer is
// the next request, also when it is read while watching for the client's end.
func TestNextRequestWhileAnswering(t *testing.T) {
	_, address := listen(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		time.Sleep(4 * watchAfter)
		w.Write(b)
	})
	c := dial(t, address)
	c.send(post("one"))
	time.Sleep(2 * watchAfter)
	c.send(post("two"))
	c.send(post("three"))
	for _, want := range []string{"one", "two", "three"} {
		if _, body, err := c.answer(); err != nil || body != want {
			t.Fatalf("%q %v, want %q", body, err, want)
		}
	}
}

func TestDeadlines(t *testing.T) {
	read := make(chan error, 1)
	_, address := listen(t, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if err := errors.Join(control.SetReadDeadline(time.Now().Add(50*time.Millisecond)), control.SetWriteDeadline(time.Now().Add(time.Minute))); err != nil {
			t.Error(err)
		}
		_, err := io.ReadAll(r.Body)
		read <- err
		if err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
		}
	})
	c := dial(t, address)
	c.send(post("whole"))
	if resp, _, err := c.answer(); err != nil || resp.StatusCode != http.StatusOK || <-read != nil {
		t.Errorf("%v %v", resp, err)
	}
	time.Sleep(100 * time.Millisecond) // the deadline of a request is none for the next
	c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf")
	if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading a body that stops: %v", err)
	}
	if resp, _, err := c.answer(); err != nil || resp.StatusCode != http.StatusRequestTimeout {
		t.Errorf("%v %v", resp, err)
	}
}

// TestDrain: requests under way are answered, new connections that are accepted
// too, and those that wait are closed.
func TestDrain(t *testing.T) {
	started, finish := make(chan bool), make(chan bool)
	s, address := listen(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Wait") != "" {
			started <- true
			<-finish
		}
	})
	waits, asks := dial(t, address), dial(t, address)
	waits.send(post(""))
	if _, _, err := waits.answer(); err != nil {
		t.Fatal(err)
	}
	asks.send(post("", "X-Wait: 1\r\n"))
	<-started
	late := dial(t, address)
	for !s.Fresh() {
		time.Sleep(time.Millisecond)
	}
	s.StartDrain()
	if _, err := waits.in.ReadByte(); err != io.EOF {
		t.Errorf("the connection that waits: %v", err)
	}
	late.send(post(""))
	if resp, _, err := late.answer(); err != nil || !resp.Close {
		t.Errorf("the new connection: %v %v", resp, err)
	}
	if s.Fresh() {
		t.Error("a connection is still to send something")
	}
	ended := make(chan error)
	go func() { ended <- s.Wait(t.Context()) }()
	select {
	case err := <-ended:
		t.Fatalf("Wait returned %v while a request is under way", err)
	case <-time.After(50 * time.Millisecond):
	}
	finish <- true
	if resp, _, err := asks.answer(); err != nil || !resp.Close {
		t.Errorf("the request under way: %v %v", resp, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestInterim: 1xx answers go out at once.
func TestInterim(t *testing.T) {
	_, address := listen(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		io.WriteString(w, "done")
	})
	c := dial(t, address)
	c.send(post(""))
	if resp, _, err := c.answer(); err != nil || resp.StatusCode != http.StatusEarlyHints || resp.Header.Get("Link") != "</a>" {
		t.Fatalf("%v %v", resp, err)
	}
	if resp, body, err := c.answer(); err != nil || resp.StatusCode != http.StatusOK || body != "done" || resp.Header.Get("Link") != "" {
		t.Fatalf("%v %v", resp, err)
	}
}

// TestUploadsThatAreNotRead: the client gets its answer; a connection is used
// again only if little is left.
func TestUploadsThatAreNotRead(t *testing.T) {
	_, address := listen(t, handlers["error without reading"])
	for _, test := range []struct {
		size   int
		fields string
		again  bool
	}{{200 << 10, "", true}, {4 << 20, "", false}, {200 << 10, "Connection: close\r\n", false}} {
		size, again := test.size, test.again
		c := dial(t, address)
		go io.WriteString(c.conn, post(strings.Repeat("u", size), test.fields)+post("next")) // fails where it is not read
		if resp, body, err := c.answer(); err != nil || resp.StatusCode != http.StatusTooManyRequests || body != "no" {
			t.Errorf("%d bytes: %v %q %v", size, resp, body, err)
		}
		if _, _, err := c.answer(); (err == nil) != again {
			t.Errorf("%d bytes: the next request: %v", size, err)
		}
	}
}
