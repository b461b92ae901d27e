package proxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestUsage(t *testing.T) {
	for _, test := range []struct {
		name, data      string
		in, out, cached int
		cachedKnown     bool
	}{
		{"chat", `"usage":{"prompt_tokens":900,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":512}}`, 900, 20, 512, true},
		{"nothing cached", `"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}`, 9, 2, 0, true},
		{"not said", `"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":null}`, 9, 2, 0, false},
		{"null", `"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":null}}`, 9, 0, 0, false},
		{"responses", `"usage":{"input_tokens":70,"input_tokens_details":{"cached_tokens":64},"output_tokens":5}`, 70, 5, 64, true},
		{"messages", `"usage":{"input_tokens":30,"cache_creation_input_tokens":50,"cache_read_input_tokens":20,"output_tokens":4}`, 100, 4, 20, true},
		{"no usage", `"usage":null`, 0, 0, 0, false},
	} {
		var s sseScanner
		s.usage([]byte(test.data))
		if s.InTokens != test.in || s.OutTokens != test.out || s.cached != test.cached || s.cachedKnown != test.cachedKnown {
			t.Errorf("%s: %+v, want %+v", test.name, s, test)
		}
	}
}

const countedUsage = `"usage":{"prompt_tokens":300,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":256}}`

// Whatever the form of the answer, its usage is counted, once.
func TestTokensAreCounted(t *testing.T) {
	for _, test := range []struct {
		name, body string
		handler    http.HandlerFunc
		want       map[string]string // kind, source: tokens
	}{
		{"short JSON", chatBody, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"choices":[{"message":{"content":"\"usage\":{\"prompt_tokens\":1}"}}],%s}`, countedUsage)
		}, map[string]string{"prompt usage": "300", "cached usage": "256", "output usage": "7"}},
		{"long JSON in pieces", chatBody, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"choices":[{"message":{"content":%q}}],"usa`, strings.Repeat("x", 30_000))
			w.(http.Flusher).Flush()
			fmt.Fprintf(w, "%s}", strings.TrimPrefix(countedUsage, `"usa`))
		}, map[string]string{"prompt usage": "300", "cached usage": "256", "output usage": "7"}},
		{"stream with usage", streamBody, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":null}\n\ndata: {\"choices\":[],%s}\n\ndata: [DONE]\n\n", countedUsage)
		}, map[string]string{"prompt usage": "300", "cached usage": "256", "output usage": "7"}},
		{"stream without usage", streamBody, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 3 {
				fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
			}
			fmt.Fprint(w, "data: [DONE]\n\n")
		}, map[string]string{"prompt usage": "0", "prompt estimate": "18", "cached usage": "0", "output estimate": "3"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := start(t, fleet(named("a-1", engine(t, test.handler))), "")
			read(t, r.post(test.body))
			r.tokens(test.want)
		})
	}
}

// tokens waits for the counts, which come after the answer.
func (r *rig) tokens(want map[string]string) {
	r.t.Helper()
	for key, n := range want {
		kind, source, _ := strings.Cut(key, " ")
		series := fmt.Sprintf(`irb_tokens_total{class="chat",irb_cluster="here",irb_fleet="test",kind=%q,source=%q}`, kind, source)
		eventually(r.t, key+" "+n+", not "+r.metric(series), func() bool { return r.metric(series) == n })
	}
}

// The usage of a long answer is found wherever reads cut it.
func TestUsageOfLongAnswers(t *testing.T) {
	for cut := range len(countedUsage) {
		r := fmt.Sprintf(`{"choices":[{"message":{"content":%q}}],%s}`, strings.Repeat("x", 3000), countedUsage)
		at := len(r) - len(countedUsage) - 1 + cut
		var s sseScanner
		for _, piece := range []string{r[:at], r[at:]} {
			s.keepTail([]byte(piece))
			s.lastUsage(s.tail)
		}
		if s.InTokens != 300 || s.OutTokens != 7 || s.cached != 256 {
			t.Fatalf("cut at %d: %d, %d, %d", cut, s.InTokens, s.OutTokens, s.cached)
		}
	}
}

// Demand is what clients offer: shed and failed requests too, once however
// often we try, and not what a client says it sent before.
func TestOffered(t *testing.T) {
	broken := engine(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	other := engine(t, answerJSON("b-1"))
	r := start(t, fleet(named("a-1", broken), named("b-1", other)), "")
	read(t, r.post(chatBody))
	read(t, r.post(chatBody, "x-stainless-retry-count", "0"))
	read(t, r.post(chatBody, "x-stainless-retry-count", "1"))
	if resp, err := r.do(context.Background(), "GET", "/v1/models", nil); err == nil {
		read(t, resp)
	}
	if got := r.metric(`irb_requests_offered_total{attempt="first"`); got != "2" {
		t.Errorf("%s requests offered, want 2", got)
	}
	if got := r.metric(`irb_requests_offered_total{attempt="client_retry"`); got != "1" {
		t.Errorf("%s retries of clients, want 1", got)
	}
}

// Round trips are known of every endpoint, also of those that get no request,
// and an endpoint that refuses is told of as down.
func TestProbes(t *testing.T) {
	gone := engine(t, answerJSON("b-1"))
	gone.Close()
	r := start(t, fleet(named("a-1", engine(t, answerJSON("a-1"))), named("b-1", gone)), "")
	for range 3 { // a part of the endpoints each
		r.proxy.probe(t.Context())
	}
	if r.metric(`irb_engine_rtt_seconds{engine="a-1"`) == "" {
		t.Error("no round trip to a-1")
	}
	if got := r.metric(`irb_engine_rtt_seconds{engine="b-1"`); got != "" {
		t.Errorf("a round trip of %s s to an engine that refuses", got)
	}
	for endpoint, want := range map[string]string{"a-1": "1", "b-1": "0"} {
		series := fmt.Sprintf(`irb_endpoint_up{endpoint=%q`, r.proxy.table.Engines()[map[string]int{"a-1": 0, "b-1": 1}[endpoint]].Endpoints[0])
		if got := r.metric(series); got != want {
			t.Errorf("%s: up is %s, want %s", endpoint, got, want)
		}
	}
	if due := r.proxy.dueProbes(time.Now()); len(due) != 0 {
		t.Errorf("%d endpoints are due at once again", len(due))
	}
	if due := r.proxy.dueProbes(time.Now().Add(2 * probeAfter)); len(due) == 0 {
		t.Error("none is due after two minutes")
	}
}

// A connect over loopback takes microseconds, whatever the machine is busy with.
func TestKernelRTT(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("asked of Linux only")
	}
	conn, err := net.Dial("tcp", engine(t, answerJSON("a-1")).Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if rtt, ok := kernelRTT(conn); !ok || rtt <= 0 {
		t.Errorf("%v, %v, want the round trip of the handshake", rtt, ok)
	}
	if _, ok := kernelRTT(nil); ok {
		t.Error("a round trip of no connection")
	}
}
