package standin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// start returns an engine with the profile sharing: alone, a request of 400
// bytes and 10 tokens takes 0.1 s to its first token and 1 s in all.
func start(t *testing.T, change func(*Config)) *Engine {
	t.Helper()
	cfg := Config{Name: "a-1", Models: []string{"chat"}, Profile: sharing(), CapacityRPS: 1}
	if change != nil {
		change(&cfg)
	}
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func request(path, body string) *http.Request {
	return httptest.NewRequest("POST", path, strings.NewReader(body))
}

// chat is a request of one user message of the given number of tokens.
func chat(tokens int, more string) *http.Request {
	return request("/v1/chat/completions", fmt.Sprintf(
		`{"model":"chat","messages":[{"role":"user","content":%q}]%s}`, strings.Repeat("user", tokens), more))
}

func serve(e *Engine, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

// timed returns a recorder that notes when each frame came.
type timed struct {
	*httptest.ResponseRecorder
	begin  time.Time
	frames []string
}

func (w *timed) Write(b []byte) (int, error) {
	w.frames = append(w.frames, fmt.Sprintf("%v %s", time.Since(w.begin).Round(time.Millisecond), strings.TrimSpace(string(b))))
	return w.ResponseRecorder.Write(b)
}

func TestAnswer(t *testing.T) {
	for _, test := range []struct{ path, body, object, text string }{
		{"/v1/chat/completions", `{"model":"chat","messages":[{"role":"user","content":"12345678"}],"max_tokens":2}`,
			"chat.completion", `"message":{"role":"assistant","content":"tok tok "}`},
		{"/v1/chat/completions", `{"model":"chat","messages":[{"role":"user","content":[{"type":"text","text":"12345678"}]}],"max_completion_tokens":2}`,
			"chat.completion", `"message":{"role":"assistant","content":"tok tok "}`},
		{"/v1/completions", `{"model":"chat","prompt":"12345678","max_tokens":2}`, "text_completion", `"text":"tok tok "`},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := start(t, nil)
			begin := time.Now()
			w := serve(e, request(test.path, test.body))
			// 2 of 100 prompt tokens, 2 output tokens.
			if got, want := time.Since(begin).Round(time.Microsecond), 182*time.Millisecond; got != want {
				t.Errorf("%s: took %v, want %v", test.body, got, want)
			}
			body := w.Body.String()
			for _, want := range []string{test.object, test.text, `"finish_reason":"length"`, `"usage":{"prompt_tokens":2,"completion_tokens":2,"total_tokens":4`} {
				if !strings.Contains(body, want) {
					t.Errorf("%s: answer %s lacks %s", test.body, body, want)
				}
			}
			if w.Code != 200 || w.Header().Get(NameHeader) != "a-1" {
				t.Errorf("%s: status %d from %q, want 200 from a-1", test.body, w.Code, w.Header().Get(NameHeader))
			}
			e.Close()
		})
	}
}

func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, nil)
		w := &timed{ResponseRecorder: httptest.NewRecorder(), begin: time.Now()}
		e.ServeHTTP(w, chat(100, `,"max_tokens":2,"stream":true,"stream_options":{"include_usage":true}`))
		wants := []struct{ at, part string }{
			{"100ms", `"delta":{"role":"assistant","content":""},"finish_reason":null`},
			{"100ms", `"delta":{"content":"tok "},"finish_reason":null`},
			{"190ms", `"delta":{"content":"tok "},"finish_reason":null`},
			{"280ms", `"finish_reason":"length"`},
		}
		if len(w.frames) != len(wants) {
			t.Fatalf("%d writes, want %d: %q", len(w.frames), len(wants), w.frames)
		}
		for i, want := range wants {
			if !strings.HasPrefix(w.frames[i], want.at+" data: {") || !strings.Contains(w.frames[i], want.part) {
				t.Errorf("write %d is %s, want %s at %s", i, w.frames[i], want.part, want.at)
			}
		}
		if !strings.HasSuffix(w.Body.String(), `"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":2,"total_tokens":102,"prompt_tokens_details":{"cached_tokens":0}}}`+"\n\ndata: [DONE]\n\n") {
			t.Errorf("stream ends in %q, want usage and [DONE]", w.Body.String()[max(0, w.Body.Len()-200):])
		}
		if !w.Flushed {
			t.Error("stream was not flushed")
		}

		plain := serve(e, request("/v1/completions", `{"model":"chat","prompt":"x","max_tokens":1,"stream":true}`)).Body.String()
		if strings.Contains(plain, "usage") || strings.Count(plain, "data: ") != 3 || !strings.Contains(plain, `"text":"tok "`) {
			t.Errorf("stream of one token is %q, want a token, a finish reason and [DONE] without usage", plain)
		}
		e.Close()
	})
}

// Two requests that share an engine of processor sharing take twice as long.
func TestSharingAndSpeedup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, func(c *Config) { c.Speedup = 10 })
		begin := time.Now()
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { serve(e, chat(100, "")) })
		}
		all.Wait()
		if got := time.Since(begin).Round(time.Microsecond); got != 200*time.Millisecond {
			t.Errorf("two requests took %v, want 200ms", got)
		}
		if got := e.Served(); got.Requests != 2 || math.Abs(got.Seconds-0.4) > 1e-9 {
			t.Errorf("served %+v, want 2 requests of 0.2 s", got)
		}
		e.Close()
	})
}

func TestPrefixCacheShortensPrefill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, nil)
		first := strings.Repeat("user", 100)
		serve(e, chat(100, `,"max_tokens":10`))
		begin := time.Now()
		w := serve(e, request("/v1/chat/completions", fmt.Sprintf(
			`{"model":"chat","max_tokens":1,"messages":[{"role":"user","content":%q},{"role":"assistant","content":%q},{"role":"user","content":%q}]}`,
			first, strings.Repeat(tokenText, 10), strings.Repeat("more", 20))))
		// 130 tokens of which 110 are cached; then one output token.
		if got, want := time.Since(begin).Round(time.Microsecond), 110*time.Millisecond; got != want {
			t.Errorf("second turn took %v, want %v", got, want)
		}
		if !strings.Contains(w.Body.String(), `"cached_tokens":110`) {
			t.Errorf("answer %s lacks 110 cached tokens", w.Body)
		}
		metrics := serve(e, httptest.NewRequest("GET", "/metrics", nil)).Body.String()
		for _, want := range []string{
			`vllm:prefix_cache_queries_total{engine="0",model_name="chat"} 230`,
			`vllm:prefix_cache_hits_total{engine="0",model_name="chat"} 110`,
			`vllm:time_to_first_token_seconds_count{engine="0",model_name="chat"} 2`,
			`vllm:inter_token_latency_seconds_count{engine="0",model_name="chat"} 11`,
			`vllm:num_requests_running{engine="0",model_name="chat"} 0`,
		} {
			if !strings.Contains(metrics, want+"\n") {
				t.Errorf("metrics lack %s:\n%s", want, metrics)
			}
		}
		e.Close()
	})
}

func TestQueueAndLoadReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, func(c *Config) { c.MaxRunning, c.MaxWaiting = 1, 1 })
		ctx, cancel := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		for range 2 {
			clients.Go(func() { serve(e, chat(100, "").WithContext(ctx)) })
			synctest.Wait()
		}
		for format, want := range map[string]string{
			"TEXT": "TEXT application_utilization=1, named_metrics.kv_cache_usage_perc=1, named_metrics.num_requests_running=1, named_metrics.num_requests_waiting=1",
			"JSON": `JSON {"application_utilization":1,"named_metrics":{"kv_cache_usage_perc":1,"num_requests_running":1,"num_requests_waiting":1}}`,
			"":     "",
		} {
			r := chat(100, "")
			r.Header.Set("Endpoint-Load-Metrics-Format", format)
			w := serve(e, r)
			if w.Code != 503 || w.Header().Get("Retry-After") != "1" || errorCode(t, w) != "queue_full" {
				t.Errorf("third request: status %d, %s, want 503, queue_full", w.Code, w.Body)
			}
			if got := w.Header().Get("Endpoint-Load-Metrics"); got != want {
				t.Errorf("load report is %q, want %q", got, want)
			}
		}
		cancel() // both clients go
		clients.Wait()
		if l := e.load(); l.running != 0 || l.waiting != 0 {
			t.Errorf("%d running, %d waiting after all clients have gone, want none", l.running, l.waiting)
		}
		e.Close()
	})
}

func errorCode(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var body struct {
		Error struct{ Message, Type, Code string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Error.Message == "" || body.Error.Type == "" {
		t.Errorf("error body is %q, want an OpenAI error", w.Body)
	}
	return body.Error.Code
}

func TestBadRequests(t *testing.T) {
	e := start(t, nil)
	for body, want := range map[string]string{
		`{`:                "400 invalid_request",
		`{"model":"chat"}`: "400 invalid_request",
		`{"model":"other","messages":[{"role":"user","content":"x"}]}`:                   "404 model_not_found",
		`{"model":"chat","max_tokens":0,"messages":[{"role":"user","content":"x"}]}`:     "400 invalid_request",
		`{"model":"chat","messages":"` + strings.Repeat("x", maxBodyBytes) + `"}`:        "413 invalid_request",
		`{"model":"chat","max_tokens":"many","messages":[{"role":"user","content":""}]}`: "400 invalid_request",
	} {
		w := serve(e, request("/v1/chat/completions", body))
		if got := fmt.Sprintf("%d %s", w.Code, errorCode(t, w)); got != want {
			t.Errorf("%.60s: answer is %s, want %s", body, got, want)
		}
	}
	if w := serve(e, request("/v1/completions", `{"model":"chat","prompt":""}`)); w.Code != 400 {
		t.Errorf("empty prompt: status is %d, want 400", w.Code)
	}
	if got := serve(e, httptest.NewRequest("GET", "/v1/models", nil)).Body.String(); !strings.Contains(got, `"id":"chat"`) {
		t.Errorf("models are %s, want chat", got)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"capacity 0":   func(c *Config) { c.CapacityRPS = 0 },
		"speedup < 0":  func(c *Config) { c.Speedup = -1 },
		"no reference": func(c *Config) { c.Profile.PromptTokens = 0 },
	} {
		cfg := Config{Name: "a-1", Profile: sharing(), CapacityRPS: 1}
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), `"a-1"`) {
			t.Errorf("%s: error is %v, want one that names a-1", name, err)
		}
	}
}

// Over real connections: resets, cancels that stop the work, a close that
// breaks off streams so that the client sees it.
func TestLoopback(t *testing.T) {
	e := start(t, nil)
	server := httptest.NewServer(e)
	defer server.Close()
	client := server.Client()
	post := func(ctx context.Context, body string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, "POST", server.URL+"/v1/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		return client.Do(r)
	}
	setFault(t, e, `{"kind":"reset"}`, 204)
	if _, err := post(t.Context(), `{"model":"chat","prompt":"x"}`); err == nil {
		t.Error("reset: no error, want one")
	}
	setFault(t, e, `{"kind":"off"}`, 204)

	// A stream that would take hours.
	endless := `{"model":"chat","prompt":"x","max_tokens":1000000,"stream":true}`
	ctx, cancel := context.WithCancel(t.Context())
	answer, err := post(ctx, endless)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	answer.Body.Close()
	for e.load().running > 0 {
		time.Sleep(time.Millisecond) // until the server has seen the client go
	}

	if answer, err = post(t.Context(), endless); err != nil {
		t.Fatal(err)
	}
	e.Close()
	if _, err := io.ReadAll(answer.Body); err == nil {
		t.Error("closed engine: the stream ended as if it were complete, want an error")
	}
	for _, path := range []string{"/health", "/v1/completions"} {
		method := map[bool]string{true: "GET", false: "POST"}[path == "/health"]
		if w := serve(e, httptest.NewRequest(method, path, strings.NewReader("{}"))); w.Code != 503 {
			t.Errorf("closed engine: %s is %d, want 503", path, w.Code)
		}
	}
}

func TestMetricNames(t *testing.T) {
	e := start(t, nil)
	body := serve(e, httptest.NewRequest("GET", "/metrics", nil)).Body.String()
	got := map[string]bool{}
	for line := range strings.Lines(body) {
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			got[strings.Fields(name)[0]] = true
		}
	}
	want := []string{
		"vllm:e2e_request_latency_seconds", "vllm:inter_token_latency_seconds", "vllm:kv_cache_usage_perc",
		"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:prefix_cache_hits_total",
		"vllm:prefix_cache_queries_total", "vllm:request_queue_time_seconds", "vllm:time_to_first_token_seconds",
	}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("metrics are %v, want %v", names, want)
	}
}
