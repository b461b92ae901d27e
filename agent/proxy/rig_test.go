package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/irb-project/irb/agent/config"
	"github.com/irb-project/irb/agent/metrics"
	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/agent/snapshot"
)

// rig is an agent's proxy between a real client and real engines, all on
// loopback.
type rig struct {
	t       testing.TB
	proxy   *Proxy
	metrics *metrics.Set
	server  *Server
	url     string
	client  *http.Client
	log     *lockedBuffer
	config  *config.Config
}

// lockedBuffer is a log that a test may read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const testConfig = `fleet = "test"
cluster = "here"
weights = "weights.toml"
trusted_keys = ["k"]
allow_engine_networks = ["127.0.0.0/8", "::1/128"]
[[listener]]
address = "127.0.0.1:0"
`

func parseConfig(t testing.TB, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("agent.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// start runs a proxy with the fleet's snapshot; more is appended to the config,
// inside the [[listener]].
func start(t testing.TB, s *snapshot.Snapshot, more string) *rig {
	t.Helper()
	return startWith(t, s, testConfig+more, nil)
}

func startWith(t testing.TB, s *snapshot.Snapshot, text string, change func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, log: &lockedBuffer{}, config: parseConfig(t, text), metrics: metrics.New(time.Now)}
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Config: r.config, Metrics: r.metrics, Now: time.Now, Own: []net.Addr{listen.Addr()},
		Log: slog.New(slog.NewTextHandler(r.log, nil)),
	}
	if change != nil {
		change(&o)
	}
	if r.proxy, err = New(o); err != nil {
		t.Fatal(err)
	}
	if s != nil {
		r.publish(s)
	}
	r.server = NewServer(r.config, r.proxy.Handler(r.config.Listeners[0]), nil, o.Log)
	go r.server.Serve(listen)
	r.url = "http://" + listen.Addr().String()
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 256}
	r.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := r.server.Drain(ctx, listen); err != nil {
			t.Errorf("requests still under way at the end: %v", err)
		}
		r.proxy.Close()
	})
	return r
}

func (r *rig) publish(s *snapshot.Snapshot) {
	r.t.Helper()
	table, err := pick.NewTable(s, "here")
	if err != nil {
		r.t.Fatal(err)
	}
	r.proxy.SetTable(table)
}

// engine starts an engine; close it early to have one that refuses.
func engine(t testing.TB, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// fleet is a snapshot of one class "chat" for all models, over these engines.
// The first has all keys, the others are fallbacks.
func fleet(engines ...snapshot.Engine) *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		Format: 1, Fleet: "test", Sequence: 1,
		Classes: []snapshot.Class{{Name: "chat", Match: snapshot.Match{Path: "/v1/"}}},
		Engines: engines,
	}
	src := snapshot.Source{
		Cluster: "here", Class: "chat", LayoutFrom: []uint32{0}, LayoutTo: []string{engines[0].Name},
		Weights: []snapshot.Weight{{Engine: engines[0].Name, Quota: snapshot.QuotaSum, Fraction: 1}},
	}
	for _, e := range engines[1:] {
		src.Fallbacks = append(src.Fallbacks, snapshot.Fallback{Engine: e.Name})
	}
	s.Sources = []snapshot.Source{src}
	return s
}

func named(name string, servers ...*httptest.Server) snapshot.Engine {
	e := snapshot.Engine{Name: name, Region: "r", Domain: "r", CapacityRPS: 1}
	for _, s := range servers {
		e.Endpoints = append(e.Endpoints, s.URL)
	}
	return e
}

const chatBody = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
const streamBody = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}`

func (r *rig) post(body string, header ...string) *http.Response {
	r.t.Helper()
	resp, err := r.do(context.Background(), "POST", "/v1/chat/completions", strings.NewReader(body), header...)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp
}

func (r *rig) do(ctx context.Context, method, path string, body io.Reader, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, body)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	if body != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return r.client.Do(req)
}

func read(t testing.TB, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	return string(b)
}

func expect(t testing.TB, resp *http.Response, status int, part string) {
	t.Helper()
	text := read(t, resp)
	if resp.StatusCode != status || !strings.Contains(text, part) {
		t.Errorf("got %d %q, want %d with %q", resp.StatusCode, text, status, part)
	}
}

// logged checks that the log tells of something.
func (r *rig) logged(part string) {
	r.t.Helper()
	if text := r.log.String(); !strings.Contains(text, part) {
		r.t.Errorf("the log has no %q: %s", part, text)
	}
}

// metric returns the value of the first series that begins with prefix, "" if
// there is none.
func (r *rig) metric(prefix string) string {
	w := httptest.NewRecorder()
	r.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.SplitSeq(w.Body.String(), "\n") {
		if strings.HasPrefix(line, prefix) {
			return line[strings.LastIndexByte(line, ' ')+1:]
		}
	}
	return ""
}

// eventually waits for what another goroutine is about to do.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 5000 {
		if ok() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("never came: %s", what)
}

func (r *rig) idle() {
	r.t.Helper()
	eventually(r.t, "in-flight gauges back at zero", func() bool {
		r.proxy.mu.Lock()
		defer r.proxy.mu.Unlock()
		for _, v := range r.proxy.guard.Views(r.proxy.now()) {
			if v.InFlight != 0 {
				return false
			}
		}
		return r.proxy.memory.used.Load() == 0
	})
}

func answerJSON(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"engine":%q}`, text)
	}
}
