package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/irb-project/irb/agent/snapshot"
)

func TestBodyLimits(t *testing.T) {
	hold := make(chan bool)
	held := make(chan bool)
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if bytes.Contains(b, []byte("hold")) {
			held <- true
			<-hold
		}
		fmt.Fprint(w, len(b))
	})
	r := start(t, fleet(named("a", e)), "[body]\nmax_request = \"64KiB\"\nmax_agent = \"80KiB\"\nreplay = \"64KiB\"\n")
	body := func(n int, word string) string {
		const frame = `{"model":"m","prompt":""}`
		return fmt.Sprintf(`{"model":"m","prompt":%q}`, word+strings.Repeat("x", n-len(frame)-len(word)))
	}
	expect(t, r.post(body(64<<10, "")), 200, "65536")
	expect(t, r.post(body(64<<10+1, "")), 413, "request_too_large")
	// Without a length the same limits hold.
	chunked := func(s string) *http.Response {
		resp, err := r.do(context.Background(), "POST", "/v1/x", io.MultiReader(strings.NewReader(s)), "Content-Type", "application/json")
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	expect(t, chunked(body(64<<10, "")), 200, "65536")
	expect(t, chunked(body(64<<10+1, "")), 413, "request_too_large")
	done := make(chan string)
	go func() { done <- read(t, r.post(body(60<<10, "hold"))) }()
	<-held
	resp := r.post(body(40<<10, ""))
	if resp.Header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q", resp.Header.Get("Retry-After"))
	}
	expect(t, resp, 413, "bodies_full")
	expect(t, r.post(chatBody), 200, fmt.Sprint(len(chatBody)))
	hold <- true
	<-done
	expect(t, r.post(body(40<<10, "")), 200, "40960")
	r.idle()
}

func TestBadBodies(t *testing.T) {
	r := start(t, fleet(named("a", engine(t, answerJSON("a")))), "")
	for body, want := range map[string]string{
		`{"model":"a","model":"b"}`: "duplicate_model",
		`{"model":"a"`:              "bad_body",
		`[]`:                        "bad_body",
	} {
		expect(t, r.post(body), 400, want)
	}
	expect(t, r.post("no json at all", "Content-Type", "text/plain"), 200, `"a"`)
	expect(t, r.post("--b\r\n", "Content-Type", "multipart/form-data; boundary=b"), 400, "bad_body")
	expect(t, r.post(chatBody, "Content-Encoding", "br"), 415, "unsupported_encoding")
	expect(t, r.post(chatBody, "Content-Encoding", "gzip"), 400, "body_unreadable")
}

// TestOtherContentTypes: JSON is read as such under any type; what is none passes
// if its path or header says enough, and is else refused by its type.
func TestOtherContentTypes(t *testing.T) {
	var got string
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = fmt.Sprintf("%s %d %s", r.Header.Get("Content-Type"), r.ContentLength, b)
	})
	s := fleet(named("a", e))
	s.Classes[0].Match = snapshot.Match{Models: []string{"m"}}
	r := start(t, s, "[body]\nmax_request = \"64KiB\"\nreplay = \"64KiB\"\n")
	const form, binary = "application/x-www-form-urlencoded", "application/octet-stream"
	white := strings.Repeat(" \r\n\t", headBytes/4)
	for _, test := range []struct {
		kind, body string
		header     string // that names the model
		status     int
		want       string
	}{
		{form, chatBody, "", 200, ""},
		{form, " \r\n\t" + chatBody, "", 200, ""},
		{form, white[1:] + chatBody, "", 200, ""},
		{binary, chatBody, "", 200, ""},
		{form, white + chatBody, "", 415, form},
		{form, `{"model":"other"}`, "", 404, "model_not_found"},
		{form, `{"model":"m","model":"x"}`, "", 400, "duplicate_model"},
		{form, `{"model":"m","prompt":"` + strings.Repeat("x", 64<<10) + `"}`, "", 413, "request_too_large"},
		{form, `{"model":`, "", 415, form},
		{form, "model=m&prompt=hello", "", 415, "unsupported_content_type"},
		{binary, "\x00\x01", "", 415, `content type \"application/octet-stream\"`},
		{binary, " ", "", 415, "unsupported_content_type"},
		{"text/plain", "hello", "", 415, "text/plain"},
		{"application/json", `{}`, "", 404, "model_not_found"},
		{binary, "\x00\x01" + strings.Repeat("x", 100<<10), "m", 200, ""},
		{binary, `{"a":1}x`, "m", 200, ""},
		// What an engine may read is what counts.
		{binary, `{"model":"other"}`, "m", 404, "model_not_found"},
		{binary, `{"model":"m"}`, "other", 200, ""},
		{binary, `{"a":1}` + strings.Repeat("x", 100<<10), "m", 413, "request_too_large"},
	} {
		header := []string{"Content-Type", test.kind}
		if test.header != "" {
			header = append(header, modelHeader, test.header)
		}
		got = ""
		expect(t, r.post(test.body, header...), test.status, test.want)
		if want := fmt.Sprintf("%s %d %s", test.kind, len(test.body), test.body); test.status == 200 && got != want {
			t.Errorf("%s: the engine got %.80q, want %.80q", test.kind, got, want)
		}
	}
	// Without a model in its rule the class takes any body, also in pieces.
	r.publish(fleet(named("a", e)))
	for _, body := range []string{"model=m", "\x00", " ", "{no json", chatBody} {
		resp, err := r.do(context.Background(), "POST", "/v1/x", iotest.OneByteReader(strings.NewReader(body)), "Content-Type", form)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, resp, 200, "")
		if !strings.HasSuffix(got, " "+body) {
			t.Errorf("the engine got %.80q, want %.80q", got, body)
		}
	}
	r.idle()
}

func TestCompressedBodies(t *testing.T) {
	var got []byte
	e := engine(t, func(w http.ResponseWriter, r *http.Request) { got, _ = io.ReadAll(r.Body) })
	s := fleet(named("a", e))
	s.Classes[0].Model = "m"
	r := start(t, s, "[body]\nmax_request = \"64KiB\"\n replay = \"64KiB\"\n")
	pack := func(encoding, text string) string {
		var b bytes.Buffer
		var w io.WriteCloser = gzip.NewWriter(&b)
		if encoding == "deflate" {
			w = zlib.NewWriter(&b)
		}
		io.WriteString(w, text)
		w.Close()
		return b.String()
	}
	for _, encoding := range []string{"gzip", "deflate"} {
		packed := pack(encoding, chatBody)
		expect(t, r.post(packed, "Content-Encoding", encoding), 200, "")
		if string(got) != packed {
			t.Errorf("%s: the engine got other bytes", encoding)
		}
		expect(t, r.post(pack(encoding, `{"model":"other"}`), "Content-Encoding", encoding), 404, "model_not_found")
		bomb := pack(encoding, `{"model":"m","prompt":"`+strings.Repeat("x", 1<<20)+`"}`)
		expect(t, r.post(bomb, "Content-Encoding", encoding), 413, "request_too_large")
	}
	r.idle()
}

// TestSlowBody: a client that stops sending is told so, and not waited for,
// whether the body is read, passed on, or was refused.
func TestSlowBody(t *testing.T) {
	r := start(t, fleet(named("a", engine(t, answerJSON("a")))), "[timeouts]\nclient_read = \"30ms\"\n")
	for _, test := range []struct{ target, kind, begin, want string }{
		{"/v1/x", "application/json", "{", "HTTP/1.1 408"},
		{"/v1/x", "application/octet-stream", "{", "HTTP/1.1 408"},
		{"/v1/x", "application/octet-stream", "x", "HTTP/1.1 408"},
		{"/v1/x", "application/octet-stream", "", "HTTP/1.1 408"},
		{"/v1/../x", "application/json", "{", "HTTP/1.1 400"},
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 1000\r\n\r\n%s", test.target, test.kind, test.begin)
		b, _ := io.ReadAll(c)
		c.Close()
		if !strings.HasPrefix(string(b), test.want) {
			t.Errorf("%s: %.60q", test.kind, b)
		}
	}
	r.idle()
}

// TestEngineBreaksAnUpload: an engine that breaks the connection while the client
// still sends is what failed, not the client.
func TestEngineBreaksAnUpload(t *testing.T) {
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = r.Body.Read(make([]byte, 1))
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		reset(c)
	})
	r := start(t, fleet(named("a", e)), "[timeouts]\nclient_read = \"2s\"\n")
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\nContent-Length: 1000000\r\n\r\nx")
	answer := make([]byte, 12)
	if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "HTTP/1.1 502" {
		t.Errorf("%q, %v", answer, err)
	}
}

// TestDrippingBody: a client that sends a little now and then has as long as a
// request has, and no engine is blamed for it.
func TestDrippingBody(t *testing.T) {
	e := engine(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	r := start(t, fleet(named("a", e)), "[timeouts]\ntotal = \"150ms\"\nclient_read = \"100ms\"\n")
	for _, test := range []struct{ kind, begin string }{
		{"application/json", "{"}, {"application/octet-stream", "x"}, {"application/octet-stream", "{"},
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 100000\r\n\r\n%s", test.kind, test.begin)
		stop := make(chan bool)
		go func() {
			defer close(stop)
			for range 200 {
				time.Sleep(10 * time.Millisecond)
				if _, err := io.WriteString(c, " "); err != nil {
					return
				}
			}
			t.Errorf("%s: may drip for two seconds", test.kind)
		}()
		answer, _ := io.ReadAll(c)
		if !strings.HasPrefix(string(answer), "HTTP/1.1 408") {
			t.Errorf("%s: %.80q", test.kind, answer)
		}
		c.Close()
		<-stop
	}
	r.idle()
	for _, v := range r.proxy.guard.Views(time.Now()) {
		if v.Errors != nil && *v.Errors > 0 || v.Ejections > 0 {
			t.Errorf("the engine is blamed: %+v", v)
		}
	}
	if n := r.metric(`irb_requests_total{class="chat",engine="a",outcome="fault"}`); n != "0" && n != "" {
		t.Errorf("%s requests are faults of the engine", n)
	}
}

// TestContinue: a client that waits for 100 Continue gets it, or the refusal
// without it.
func TestContinue(t *testing.T) {
	r := start(t, fleet(named("a", engine(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%q", r.Header["Expect"])
	}))), "[body]\nmax_request = \"1KiB\"\nreplay = \"1KiB\"\n")
	for size, want := range map[int]string{len(chatBody): "HTTP/1.1 100 Continue\r\n", 5000: "HTTP/1.1 413 "} {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "POST /v1/x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", size)
		reader := bufio.NewReader(c)
		line, err := reader.ReadString('\n')
		if !strings.HasPrefix(line, want) || err != nil {
			t.Errorf("%d bytes: %q %v, want %q", size, line, err, want)
		}
		if strings.Contains(line, "100") {
			_, _ = reader.ReadString('\n')
			io.WriteString(c, chatBody)
			resp, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, resp, 200, "[]")
		}
		c.Close()
	}
}

func TestTrailers(t *testing.T) {
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-After, Endpoint-Load-Metrics")
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%d %s", len(b), r.Trailer.Get("X-Sum"))
		w.(http.Flusher).Flush()
		w.Header().Set("X-After", "1")
		w.Header().Set("Endpoint-Load-Metrics", "TEXT x=1")
	})
	r := start(t, fleet(named("a", e)), "")
	for kind, body := range map[string]string{"application/json": chatBody, "application/octet-stream": "no JSON"} {
		req, err := http.NewRequest("POST", r.url+"/v1/x", io.MultiReader(strings.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", kind)
		req.Trailer = http.Header{"X-Sum": {"9"}}
		resp, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, resp, 200, fmt.Sprintf("%d 9", len(body)))
		if _, leaked := resp.Trailer["Endpoint-Load-Metrics"]; leaked || resp.Trailer.Get("X-After") != "1" {
			t.Errorf("%s: trailers %v", kind, resp.Trailer)
		}
	}
}

// TestUnannouncedTrailers: a trailer needs no announcement, and gets through both
// ways, to net/http and to h1server.
func TestUnannouncedTrailers(t *testing.T) {
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		io.WriteString(w, "x")
		w.(http.Flusher).Flush()
		time.Sleep(50 * time.Millisecond) // the header is with the client by now
		w.Header().Set(http.TrailerPrefix+"X-Late", "saw "+r.Trailer.Get("X-Late")+".")
		w.Header().Set(http.TrailerPrefix+"Content-Length", "9")
	})
	r := start(t, fleet(named("a", e)), "")
	for kind, body := range map[string]string{
		"application/json":         fmt.Sprintf("%x\r\n%s\r\n0\r\nX-Late: it\r\n\r\n", len(chatBody), chatBody),
		"application/octet-stream": "1\r\nx\r\n0\r\nX-Late: it\r\n\r\n",
		"":                         "",
	} {
		request, want := "GET /v1/x HTTP/1.1\r\nHost: x\r\n\r\n", "saw ."
		if kind != "" {
			request = "POST /v1/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Type: " + kind + "\r\n\r\n" + body
			want = "saw it."
		}
		_, _, resp := r.upgrade(request)
		read(t, resp)
		if got := resp.Trailer.Get("X-Late"); got != want || len(resp.Trailer) != 1 {
			t.Errorf("%q: trailers %v, want X-Late: %q", kind, resp.Trailer, want)
		}
	}
}

// TestLargeUpload is larger than the limit for bodies that are scanned: types
// that cannot hold a model go through as they come.
func TestLargeUpload(t *testing.T) {
	const size = 40 << 20
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, err, r.ContentLength)
	})
	s := fleet(named("a", e))
	s.Classes[0].Model = "m"
	r := start(t, s, "")
	resp, err := r.do(context.Background(), "POST", "/v1/files?model=m", io.LimitReader(zeros{}, size), "Content-Type", "audio/wav")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, resp, 200, fmt.Sprint(size, nil, -1))
	resp, err = r.do(context.Background(), "POST", "/v1/files", strings.NewReader("x"), "Content-Type", "audio/wav", modelHeader, "m")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, resp, 200, "1")
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestUploadThatBreaksOff is the client's failure, not the engine's.
func TestUploadThatBreaksOff(t *testing.T) {
	e := engine(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	r := start(t, fleet(named("a", e)), "")
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Type: audio/wav\r\nContent-Length: 1000000\r\n\r\nabc")
	c.Close()
	eventually(t, "the request counted as canceled", func() bool {
		return r.metric(`irb_requests_total{class="chat",engine="a",outcome="canceled"}`) == "1"
	})
	r.idle()
}

// TestBodiesAreNotMixedUp sends many bodies at once, with failures and retries
// in between: every engine gets a whole body, every client its own back.
func TestBodiesAreNotMixedUp(t *testing.T) {
	var asked atomic.Int32
	flaky := engine(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		switch asked.Add(1) % 4 {
		case 0:
			panic(http.ErrAbortHandler)
		case 1:
			w.WriteHeader(502)
		default:
			w.Write(b)
		}
	})
	echo := engine(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Write(b)
	})
	r := start(t, fleet(named("a", flaky), named("b", echo)), "[retry]\nbudget_floor = 1000\nbudget_ratio = 1\n")
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() {
			for i := range 60 {
				body := fmt.Sprintf(`{"model":"m","prompt":"%s"}`, strings.Repeat(fmt.Sprint(g, i, " "), 1+(g*i)%4000))
				resp, err := r.do(context.Background(), "POST", "/v1/x", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				b, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != 200 || string(b) != body {
					t.Errorf("%d.%d: %d, %v, %.80q", g, i, resp.StatusCode, err, b)
				}
			}
		})
	}
	all.Wait()
	r.idle()
}

func TestBodyBuffer(t *testing.T) {
	memory := &bodyMemory{gauge: prometheus.NewGauge(prometheus.GaugeOpts{Name: "x"})}
	memory.limit.Store(1 << 20)
	pool := &bodyPool{memory: memory}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		size := random.IntN(100 << 10)
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(random.Uint32())
		}
		length := int64(-1)
		if random.IntN(2) == 0 {
			length = int64(size)
		}
		b := pool.get()
		if err := b.read(bytes.NewReader(want), length, 100<<10); err != nil || !bytes.Equal(b.data, want) {
			t.Fatalf("%d bytes, length %d: %v", size, length, err)
		}
		once := random.IntN(2) == 0
		r := b.reader(once)
		got, _ := io.ReadAll(r)
		if b.once.Load() != (once && size > 0) { // known before the reader is closed
			t.Fatalf("once is %v, want %v", b.once.Load(), once)
		}
		if !bytes.Equal(got, want) {
			t.Fatal("read something else")
		}
		r.Close()
		r.Close()
		if gone := b.gone.Load(); gone != (once && size > 0) {
			t.Fatalf("gone is %v with once %v", gone, once)
		}
		b.drop()
		b.drop()
		if n := memory.used.Load(); n != 0 {
			t.Fatalf("%d bytes are still held", n)
		}
	}
	// What is held follows what has come, not what was announced.
	const announced = 512 << 10
	b := pool.get()
	come := 0
	if err := b.read(readerFunc(func(p []byte) (int, error) {
		if n := memory.used.Load(); n > max(firstBody, 2*int64(come)) {
			t.Fatalf("%d bytes are held for %d", n, come)
		}
		n := min(1000, len(p), announced-come)
		come += n
		if n == 0 {
			return 0, io.EOF
		}
		return n, nil
	}), announced, 1<<20); err != nil || len(b.data) != announced {
		t.Errorf("%d bytes, %v", len(b.data), err)
	}
	b.drop()
	b = pool.get()
	if err := b.read(zeros{}, -1, 1<<10); err != errBodyTooLarge {
		t.Errorf("endless: %v", err)
	}
	b.drop()
	memory.limit.Store(100)
	b = pool.get()
	if err := b.read(zeros{}, 200, 1<<10); err != errAgentFull {
		t.Errorf("above the agent's memory: %v", err)
	}
	b.drop()
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
