package proxy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/irb-project/irb/agent/lifetime"
	"github.com/irb-project/irb/agent/snapshot"
)

func TestSSEScanner(t *testing.T) {
	for name, test := range map[string]struct {
		stream          string
		content         int
		other, midFrame bool
		in, out         int
	}{
		"chat": {"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n" +
			"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\" \\\"\"}}]}\n\n" +
			"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n" +
			"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"total_tokens\":12,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n",
			2, true, false, 9, 3},
		"blanks":     {"data: {\"choices\": [{\"delta\": {\"content\": \"Hi\"}}]}\r\n\r\n", 1, false, false, 0, 0},
		"completion": {"data: {\"choices\":[{\"text\":\"Hi\"}]}\n\n", 1, false, false, 0, 0},
		"reasoning":  {"data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\",\"content\":null}}]}\n\n", 1, false, false, 0, 0},
		"tool call":  {"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"index\":0}]}}]}\n\n", 1, false, false, 0, 0},
		"no tools":   {"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"tool_calls\":[]}}]}\n\n", 0, false, false, 0, 0},
		"responses": {"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"text\":{\"format\":{\"type\":\"text\"}}}}\n\n" +
			"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n" +
			"data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":4,\"output_tokens\":2}}}\n\n", 1, true, false, 4, 2},
		"messages": {"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"role\":\"assistant\",\"content\":[]}}\n\n" +
			"data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n", 1, false, false, 0, 0},
		"opener alone":   {"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n", 0, false, false, 0, 0},
		"comment":        {": ping\n\n", 0, true, false, 0, 0},
		"own vocabulary": {"data: {\"status\":\"thinking\"}\n\n", 0, true, false, 0, 0},
		"text of a key":  {"data: {\"choices\":[{\"delta\":{\"role\":\"a \\\"content\\\":\\\"x\\\"\"}}]}\n\n", 0, false, false, 0, 0},
		"cut":            {"data: {\"choi", 0, false, true, 0, 0},
		"cut at line":    {"data: {\"text\":\"x\"}\n", 1, false, true, 0, 0},
		"long":           {"data: {\"text\":\"" + strings.Repeat("x", 2*maxLine) + "\"}\n\n", 1, false, false, 0, 0},
	} {
		for _, piece := range []int{1, 7, 4096, 1 << 20} {
			var s sseScanner
			content := 0
			for rest := []byte(test.stream); len(rest) > 0; {
				n := min(piece, len(rest))
				content += s.scan(rest[:n])
				rest = rest[n:]
			}
			if content != test.content || s.Content != content || s.Other != test.other || s.midFrame != test.midFrame ||
				s.InTokens != test.in || s.OutTokens != test.out {
				t.Errorf("%s in pieces of %d: content %d, other %v, mid-frame %v, tokens %d and %d; want %+v",
					name, piece, content, s.Other, s.midFrame, s.InTokens, s.OutTokens, test)
			}
		}
	}
}

// FuzzSSE: how a stream is cut into reads makes no difference.
func FuzzSSE(f *testing.F) {
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n"), uint8(3))
	f.Add([]byte(": ping\r\n\r\nevent: x\ndata:{\"usage\":{\"completion_tokens\":3}}\n\n"), uint8(1))
	f.Fuzz(func(t *testing.T, stream []byte, piece uint8) {
		var whole, cut sseScanner
		whole.scan(stream)
		for rest := stream; len(rest) > 0; {
			n := min(1+int(piece), len(rest))
			cut.scan(rest[:n])
			rest = rest[n:]
		}
		if whole.Content != cut.Content || whole.Other != cut.Other || whole.Progress != cut.Progress || whole.midFrame != cut.midFrame ||
			whole.OutTokens != cut.OutTokens || whole.InTokens != cut.InTokens {
			t.Errorf("whole %+v, cut %+v", whole, cut)
		}
	})
}

func TestSSEScannerAllocatesNothing(t *testing.T) {
	chunk := []byte("data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n")
	var s sseScanner
	s.scan(chunk[:20])
	s.scan(chunk[20:])
	if n := testing.AllocsPerRun(100, func() { s.scan(chunk[:20]); s.scan(chunk[20:]) }); n != 0 {
		t.Errorf("%v allocations per event, want 0", n)
	}
}

func BenchmarkSSEScanner(b *testing.B) {
	chunk := []byte(`data: {"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}` + "\n\n")
	var s sseScanner
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		s.scan(chunk)
	}
}

func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var ctx lifetime.Context
		var w watchdog
		w.start(time.Now, start.Add(10*time.Second), &errDeadline, &ctx)
		w.move(start.Add(5*time.Second), &errTTFT) // sooner
		time.Sleep(4 * time.Second)
		for range 10 { // each chunk gives another 5 s
			w.move(time.Now().Add(5*time.Second), &errIdle)
			time.Sleep(4 * time.Second)
			if ctx.Err() != nil {
				t.Fatalf("ended after %v", time.Since(start))
			}
		}
		<-ctx.Done()
		if took := time.Since(start); took != 45*time.Second || ctx.Cause() != errIdle {
			t.Errorf("ended after %v with %v, want 45 s and %v", took, ctx.Cause(), errIdle)
		}
		w.stop()
	})
}

// TestResolve: a name with several addresses is as many endpoints; when one
// goes, only its keys move; a failing resolver changes nothing.
func TestResolve(t *testing.T) {
	spec := snapshot.Engine{Name: "a", Endpoints: []string{"http://pool.test:8000"}}
	r := start(t, fleet(spec), "")
	answers := map[string][]netip.Addr{"pool.test": {
		netip.MustParseAddr("127.0.0.3"), netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1"),
		netip.MustParseAddr("::ffff:127.0.0.2"), netip.MustParseAddr("127.0.0.1"),
	}}
	lookup := func(_ context.Context, host string) ([]netip.Addr, time.Duration, error) {
		if a, ok := answers[host]; ok {
			return a, time.Minute, nil
		}
		return nil, 0, fmt.Errorf("no such host %s", host)
	}
	homes := func() (hosts []string) {
		pool := r.proxy.plan.Load().pools[0]
		for key := range uint64(3000) {
			w := pool.walk.Walk(key * 0x9E3779B97F4A7C15)
			i, _ := w.Next()
			hosts = append(hosts, pool.endpoints[i].host)
		}
		return hosts
	}
	if ttl := r.proxy.resolve(context.Background(), lookup); ttl != time.Minute {
		t.Errorf("time to live %v", ttl)
	}
	before := homes()
	count := map[string]int{}
	for _, h := range before {
		count[h]++
	}
	if len(count) != 3 || count["127.0.0.2:8000"] < 850 || count["127.0.0.2:8000"] > 1150 {
		t.Errorf("keys by address: %v, want 3 addresses with a third each", count)
	}
	answers["pool.test"] = answers["pool.test"][1:]
	r.proxy.resolve(context.Background(), lookup)
	for i, h := range homes() {
		if before[i] != h && before[i] != "127.0.0.3:8000" {
			t.Fatalf("key %d moved from %s to %s, although only 127.0.0.3 went", i, before[i], h)
		}
	}
	delete(answers, "pool.test")
	r.proxy.resolve(context.Background(), lookup)
	if n := len(r.proxy.plan.Load().pools[0].endpoints); n != 2 {
		t.Errorf("%d endpoints after a failed lookup, want the 2 of before", n)
	}
	if !strings.Contains(r.log.String(), "its addresses stay") {
		t.Errorf("log: %s", r.log)
	}
}

// TestAgentsAreCounted: the addresses under agents_name are the agents that share
// the plan; a failing resolver changes nothing, other settings do.
func TestAgentsAreCounted(t *testing.T) {
	r := startWith(t, fleet(named("a", engine(t, answerJSON("a")))), "agents = 2\nagents_name = \"agents.test\"\n"+testConfig, nil)
	var found []netip.Addr
	var fails error
	resolve := func(addresses ...string) {
		found = nil
		for _, a := range addresses {
			found = append(found, netip.MustParseAddr(a))
		}
		r.proxy.resolve(context.Background(), func(_ context.Context, host string) ([]netip.Addr, time.Duration, error) {
			if host != "agents.test" {
				return nil, 0, fmt.Errorf("no such host %s", host)
			}
			return found, time.Minute, fails
		})
	}
	expectAgents := func(want int) {
		t.Helper()
		if n := r.proxy.guard.Agents(); n != want {
			t.Errorf("%d agents, want %d", n, want)
		}
	}
	expectAgents(2)
	resolve("10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1", "10.0.0.3")
	expectAgents(3)
	if w := get(r.proxy.Debug(), "/debug/engines"); !strings.Contains(w, `"agents": 3`) {
		t.Error(w)
	}
	fails = errors.New("server is gone")
	resolve("10.0.0.1")
	expectAgents(3)
	r.proxy.SetConfig(parseConfig(t, "agents = 5\nagents_name = \"agents.test\"\n"+testConfig))
	expectAgents(3)
	r.proxy.SetConfig(parseConfig(t, "agents = 5\n"+testConfig))
	expectAgents(5)
	fails = nil
	resolve("10.0.0.1")
	expectAgents(5)
}

func get(h http.Handler, target string) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
	return w.Body.String()
}

// TestLookupsDoNotWaitForEachOther: names whose servers say nothing keep no
// other name waiting, and are given up.
func TestLookupsDoNotWaitForEachOther(t *testing.T) {
	spec := snapshot.Engine{Name: "a", Endpoints: []string{"http://pool.test:8000"}}
	for i := range lookupsAtOnce - 1 {
		spec.Endpoints = append(spec.Endpoints, fmt.Sprintf("http://silent-%d.test:8000", i))
	}
	r := start(t, fleet(spec), "")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var answered time.Duration
		r.proxy.resolve(t.Context(), func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
			if host != "pool.test" {
				<-ctx.Done()
				if n := len(r.proxy.plan.Load().pools[0].endpoints); n != lookupsAtOnce+1 {
					t.Errorf("%d endpoints while other names are asked for, want both addresses of the one that is known", n)
				}
				return nil, 0, ctx.Err()
			}
			answered = time.Since(began)
			return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")}, time.Minute, nil
		})
		if took := time.Since(began); answered != 0 || took != lookupTimeout {
			t.Errorf("asked after %v, ended after %v, want 0s and %v", answered, took, lookupTimeout)
		}
	})
}

// TestRunResolvesNewNames: a table with new names is looked at without waiting
// for the interval.
func TestRunResolvesNewNames(t *testing.T) {
	asked := make(chan string, 10)
	r := startWith(t, nil, "engine.resolve_interval = \"1h\"\n"+testConfig, nil)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan bool)
	go func() {
		r.proxy.Run(ctx, func(_ context.Context, host string) ([]netip.Addr, time.Duration, error) {
			asked <- host
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, time.Millisecond, nil
		})
		close(ended)
	}()
	r.publish(fleet(snapshot.Engine{Name: "a", Endpoints: []string{"http://one.test:1"}}))
	if host := <-asked; host != "one.test" {
		t.Errorf("asked for %s", host)
	}
	<-asked // again when the answer no longer holds, without waiting for the interval
	cancel()
	<-ended
}

func TestDecisionLog(t *testing.T) {
	down := engine(t, nil)
	down.Close()
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"text\":\"x\",\"usage\":{\"completion_tokens\":3}}\n\n")
	})
	path := filepath.Join(t.TempDir(), "decisions")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var log *DecisionLog
	r := startWith(t, fleet(named("a", down), named("b", e)), testConfig+"identity = \"tenant\"\n[decision_log]\nsample = 1\n", func(o *Options) {
		log = NewDecisionLog(f, []byte("secret"), o.Metrics.DecisionsDropped, o.Log)
		o.Decisions = log
	})
	secret := "a very private prompt"
	read(t, r.post(`{"model":"m","stream":true,"prompt_cache_key":"session-7","messages":[{"role":"user","content":"`+secret+`"}]}`, "X-Request-Id", "id-1"))
	read(t, r.post(`{"model":"m","prompt_cache_key":"session-7"}`))
	eventually(t, "both requests counted", func() bool {
		return r.metric(`irb_requests_total{class="chat",engine="b",outcome="ok"}`) == "2"
	})
	r.server.Close()
	log.Close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte(secret)) || bytes.Contains(text, []byte("session-7")) {
		t.Errorf("the log tells what it must not: %s", text)
	}
	var lines []decision
	for scanner := bufio.NewScanner(bytes.NewReader(text)); scanner.Scan(); {
		var d decision
		if err := json.Unmarshal(scanner.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, d)
	}
	if len(lines) != 2 {
		t.Fatalf("%d lines, want 2", len(lines))
	}
	d := lines[0]
	if d.RequestID != "id-1" || d.Class != "chat" || d.Identity != "tenant" || d.Snapshot != 1 || d.Outcome != "ok" || d.OutTokens != 3 ||
		d.KeySource != "prompt_cache_key" || d.TTFTMs <= 0 || len(d.Tried) != 2 ||
		d.Tried[0].Engine != "a" || d.Tried[0].Failed != "connect" || d.Tried[1].Engine != "b" || d.Tried[1].Rank != 1 || d.Tried[1].Failed != "" {
		t.Errorf("decision %+v", d)
	}
	if d.Key == "" || d.Key != lines[1].Key {
		t.Errorf("keys %q and %q, want one", d.Key, lines[1].Key)
	}
}

// TestDecisionSaysWhyEndpointsWerePassedOver: an endpoint that got no chance is in
// the log with the reason.
func TestDecisionSaysWhyEndpointsWerePassedOver(t *testing.T) {
	busy := func(retryAfter string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", retryAfter)
			http.Error(w, "full", http.StatusServiceUnavailable)
		}
	}
	down := engine(t, nil)
	down.Close()
	for reason, first := range map[string]*httptest.Server{
		"unreachable": down, "retry_after": engine(t, busy("30")), "refused": engine(t, busy("")),
	} {
		var text bytes.Buffer
		var log *DecisionLog
		s := fleet(named("a", first), named("b", engine(t, answerJSON("b"))))
		s.Sources[0].Fallbacks[0].AbsorbRPS = 100
		r := startWith(t, s, testConfig+"[decision_log]\nsample = 1\n", func(o *Options) {
			log = NewDecisionLog(&text, nil, o.Metrics.DecisionsDropped, o.Log)
			o.Decisions = log
			o.Now = func() time.Time { return time.Unix(2e9, 0) } // marks do not end
		})
		expect(t, r.post(chatBody), 200, `"b"`)
		expect(t, r.post(chatBody), 200, `"b"`)
		eventually(t, "both requests counted", func() bool {
			return r.metric(`irb_requests_total{class="chat",engine="b",outcome="ok"}`) == "2"
		})
		r.server.Close()
		log.Close()
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		want := fmt.Sprintf(`"skipped":[{"engine":"a","endpoint":%q,"rank":0,"reason":%q}]`, first.URL, reason)
		if len(lines) != 2 || strings.Contains(lines[0], "skipped") || !strings.Contains(lines[1], want) {
			t.Errorf("%s: got %s, want %s in the second", reason, lines, want)
		}
	}
}

func TestDecisionLogNeverBlocks(t *testing.T) {
	dropped := prometheus.NewCounter(prometheus.CounterOpts{Name: "x"})
	warnings := &lockedBuffer{}
	log := NewDecisionLog(errWriter{}, nil, dropped, slog.New(slog.NewTextHandler(warnings, nil)))
	for range 3000 {
		log.send(decision{})
	}
	log.Close()
	if n := strings.Count(warnings.String(), "disk full"); n != 1 {
		t.Errorf("%d warnings, want one: %s", n, warnings)
	}
}

func TestDebug(t *testing.T) {
	s := fleet(named("a", engine(t, answerJSON("a"))), named("b", engine(t, answerJSON("b"))), named("c", engine(t, answerJSON("c"))))
	r := startWith(t, nil, "drain = [\"a\"]\nhold = [\"b\", \"unknown\"]\n"+testConfig, nil)
	get := func(target string) (int, string) {
		w := httptest.NewRecorder()
		r.proxy.Debug().ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		return w.Code, w.Body.String()
	}
	for _, target := range []string{"/debug/engines", "/debug/pick?class=chat&key=k"} {
		if code, _ := get(target); code != http.StatusServiceUnavailable {
			t.Errorf("%s without a table: %d", target, code)
		}
	}
	r.publish(s)
	if _, text := get("/debug/engines"); !strings.Contains(text, `"state": "drain"`) || !strings.Contains(text, `"state": "hold"`) || !strings.Contains(text, `"state": "serving"`) {
		t.Errorf("engines: %s", text)
	}
	if code, _ := get("/debug/pick?class=none&key=k"); code != http.StatusBadRequest {
		t.Errorf("unknown class: %d", code)
	}
	_, text := get("/debug/pick?class=chat&key=k")
	if !strings.Contains(text, `"skipped": "down"`) || !strings.Contains(text, `"skipped": "penalty"`) || !strings.Contains(text, s.Engines[2].Endpoints[0]) {
		t.Errorf("pick: %s", text)
	}
	expect(t, r.post(chatBody), 200, `"c"`)
}

func TestRequestID(t *testing.T) {
	for id, kept := range map[string]bool{
		"abc-123": true, "": false, "a b": false, "a\"b": false, "é": false, strings.Repeat("x", 129): false,
	} {
		got := requestID(http.Header{"X-Request-Id": {id}})
		if (got == id) != kept || len(got) == 0 {
			t.Errorf("%q: got %q", id, got)
		}
	}
	if one, two := requestID(nil), requestID(nil); one == two {
		t.Error("two requests got one id")
	}
}

// TestDrainClosesConnections: while the agent drains, answers tell clients to
// go elsewhere.
func TestDrainClosesConnections(t *testing.T) {
	r := start(t, fleet(named("a", engine(t, answerJSON("a")))), "")
	r.proxy.StartDrain()
	resp := r.post(chatBody)
	if !resp.Close {
		t.Error("the connection stays open")
	}
	expect(t, resp, 200, `"a"`)
}

// TestNothingIsLeft: after all kinds of requests no goroutine is left, and no
// count.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("traffic", func(t *testing.T) {
		stream := func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			for range 20 {
				io.WriteString(w, "data: {\"text\":\"x\"}\n\n")
				w.(http.Flusher).Flush()
			}
		}
		var asked atomic.Int32
		fail := func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err == nil && asked.Add(1)%2 == 0 {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(502)
		}
		dead := engine(t, nil)
		dead.Close()
		one := engine(t, fail)
		one.Config.SetKeepAlivesEnabled(false)
		r := start(t, fleet(named("a", one, dead), named("b", engine(t, stream))), "")
		for i := range 100 {
			ctx, cancel := context.WithCancel(context.Background())
			resp, err := r.do(ctx, "POST", "/v1/x", strings.NewReader(streamBody))
			if err != nil {
				t.Fatal(err)
			}
			if i%3 == 0 {
				cancel()
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			cancel()
		}
		r.idle()
	})
	for range 2000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	stacks := make([]byte, 1<<20)
	t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
}
