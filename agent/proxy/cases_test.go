package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/irb-project/irb/agent/guard"
	"github.com/irb-project/irb/agent/snapshot"
)

// Each test is named for a public report of the list that the project keeps:
// the whole kind of fault must not happen, not only the one reported.

// raw serves connections by hand, for engines that break the rules of HTTP.
func raw(t *testing.T, serve func(n int, c net.Conn, request *http.Request)) *httptest.Server {
	var n atomic.Int32
	return engine(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		serve(int(n.Add(1)), c, r)
	})
}

// reset closes a connection such that the peer gets a reset, not an end.
func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	c.Close()
}

// kubernetes-sigs/gateway-api-inference-extension#2993: framing headers of one
// connection must not be copied to another, least of all to HTTP/2.
func TestCase01FramingHeadersStayOnTheirConnection(t *testing.T) {
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Keep-Alive", "timeout=5")
		w.Header().Set("Connection", "x-hop")
		w.Header().Set("X-Hop", "1")
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: {\"text\":\"%d\"}\n\n", i)
			w.(http.Flusher).Flush()
		}
	})
	r := start(t, fleet(named("a", e)), "")
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	r.client = &http.Client{Transport: transport}
	resp := r.post(streamBody)
	if resp.ProtoMajor != 2 {
		t.Fatalf("HTTP/%d, want 2", resp.ProtoMajor)
	}
	for _, name := range []string{"Transfer-Encoding", "Connection", "Keep-Alive", "X-Hop"} {
		if v := resp.Header.Get(name); v != "" {
			t.Errorf("%s: %q was copied", name, v)
		}
	}
	expect(t, resp, 200, "data: {\"text\":\"0\"}\n\ndata: {\"text\":\"1\"}\n\ndata: {\"text\":\"2\"}\n\n")
}

// envoyproxy/ai-gateway#1091: a content-length that is off gives a 502 that
// names the cause.
func TestCase02WrongContentLengthIsNamed(t *testing.T) {
	e := raw(t, func(_ int, c net.Conn, _ *http.Request) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello")
	})
	r := start(t, fleet(named("a", e)), "")
	expect(t, r.post(chatBody), 502, `engine \"a\" broke off its answer; endpoints tried: 1, no other is left`)
	if !strings.Contains(r.log.String(), "unexpected EOF") {
		t.Errorf("the log does not name the cause: %s", r.log)
	}
}

// vllm-project/production-stack#634: a client's cancel reaches the engine, for
// answers that stream and those that do not, and the counts go back to zero.
func TestCase03CancelReachesTheEngine(t *testing.T) {
	for _, body := range []string{chatBody, streamBody} {
		began, gone := make(chan bool, 1), make(chan bool, 1)
		e := engine(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if body == streamBody {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, "data: {\"text\":\"x\"}\n\n")
				w.(http.Flusher).Flush()
			}
			began <- true
			<-r.Context().Done()
			gone <- true
		})
		r := start(t, fleet(named("a", e)), "")
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-began
			cancel()
		}()
		resp, err := r.do(ctx, "POST", "/v1/x", strings.NewReader(body))
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		if err == nil {
			t.Error("the canceled request was answered")
		}
		<-gone
		r.idle()
		eventually(t, "the request counted as canceled", func() bool {
			return r.metric(`irb_requests_total{class="chat",engine="a",outcome="canceled"}`) == "1"
		})
		if n := r.metric(`irb_requests_in_flight{class="chat",engine="a"}`); n != "0" {
			t.Errorf("in flight: %s", n)
		}
	}
}

// vllm-project/production-stack#749: an engine that hangs must not hold up
// requests to others.
func TestCase04HungEngineBlocksNobodyElse(t *testing.T) {
	release := make(chan bool)
	hung := engine(t, func(w http.ResponseWriter, r *http.Request) { <-release })
	well := engine(t, answerJSON("well"))
	s := fleet(named("hung", hung))
	s.Engines = append(s.Engines, named("well", well))
	s.Classes = append([]snapshot.Class{{Name: "other", Match: snapshot.Match{Models: []string{"other"}}}}, s.Classes...)
	s.Sources = append(s.Sources, snapshot.Source{Cluster: "here", Class: "other", LayoutFrom: []uint32{0}, LayoutTo: []string{"well"}})
	r := start(t, s, "")
	var held sync.WaitGroup
	for range 64 {
		held.Go(func() { read(t, r.post(chatBody)) })
	}
	for range 64 {
		expect(t, r.post(`{"model":"other"}`), 200, "well")
	}
	close(release)
	held.Wait()
}

// vllm-project/production-stack PR 733: an audio upload keeps its bytes, its
// length and its Authorization.
func TestCase05UploadKeepsLengthAndAuthorization(t *testing.T) {
	form := "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n" + strings.Repeat("\x00\xff", 1<<20) + "\r\n--b--\r\n"
	for kind, body := range map[string]string{"multipart/form-data; boundary=b": form, "application/octet-stream": form} {
		e := engine(t, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%v %v %s", string(b) == body, r.ContentLength == int64(len(body)), r.Header.Get("Authorization"))
		})
		r := start(t, fleet(named("a", e)), "")
		expect(t, r.post(body, "Authorization", "Bearer k", "Content-Type", kind), 200, "true true Bearer k")
	}
}

// smg-project/smg PR 2162, sgl-project/sglang#20851: an engine closes a
// connection while it is idle; the request that meets it is sent again, once,
// without a trace for the client, the budget or the engine's record.
func TestCase06StaleConnectionIsRetried(t *testing.T) {
	second := make(chan bool)
	e := raw(t, func(n int, c net.Conn, _ *http.Request) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		if n > 1 {
			return
		}
		// The next request arrives, and is met with a reset.
		_, _ = http.ReadRequest(bufio.NewReader(c))
		reset(c)
		close(second)
	})
	r := start(t, fleet(named("a", e)), "[retry]\nbudget_ratio = 0\nbudget_floor = 0\n")
	expect(t, r.post(chatBody), 200, "ok")
	expect(t, r.post(chatBody), 200, "ok")
	<-second
	if n := r.metric(`irb_retries_total{reason="stale"}`); n != "1" {
		t.Errorf("stale retries: %q, want 1", n)
	}
	if c := r.config.Timeouts.EngineIdle; c >= 5*time.Second {
		t.Errorf("idle connections are kept %v, want under 5 s", c)
	}
}

// sgl-project/sglang#25811 and smg-project/smg PR 2565: a 4xx says nothing
// about the engine; it is relayed, not retried.
func TestCase07And08ClientErrorIsNeutral(t *testing.T) {
	for _, status := range []int{400, 404, 408, 413, 422, 499, 501, 505} {
		var asked atomic.Int32
		e := engine(t, func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			http.Error(w, `{"error":{"message":"prompt too long"}}`, status)
		})
		r := start(t, fleet(named("a", e), named("b", engine(t, answerJSON("b")))), "")
		for range 20 {
			expect(t, r.post(chatBody), status, "prompt too long")
			r.tick(1)
		}
		if n := asked.Load(); n != 20 {
			t.Errorf("%d: the engine was asked %d times, want 20", status, n)
		}
		if n := r.metric(`irb_requests_total{class="chat",engine="a",outcome="neutral"}`); n != "20" {
			t.Errorf("%d: neutral: %s, want 20", status, n)
		}
		if v := r.view(0); v.Ejections != 0 || v.Errors != nil && *v.Errors > 0 {
			t.Errorf("%d: %+v", status, v)
		}
	}
}

// TestFaultAnswersAreRetried: 500, 502 and 504 are retried like a reset; the last
// one is relayed as it is when nothing else may be tried.
func TestFaultAnswersAreRetried(t *testing.T) {
	for _, status := range []int{500, 502, 504} {
		var asked atomic.Int32
		failing := func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Try", fmt.Sprint(asked.Add(1)))
			http.Error(w, `{"error":{"message":"worker died"}}`, status)
		}
		a1, a2, b := engine(t, failing), engine(t, failing), engine(t, failing)
		well := engine(t, answerJSON("well"))
		for _, test := range []struct {
			fleet *snapshot.Snapshot
			more  string
			asked int32 // how often; -1: depends on the key
			want  int
			held  string // why no more was tried; "": the answer was good
		}{
			{fleet(named("a", a1, well)), "", -1, 200, ""}, // another endpoint
			{fleet(named("a", a1, a2), named("b", well)), "", 2, 200, ""},
			{fleet(named("a", a1), named("b", b)), "", 2, status, "nobody"},
			{fleet(named("a", a1), named("b", well)), "[retry]\nattempts = 1\n", 1, status, "attempts"},
			{fleet(named("a", a1), named("b", well)), "[retry]\nbudget_ratio = 0\nbudget_floor = 0\n", 1, status, "budget"},
		} {
			asked.Store(0)
			r := start(t, test.fleet, test.more)
			if test.held == "budget" {
				for r.proxy.plan.Load().guards.Class(0).Withdraw() {
				}
			}
			resp := r.post(chatBody)
			if test.held == "" {
				expect(t, resp, test.want, "well")
			} else {
				if v := resp.Header.Get("X-Try"); v != fmt.Sprint(test.asked) {
					t.Errorf("%d: relayed the answer of try %s, want %d", status, v, test.asked)
				}
				expect(t, resp, test.want, "worker died")
				if n := r.metric(`irb_retries_not_sent_total{reason="` + test.held + `"}`); n != "1" {
					t.Errorf("%d: held for %s: %q, want 1", status, test.held, n)
				}
			}
			if n := asked.Load(); test.asked >= 0 && n != test.asked {
				t.Errorf("%d: failing engines were asked %d times, want %d", status, n, test.asked)
			}
		}
	}
}

// sgl-project/sglang PR 39464: a full queue is backpressure, not a fault: the
// request goes on to another engine, and the engine is asked again next time.
func TestCase09QueueFullIsBackpressure(t *testing.T) {
	var full atomic.Bool
	full.Store(true)
	a := engine(t, func(w http.ResponseWriter, r *http.Request) {
		if full.Load() {
			http.Error(w, "queue full", http.StatusServiceUnavailable)
			return
		}
		answerJSON("a")(w, r)
	})
	b := engine(t, answerJSON("b"))
	r := start(t, fleet(named("a", a), named("b", b)), "")
	expect(t, r.post(chatBody), 200, `"b"`)
	full.Store(false)
	expect(t, r.post(chatBody), 200, `"a"`)
	if n := r.metric(`irb_retries_total{reason="full"}`); n != "1" {
		t.Errorf("retries: %q, want 1", n)
	}
}

// ai-dynamo/dynamo PR 12138: a mark set on the way of a request expires by
// itself, or clears when the endpoint answers.
func TestCase10MarksExpire(t *testing.T) {
	e := &endpoint{}
	now := time.Unix(100, 0)
	e.markDown(now)
	if !e.down(now.Add(downFor - 1)) {
		t.Error("not down right after the mark")
	}
	if e.down(now.Add(downFor)) {
		t.Error("the mark does not expire")
	}
	e.markUp()
	if e.down(now) {
		t.Error("the mark does not clear")
	}
}

// ai-dynamo/dynamo PR 9688: engines that are full are passed over one by one;
// the client hears of it only when all are.
func TestCase11RejectOnlyWhenAllAreFull(t *testing.T) {
	busy := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		http.Error(w, "full", http.StatusTooManyRequests)
	}
	a, b := engine(t, busy), engine(t, busy)
	c := engine(t, answerJSON("c"))
	r := start(t, fleet(named("a", a), named("b", b), named("c", c)), "")
	expect(t, r.post(chatBody), 200, `"c"`)
	r.publish(fleet(named("a", a), named("b", b)))
	resp := r.post(chatBody)
	if v := resp.Header.Get("Retry-After"); v != "7" {
		t.Errorf("Retry-After: %q, want the engine's", v)
	}
	expect(t, resp, 429, "full")
}

// ai-dynamo/dynamo#7836: requests without a key follow the weights.
func TestCase12KeylessFollowWeights(t *testing.T) {
	var asked [2]atomic.Int32
	count := func(n int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { asked[n].Add(1) }
	}
	s := fleet(named("a", engine(t, count(0))), named("b", engine(t, count(1))))
	s.Sources[0].LayoutFrom, s.Sources[0].LayoutTo = []uint32{0, 3 << 30}, []string{"a", "b"}
	s.Sources[0].Fallbacks = nil
	r := start(t, s, "")
	for range 400 {
		resp, err := r.do(context.Background(), "GET", "/v1/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		read(t, resp)
	}
	if a := asked[0].Load(); a < 295 || a > 305 {
		t.Errorf("engine a with 3/4 of the weight got %d of 400", a)
	}
}

// ai-dynamo/dynamo PR 11646: availability before affinity; the key comes home
// when its endpoint is back.
func TestCase13AvailabilityBeforeAffinity(t *testing.T) {
	a, b := engine(t, answerJSON("one")), engine(t, answerJSON("two"))
	r := start(t, fleet(named("a", a, b)), "")
	home := read(t, r.post(chatBody))
	dead, alive := a, `"two"`
	if strings.Contains(home, "two") {
		dead, alive = b, `"one"`
	}
	address := dead.Listener.Addr().String()
	dead.Close()
	for range 10 {
		expect(t, r.post(chatBody), 200, alive)
	}
	// Most of these never asked the dead endpoint: it was marked down.
	listen, err := net.Listen("tcp", address)
	if err != nil {
		t.Skip("the address was taken meanwhile")
	}
	again := &httptest.Server{Listener: listen, Config: &http.Server{Handler: answerJSON("home again")}}
	again.Start()
	defer again.Close()
	for _, e := range r.proxy.endpoints {
		e.markUp() // as the clock would
	}
	expect(t, r.post(chatBody), 200, "home again")
}

// llm-d/llm-d-router PR 1739: counts belong to an endpoint's generation; one
// that leaves and comes back starts at zero and never goes below.
func TestCase15CountsBelongToAGeneration(t *testing.T) {
	entered, release := make(chan bool), make(chan bool)
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		entered <- true
		<-release
	})
	other := engine(t, answerJSON("other"))
	r := start(t, fleet(named("a", e)), "")
	var held sync.WaitGroup
	held.Go(func() { read(t, r.post(chatBody)) })
	<-entered
	find := func() *guard.Endpoint { return r.proxy.plan.Load().guards.Endpoint(0, 0) }
	first := find()
	r.publish(fleet(named("b", other)))
	r.publish(fleet(named("a", e)))
	second := find()
	if first == second || first.InFlight() != 1 || second.InFlight() != 0 {
		t.Errorf("generations %p with %d, %p with %d in flight", first, first.InFlight(), second, second.InFlight())
	}
	close(release)
	held.Wait()
	r.idle()
	if n := first.InFlight(); n != 0 {
		t.Errorf("first generation: %d in flight", n)
	}
}

// llm-d/llm-d-router PRs 1751 and 2047: 503 if there is nobody, 429 if all are
// busy.
func TestCase16RightCodes(t *testing.T) {
	dead := engine(t, answerJSON(""))
	dead.Close()
	r := start(t, fleet(named("a", dead)), "")
	resp := r.post(chatBody)
	if resp.Header.Get("X-Irb-Request-Dropped-Reason") != droppedNoEndpoints || resp.Header.Get("Retry-After") == "" {
		t.Errorf("header %v", resp.Header)
	}
	expect(t, resp, 503, "engine_unreachable")
	s := fleet(named("a", dead))
	s.Engines[0].Endpoints = nil
	r.publish(s)
	expect(t, r.post(chatBody), 503, "no_engine")
	busy := engine(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusTooManyRequests) })
	r.publish(fleet(named("a", busy)))
	expect(t, r.post(chatBody), 429, "busy")
}

// BerriAI/litellm#7669: an engine that says when to come back is not asked
// again before by the same request, nor first by others.
func TestCase21RetryAfterIsHonoured(t *testing.T) {
	for _, when := range []string{"30", time.Now().Add(30 * time.Second).UTC().Format(http.TimeFormat)} {
		var asked atomic.Int32
		full := engine(t, func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			w.Header().Set("Retry-After", when)
			http.Error(w, "later", http.StatusServiceUnavailable)
		})
		r := start(t, fleet(named("a", full)), "")
		resp := r.post(chatBody)
		if resp.Header.Get("Retry-After") != when {
			t.Errorf("Retry-After: %q, want %q", resp.Header.Get("Retry-After"), when)
		}
		expect(t, resp, 503, "later")
		if n := asked.Load(); n != 1 {
			t.Errorf("asked %d times before the time, want 1", n)
		}
		s := fleet(named("a", full), named("b", engine(t, answerJSON("b"))))
		s.Sources[0].Fallbacks[0].AbsorbRPS = 100
		r = start(t, s, "")
		asked.Store(0)
		for range 3 {
			expect(t, r.post(chatBody), 200, `"b"`)
			time.Sleep(2 * 50 * time.Millisecond) // longer than a mark without Retry-After
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("%q: asked by %d of three requests, want by the first", when, n)
		}
	}
}

// TestRetryAfter: what an engine may say.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "-3": 0, "7": 7 * time.Second, "99999999": 1 << 20 * time.Second, "soon": 0, "1.5": 0,
		"Mon, 30 Nov 2026 12:00:09 GMT": 9 * time.Second, "Mon, 30 Nov 2026 11:00:00 GMT": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

// traefik/traefik#2986: weights are those of the snapshot after an engine was
// away.
func TestCase25WeightsSurviveFlaps(t *testing.T) {
	var asked [2]atomic.Int32
	var down atomic.Bool
	a := engine(t, func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			w.WriteHeader(502)
			return
		}
		asked[0].Add(1)
	})
	b := engine(t, func(w http.ResponseWriter, r *http.Request) { asked[1].Add(1) })
	s := fleet(named("a", a), named("b", b))
	s.Sources[0].LayoutFrom, s.Sources[0].LayoutTo, s.Sources[0].Fallbacks = []uint32{0, 3 << 30}, []string{"a", "b"}, nil
	r := start(t, s, "")
	ask := func(n int) {
		for i := range n {
			read(t, r.post(fmt.Sprintf(`{"model":"m","prompt_cache_key":"%d"}`, i)))
		}
	}
	down.Store(true)
	ask(10)
	down.Store(false)
	asked[0].Store(0)
	asked[1].Store(0)
	ask(400)
	// 4 standard deviations of a binomial: sqrt(400 x 3/4 x 1/4) = 8.7.
	if n := asked[0].Load(); n < 265 || n > 335 {
		t.Errorf("engine a with 3/4 of the weight got %d of 400", n)
	}
}

// golang/go#16100: a stream longer than any limit on one write goes on.
func TestCase27StreamOutlivesWriteLimit(t *testing.T) {
	const frames = 12
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range frames {
			io.WriteString(w, "data: {\"text\":\"x\"}\n\n")
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond) // together longer than the limit below
		}
	})
	r := start(t, fleet(named("a", e)), "[timeouts]\nclient_write = \"20ms\"\nclient_read = \"20ms\"\n")
	if got := read(t, r.post(streamBody)); got != strings.Repeat("data: {\"text\":\"x\"}\n\n", frames) {
		t.Errorf("got %q", got)
	}
	if r.server.full.WriteTimeout != 0 || r.server.full.ReadTimeout != 0 || r.server.full.ReadHeaderTimeout == 0 {
		t.Error("the server limits whole answers, or headers not at all")
	}
}

// golang/go#35908: an escaped slash stays escaped.
func TestCase28EscapedPathIsKept(t *testing.T) {
	got := make(chan string, 1)
	e := engine(t, func(w http.ResponseWriter, r *http.Request) { got <- r.RequestURI })
	base := named("a", e)
	for _, prefix := range []string{"", "/base%2fx"} {
		base.Endpoints = []string{e.URL + prefix}
		r := start(t, fleet(base), "")
		for _, target := range []string{"/v1/models/org%2fname", "/v1/a%20b?x=%2f&y", "/v1/m?", "/v1/%E4%BD%A0/+;,@"} {
			resp, err := r.do(context.Background(), "GET", target, nil)
			if err != nil {
				t.Fatal(err)
			}
			read(t, resp)
			if uri := <-got; uri != prefix+target {
				t.Errorf("the engine got %q, want %q", uri, prefix+target)
			}
		}
	}
}

// higress-group/higress#3531: a retry sends the whole body again, or there is
// no retry.
func TestCase29RetrySendsTheWholeBody(t *testing.T) {
	var bodies sync.Map
	failing := engine(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies.Store("a", string(b))
		w.WriteHeader(502)
	})
	well := engine(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies.Store("b", string(b))
	})
	r := start(t, fleet(named("a", failing), named("b", well)), "[body]\nreplay = \"64KiB\"\n")
	send := func(body string, status int) {
		t.Helper()
		bodies.Clear()
		expect(t, r.post(body), status, "")
		if a, _ := bodies.Load("a"); a != body {
			t.Errorf("the first engine got %d bytes, want %d", len(a.(string)), len(body))
		}
		if b, ok := bodies.Load("b"); ok != (status == 200) || ok && b != body {
			t.Errorf("the second engine got something else (asked: %v)", ok)
		}
	}
	big := fmt.Sprintf(`{"model":"m","prompt":%q}`, bytes.Repeat([]byte("x"), 60<<10))
	send(chatBody, 200)
	send(big, 200)
	send(fmt.Sprintf(`{"model":"m","prompt":%q}`, bytes.Repeat([]byte("x"), 70<<10)), 502)
	if n := r.metric(`irb_retries_not_sent_total{reason="body"}`); n != "1" {
		t.Errorf("retries not sent for the body: %q, want 1", n)
	}
	r.idle()
}

// livekit/agents PR 6697: a first event without content does not rule out a
// retry, because it was held back; after one with content there is none.
func TestCase30NoRetryAfterContent(t *testing.T) {
	role := "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
	content := "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n"
	for _, test := range []struct {
		sent, want string
		broken     bool
	}{
		{role, "well", false},
		{role + content, role + content, true},
	} {
		a := raw(t, func(_ int, c net.Conn, _ *http.Request) {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(test.sent), test.sent)
		})
		b := engine(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "well") })
		r := start(t, fleet(named("a", a), named("b", b)), "")
		resp := r.post(streamBody)
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(got) != test.want || (err != nil) != test.broken {
			t.Errorf("got %q and error %v, want %q and an error: %v", got, err, test.want, test.broken)
		}
	}
}
