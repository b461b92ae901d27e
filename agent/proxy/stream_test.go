package proxy

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/irb-project/irb/agent/config"
	"github.com/irb-project/irb/agent/guard"
	"github.com/irb-project/irb/agent/snapshot"
)

// TestStreamByteForByte sends random bytes in random pieces as a stream, cut
// anywhere, through characters and frames: they must arrive unchanged.
func TestStreamByteForByte(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var sent []byte
	for range 3000 {
		switch random.IntN(4) {
		case 0:
			sent = append(sent, "data: {\"choices\":[{\"delta\":{\"content\":\"né 你好\"}}]}\n\n"...)
		case 1:
			sent = append(sent, ": ping\r\n\r\n"...)
		case 2:
			sent = append(sent, byte(random.IntN(256)))
		case 3:
			sent = append(sent, "data: [DONE]\n\n"...)
		}
	}
	for _, kind := range []string{"text/event-stream; charset=utf-8", "application/octet-stream"} {
		e := engine(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			pieces := rand.New(rand.NewPCG(3, 4))
			for rest := sent; len(rest) > 0; {
				n := min(len(rest), 1+pieces.IntN(2000))
				w.Write(rest[:n])
				w.(http.Flusher).Flush()
				rest = rest[n:]
			}
		})
		r := start(t, fleet(named("a", e)), "")
		if got := read(t, r.post(streamBody)); got != string(sent) {
			t.Errorf("%s: %d bytes arrived changed, of %d", kind, len(got), len(sent))
		}
	}
}

// TestStreamIsFlushedAtOnce: each event arrives before the engine sends the
// next one.
func TestStreamIsFlushedAtOnce(t *testing.T) {
	next := make(chan bool)
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 5 {
			fmt.Fprintf(w, "data: {\"text\":\"%d\"}\n\n", i)
			w.(http.Flusher).Flush()
			<-next
		}
	})
	r := start(t, fleet(named("a", e)), "")
	resp := r.post(streamBody)
	defer resp.Body.Close()
	reader := bufio.NewReader(resp.Body)
	for i := range 5 {
		line, err := reader.ReadString('\n')
		if want := fmt.Sprintf("data: {\"text\":\"%d\"}\n", i); line != want || err != nil {
			t.Fatalf("got %q %v, want %q", line, err, want)
		}
		_, _ = reader.ReadString('\n')
		next <- true
	}
}

// TestKeepAliveCommentIsNotHeldBack: an engine that tells the client to wait is
// heard at once.
func TestKeepAliveCommentIsNotHeldBack(t *testing.T) {
	next := make(chan bool)
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, ": wait\n\n")
		w.(http.Flusher).Flush()
		<-next
	})
	r := start(t, fleet(named("a", e)), "")
	resp := r.post(streamBody)
	defer resp.Body.Close()
	var b [8]byte
	if _, err := io.ReadFull(resp.Body, b[:]); err != nil || string(b[:]) != ": wait\n\n" {
		t.Errorf("%q %v", b, err)
	}
	next <- true
}

func TestStreamFailureAsEvent(t *testing.T) {
	e := raw(t, func(_ int, c net.Conn, _ *http.Request) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"+
			"16\r\ndata: {\"text\":\"x\"}\n\nda\r\n")
	})
	r := startWith(t, fleet(named("a", e)), "stream_failure = \"event\"\n"+testConfig, nil)
	got := read(t, r.post(streamBody))
	want := "data: {\"text\":\"x\"}\n\nda\n\ndata: {\"error\":{\"message\":\"engine \\\"a\\\" failed in the middle of its answer\"," +
		"\"type\":\"server_error\",\"code\":\"stream_broken\",\"param\":null}}\n\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := r.metric(`irb_requests_total{class="chat",engine="a",outcome="broken"}`); n != "1" {
		t.Errorf("broken: %q, want 1", n)
	}
}

// TestBreakIsSeenByHTTP10: to a client of HTTP/1.0, a proxy with old settings for
// one, an answer of unknown length ends with its connection. One that broke off
// must not look whole.
func TestBreakIsSeenByHTTP10(t *testing.T) {
	e := raw(t, func(_ int, c net.Conn, r *http.Request) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n16\r\ndata: {\"text\":\"x\"}\n\nda\r\n")
		if r.URL.Path == "/v1/whole" {
			io.WriteString(c, "0\r\n\r\n")
		}
	})
	r := start(t, fleet(named("a", e)), "")
	a := newAuthority(t)
	cert, key := a.issue("agent", 2)
	secure, err := ServerTLS(config.Listener{TLSCertFile: cert, TLSKeyFile: key}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(r.config, r.proxy.Handler(r.config.Listeners[0]), secure, slog.New(slog.DiscardHandler))
	go server.Serve(listen)
	defer server.Close()
	for name, dial := range map[string]func() (net.Conn, error){
		"plain": func() (net.Conn, error) { return net.Dial("tcp", strings.TrimPrefix(r.url, "http://")) },
		"TLS": func() (net.Conn, error) {
			return tls.Dial("tcp", listen.Addr().String(), &tls.Config{RootCAs: a.pool(), ServerName: "127.0.0.1"})
		},
	} {
		for path, whole := range map[string]bool{"/v1/whole": true, "/v1/broken": false} {
			c, err := dial()
			if err != nil {
				t.Fatal(name, err)
			}
			fmt.Fprintf(c, "POST %s HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(streamBody), streamBody)
			b, err := io.ReadAll(c)
			c.Close()
			if (err == nil) != whole || !strings.Contains(string(b), `"text":"x"`) {
				t.Errorf("%s %s: %q, %v", name, path, b, err)
			}
		}
	}
	r.idle()
}

// TestCompressedStream: events that cannot be read are neither held back nor
// taken for an engine that says nothing.
func TestCompressedStream(t *testing.T) {
	var ended atomic.Bool
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		for range 8 { // all of them take longer than ttft
			fmt.Fprint(packed, "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n")
			packed.Flush()
			w.(http.Flusher).Flush()
			time.Sleep(50 * time.Millisecond)
		}
		ended.Store(true)
		packed.Close()
	})
	r := start(t, fleet(named("a", e)), "[timeouts]\nttft = \"200ms\"\n")
	resp := r.post(streamBody)
	defer resp.Body.Close()
	unpack, err := gzip.NewReader(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unpack.Read(make([]byte, 8)); err != nil || ended.Load() {
		t.Errorf("the first event came with error %v, after the last: %v", err, ended.Load())
	}
	if _, err := io.ReadAll(unpack); err != nil {
		t.Error(err)
	}
}

// TestUnknownVocabulary: a stream of events without content as chat knows it is
// not ended by the limit on the first content, one that only pings is.
func TestUnknownVocabulary(t *testing.T) {
	for event, lives := range map[string]bool{
		`data: {"type":"image_generation.partial_image","b64_json":"AAAA"}`: true,
		`data: {"type":"response.web_search_call.searching"}`:               true,
		`data: {"type": "ping"}`:                                            false,
		`data: {"choices":[{"delta":{"content":""}}]}`:                      false,
		`: ping`: false,
	} {
		e := engine(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 8 {
				fmt.Fprintf(w, "%s\n\n", event)
				w.(http.Flusher).Flush()
				time.Sleep(50 * time.Millisecond)
			}
		})
		r := start(t, fleet(named("a", e)), "[timeouts]\nttft = \"200ms\"\n")
		resp := r.post(streamBody)
		_, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if (err == nil) != lives {
			t.Errorf("%s: %v, want it to live: %v", event, err, lives)
		}
	}
}

// TestTimeouts: a hung engine is left before the first content (and another one
// asked), in the middle of a stream, and at the deadline.
func TestTimeouts(t *testing.T) {
	hang := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	t.Run("ttft", func(t *testing.T) {
		role := func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n")
			w.(http.Flusher).Flush()
			hang(w, r)
		}
		r := start(t, fleet(named("a", engine(t, role)), named("b", engine(t, answerJSON("b")))), "[timeouts]\nttft = \"20ms\"\n")
		expect(t, r.post(streamBody), 200, `"b"`)
		if n := r.metric(`irb_retries_total{reason="timeout"}`); n != "1" {
			t.Errorf("retries: %q", n)
		}
		r.idle()
	})
	t.Run("idle", func(t *testing.T) {
		e := engine(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: {\"text\":\"x\"}\n\n")
			w.(http.Flusher).Flush()
			hang(w, r)
		})
		r := start(t, fleet(named("a", e)), "[timeouts]\nidle_stream = \"20ms\"\n")
		resp := r.post(streamBody)
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(got) != "data: {\"text\":\"x\"}\n\n" || err == nil {
			t.Errorf("got %q and error %v, want the first event and an error", got, err)
		}
		if !strings.Contains(r.log.String(), errIdle.Error()) {
			t.Errorf("log: %s", r.log)
		}
	})
	t.Run("total", func(t *testing.T) {
		r := start(t, fleet(named("a", engine(t, hang))), "[timeouts]\ntotal = \"20ms\"\n")
		resp := r.post(chatBody)
		if v := resp.Header.Get("X-Irb-Request-Dropped-Reason"); v != droppedExpired {
			t.Errorf("dropped reason %q", v)
		}
		expect(t, resp, 504, "did not answer in time")
		if n := r.metric(`irb_retries_not_sent_total{reason="deadline"}`); n != "1" {
			t.Errorf("retries not sent for the deadline: %q", n)
		}
	})
}

// TestSlowReader: a client that does not read is given up after client_write,
// and the engine is told.
func TestSlowReader(t *testing.T) {
	gone := make(chan bool, 1)
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for chunk := make([]byte, 64<<10); ; {
			if _, err := w.Write(chunk); err != nil {
				gone <- true
				return
			}
		}
	})
	r := start(t, fleet(named("a", e)), "[timeouts]\nclient_write = \"50ms\"\n")
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(streamBody), streamBody)
	<-gone
	r.idle()
}

// TestTokenTimes: the times of tokens come from the stream's content and usage.
func TestTokenTimes(t *testing.T) {
	next := make(chan bool)
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, events := range []string{
			"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
			"data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n" +
				"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":5}}\n\ndata: [DONE]\n\n",
		} {
			io.WriteString(w, events)
			w.(http.Flusher).Flush()
			<-next
		}
	})
	r := start(t, fleet(named("a", e)), "")
	resp := r.post(streamBody)
	defer resp.Body.Close()
	reader := bufio.NewReader(resp.Body)
	for _, part := range []string{`"a"`, "[DONE]"} {
		for line := ""; !strings.Contains(line, part); {
			var err error
			if line, err = reader.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		next <- true
	}
	for _, name := range []string{"irb_time_to_first_token_seconds_count", "irb_time_between_output_tokens_seconds_count"} {
		eventually(t, name+" of 1", func() bool { return r.metric(name+`{class="chat",engine="a"}`) == "1" })
	}
}

func TestBetweenTokens(t *testing.T) {
	at := time.Unix(100, 0)
	for _, test := range []struct {
		tokens, content int
		span, want      time.Duration
		ok              bool
	}{
		{0, 5, 400 * time.Millisecond, 100 * time.Millisecond, true},
		{9, 5, 400 * time.Millisecond, 50 * time.Millisecond, true},
		{0, 1, 0, 0, false},
		{1, 1, 0, 0, false},
		{5, 1, 0, 0, false}, // all in one piece: no time between them was seen
	} {
		x := &exchange{firstToken: at, lastToken: at.Add(test.span)}
		x.sse.OutTokens, x.sse.Content = test.tokens, test.content
		if got, ok := x.betweenTokens(); got != test.want || ok != test.ok {
			t.Errorf("%+v: got %v %v", test, got, ok)
		}
	}
}

// TestRetryOrder: what may be retried is, in the right order: another
// endpoint of the engine, then the next engine.
func TestRetryOrder(t *testing.T) {
	var asked []string
	fail := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, name)
			w.WriteHeader(502)
		}
	}
	a1, a2, a3 := engine(t, fail("a")), engine(t, fail("a")), engine(t, fail("a"))
	b := engine(t, func(w http.ResponseWriter, r *http.Request) { asked = append(asked, "b") })
	r := start(t, fleet(named("a", a1, a2, a3), named("b", b)), "")
	read(t, r.post(chatBody))
	if got := strings.Join(asked, " "); got != "a a b" {
		t.Errorf("asked %s, want a a b", got)
	}
}

func TestRetryBudgetAndAttempts(t *testing.T) {
	fail := func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(502) }
	s := fleet(named("a", engine(t, fail)), named("b", engine(t, fail)), named("c", engine(t, fail)), named("d", engine(t, fail)))
	r := start(t, s, "[retry]\nattempts = 2\nbudget_ratio = 0\nbudget_floor = 1\n")
	expect(t, r.post(chatBody), 502, "") // one retry, then no attempt is left
	expect(t, r.post(chatBody), 502, "") // the budget's only token is spent
	if n := r.metric(`irb_retries_total{reason="gateway"}`); n != "1" {
		t.Errorf("retries: %q, want 1", n)
	}
	for _, reason := range []string{"attempts", "budget"} {
		if n := r.metric(`irb_retries_not_sent_total{reason="` + reason + `"}`); n != "1" {
			t.Errorf("not sent for %s: %q, want 1", reason, n)
		}
	}
}

// TestUnreachableEnginesCostNoBudget: nothing was sent to them.
// TestUnreachableEnginesCostNoAttempts: however many endpoints have just gone, a
// request gets to one that is there. Once they are known to be gone, no more of
// them are tried than attempts are allowed.
func TestUnreachableEnginesCostNoAttempts(t *testing.T) {
	dead := func(name string) snapshot.Engine {
		one, two := engine(t, nil), engine(t, nil)
		one.Close()
		two.Close()
		return named(name, one, two)
	}
	well := engine(t, answerJSON("well"))
	s := fleet(dead("a"), dead("b"), dead("c"), named("d", well))
	for i := range s.Sources[0].Fallbacks {
		s.Sources[0].Fallbacks[i].AbsorbRPS = 1000
	}
	r := start(t, s, "[retry]\nbudget_ratio = 0\nbudget_floor = 0\n")
	expect(t, r.post(chatBody), 200, "well")
	if n := r.metric(`irb_retries_total{reason="connect"}`); n != "6" {
		t.Errorf("%s retries, want one after each of the 6 that are gone", n)
	}
	well.Close()
	r = start(t, fleet(dead("a"), dead("b"), dead("c")), "")
	expect(t, r.post(chatBody), 503, "endpoints tried: 6, ")
	expect(t, r.post(chatBody), 503, "endpoints tried: 3, ")
	// A failure of another kind counts as before, and so do those before it.
	fail := engine(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(502) })
	r = start(t, fleet(dead("a"), named("b", fail), named("c", engine(t, answerJSON("c")))), "")
	expect(t, r.post(chatBody), 502, "")
}

// TestEjectedBeforeUnreachable: an engine that was ejected and may be well again is
// asked before those of which it is known that they are not there, whatever the
// order of the key.
func TestEjectedBeforeUnreachable(t *testing.T) {
	gone := func(name string) snapshot.Engine {
		one, two := engine(t, nil), engine(t, nil)
		one.Close()
		two.Close()
		return named(name, one, two)
	}
	for _, known := range []bool{false, true} {
		r := start(t, fleet(named("b", engine(t, answerJSON("b"))), gone("a"), gone("c")), "")
		plan := r.proxy.plan.Load()
		for range guard.Defaults().ConsecutiveFaults {
			a := plan.guards.Class(0).Begin(0, 0, guard.Work{Untimed: true}, time.Now())
			a.End(guard.Ending{Outcome: guard.Fault}, time.Now())
		}
		r.tick(1)
		if v := r.view(0); v.Why != "ejected" {
			t.Fatalf("%+v", v)
		}
		for _, pool := range plan.pools[1:] {
			for _, e := range pool.endpoints {
				if known {
					e.markDown(time.Now())
				}
			}
		}
		expect(t, r.post(chatBody), 200, `"b"`)
	}
}

func TestUnreachableEnginesCostNoBudget(t *testing.T) {
	dead := engine(t, nil)
	dead.Close()
	well := engine(t, answerJSON("well"))
	r := start(t, fleet(named("a", dead), named("b", well)), "[retry]\nbudget_ratio = 0\nbudget_floor = 0\n")
	for range 20 {
		expect(t, r.post(chatBody), 200, "well")
	}
}

// TestStateful: a request that goes on from a response goes to who made it, or
// gets a 503; never elsewhere.
func TestStateful(t *testing.T) {
	who := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id": "resp_%s", "object":"response","engine":%q}`, fmt.Sprint(len(b), name), name)
		}
	}
	a, b := engine(t, who("a")), engine(t, who("b"))
	s := fleet(named("a", a), named("b", b))
	s.Sources[0].LayoutFrom, s.Sources[0].LayoutTo = []uint32{0, 1 << 31}, []string{"a", "b"}
	s.Sources[0].Fallbacks = nil
	r := start(t, s, "")
	ask := func(body string) *http.Response {
		t.Helper()
		resp, err := r.do(context.Background(), "POST", "/v1/responses", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	field := func(text, key string) string {
		_, rest, _ := strings.Cut(text, `"`+key+`":`)
		rest = strings.TrimLeft(rest, ` "`)
		value, _, _ := strings.Cut(rest, `"`)
		return value
	}
	var last string
	for i := range 40 {
		first := read(t, ask(fmt.Sprintf(`{"model":"m","input":"question %d"}`, i)))
		id, engine := field(first, "id"), field(first, "engine")
		for range 3 {
			next := read(t, ask(fmt.Sprintf(`{"model":"m","input":"go on","previous_response_id":%q}`, id)))
			if got := field(next, "engine"); got != engine {
				t.Fatalf("response %s of %s was gone on from at %s", id, engine, got)
			}
		}
		// A cache key, which might lead elsewhere, changes nothing of that.
		keyed := read(t, ask(fmt.Sprintf(`{"model":"m","input":"go on","prompt_cache_key":"k","previous_response_id":%q}`, id)))
		if got := field(keyed, "engine"); got != engine {
			t.Fatalf("response %s of %s was gone on from at %s under a cache key", id, engine, got)
		}
		for _, way := range []struct{ method, path string }{{"GET", ""}, {"POST", "/cancel"}, {"GET", "/input_items"}, {"DELETE", ""}} {
			resp, err := r.do(context.Background(), way.method, "/v1/responses/"+id+way.path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if got := field(read(t, resp), "engine"); got != engine {
				t.Fatalf("%s %s of response %s went to %s, which %s made", way.method, way.path, id, got, engine)
			}
		}
		if engine == "a" {
			last = id
		}
	}
	follow := fmt.Sprintf(`{"model":"m","input":"go on","previous_response_id":%q}`, last)
	held := parseConfig(t, "drain = [\"a\"]\n"+testConfig)
	r.proxy.SetConfig(held)
	if got := field(read(t, ask(follow)), "engine"); got != "a" {
		t.Errorf("while a drains: %q, want a", got)
	}
	if got := read(t, r.post(chatBody)); !strings.Contains(got, `"b"`) {
		t.Errorf("while a drains a new request got %q", got)
	}
	r.proxy.SetConfig(parseConfig(t, "hold = [\"a\"]\n"+testConfig))
	expect(t, ask(follow), 503, "stateful_engine_unavailable")
	r.proxy.SetConfig(r.config)
	a.Close()
	expect(t, ask(follow), 503, "stateful_engine_unavailable")
}

func TestResponseMemoryIsBounded(t *testing.T) {
	var m responseMemory
	m.init()
	for i := range uint64(3 * rememberedResponses) {
		m.store(i, served{"a", "e"})
	}
	if _, ok := m.load(0); ok {
		t.Error("the oldest is still there")
	}
	if _, ok := m.load(3*rememberedResponses - 1); !ok {
		t.Error("the newest is not there")
	}
}

func TestResponseID(t *testing.T) {
	for head, want := range map[string]string{
		`{"id":"resp_1","x":1}`: "resp_1",
		"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\": \"resp_2\"": "resp_2",
		`{"id":"msg_1","response":{"id":"resp_3"}}`:                                                      "resp_3",
		`{"id":"resp_cut`: "",
		`{"id":"chat"}`:   "",
		``:                "",
	} {
		if got := string(responseID([]byte(head))); got != want {
			t.Errorf("%q: got %q, want %q", head, got, want)
		}
	}
}

// errWriter is a log that cannot be written to.
type errWriter struct{}

func (errWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }
