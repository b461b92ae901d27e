package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRequest(t *testing.T) {
	for _, path := range []string{askPath, streamPath} {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request(path, 12))))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		if len(body) != requestBytes || !json.Valid(body) {
			t.Errorf("body has %d bytes, valid JSON %v, want %d and true", len(body), json.Valid(body), requestBytes)
		}
		if r.URL.Path != path || r.Header.Get("X-Session-Id") != "12" || !bytes.Contains(body, []byte("Conversation 12.")) {
			t.Errorf("request is %s of session %q: %.150s", r.URL.Path, r.Header.Get("X-Session-Id"), body)
		}
	}
}

func TestEngine(t *testing.T) {
	began := time.Now()
	e, err := startEngine(began)
	if err != nil {
		t.Fatal(err)
	}
	defer e.listen.Close()
	c, err := dial(e.address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.conn.Close()
	for range 3 { // on one connection
		if err := c.ask(request(askPath, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.ask(request("/metrics", 1)); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("/metrics: got %v, want 404", err)
	}
	answer, err := c.send(request(streamPath, 1))
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(answer.Body)
	last := time.Duration(0)
	for tokens := 0; tokens < 3 && lines.Scan(); {
		if sent, ok := tokenTime(lines.Bytes()); ok {
			if sent <= last || sent > time.Since(began) {
				t.Errorf("token sent at %v, the one before at %v", sent, last)
			}
			last = sent
			tokens++
		}
	}
	if last == 0 || lines.Err() != nil {
		t.Errorf("the stream broke: %v", lines.Err())
	}
}

func TestTokenTimeRefuses(t *testing.T) {
	for _, line := range []string{"", "data: [DONE]", sentAt, sentAt + "12", sentAt + `x"`} {
		if sent, ok := tokenTime([]byte(line)); ok {
			t.Errorf("%q: %v", line, sent)
		}
	}
}

func TestLoads(t *testing.T) {
	e, err := startEngine(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer e.listen.Close()
	latencies, err := openLoop(e.address(), 100*time.Millisecond)
	if err != nil || len(latencies) != openRPS/10 {
		t.Errorf("%d requests in a tenth of a second, want %d; %v", len(latencies), openRPS/10, err)
	}
	calls := 0
	mark := func() { calls++ }
	n, took, err := closedLoop(e.address(), 0, time.Second, mark, mark)
	if err != nil || n == 0 || took == 0 || calls != 2 {
		t.Errorf("%d requests in %v, %d marks; %v", n, took, calls, err)
	}
	tokens, err := streamLoad(e.address(), 5, 200*time.Millisecond, e.began, mark, mark)
	if err != nil || calls != 4 {
		t.Errorf("%d tokens, %d marks; %v", len(tokens), calls, err)
	}
	e.listen.Close()
	if _, err := openLoop(e.address(), time.Millisecond); err == nil {
		t.Error("no error where nobody listens")
	}
}

func TestReloads(t *testing.T) {
	var out strings.Builder
	err := reloads(context.Background(), options{agent: "/does/not/exist", duration: time.Second}, t.TempDir(), &out)
	if err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
		t.Errorf("got %v", err)
	}
}

func TestQuantile(t *testing.T) {
	d := []time.Duration{4, 2, 1, 3}
	for _, tt := range []struct {
		q    float64
		want time.Duration
	}{{0, 1}, {0.25, 1}, {0.5, 2}, {0.51, 3}, {0.99, 4}, {1, 4}} {
		if got := quantile(d, tt.q); got != tt.want {
			t.Errorf("quantile(%g) = %d, want %d", tt.q, got, tt.want)
		}
	}
}

func TestMedianOfRounds(t *testing.T) {
	l := latencies{rounds: [][]time.Duration{{time.Millisecond}, {9 * time.Millisecond}, {3 * time.Millisecond}}}
	if got := l.median(0.99); got != 3 {
		t.Errorf("got %v ms, want 3", got)
	}
}

func TestShare(t *testing.T) {
	s := newShare(nil)
	s.start()
	for begin := time.Now(); time.Since(begin) < 50*time.Millisecond; { // ours: not of others
	}
	s.stop()
	if len(s.taken) != 1 || s.taken[0] < 0 || s.taken[0] > 1 {
		t.Fatalf("others took %v", s.taken)
	}
	for _, tt := range []struct {
		taken []float64
		want  string
	}{
		{[]float64{0.01, 0.03, 0}, "others took 1 % of the CPUs meanwhile, at most 3 %\n"},
		{[]float64{0.5, 0.02, 0.01}, "others took 2 % of the CPUs meanwhile, at most 50 %: measure again when they are quiet\n"},
	} {
		var out strings.Builder
		(&share{taken: tt.taken}).print(&out)
		if out.String() != tt.want {
			t.Errorf("got %q, want %q", out.String(), tt.want)
		}
	}
}

func TestTable(t *testing.T) {
	direct := result{openP50: time.Millisecond, closedRPS: 20000}
	with := func(p50 time.Duration, cpu time.Duration) result {
		return result{openP50: p50, closedRPS: 8000, cpuPerRequest: cpu, peakBytes: 1 << 20}
	}
	var out strings.Builder
	err := printTable(&out, row{"no proxy", []result{direct}}, []row{
		{"ours", []result{with(3*time.Millisecond, 40).minus(direct), with(9*time.Millisecond, 50).minus(direct), with(4*time.Millisecond, 60).minus(direct)}},
		{"theirs", []result{with(7*time.Millisecond, 100).minus(direct), with(7*time.Millisecond, 300).minus(direct)}},
		{"lucky", []result{with(time.Millisecond/2, 0).minus(direct)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{
		"added p50 ms",
		"no proxy (total) 1.000 - 20000 - - - - -",
		"ours 3.000 0.000 8000 0.1 0.0 0.000 0.000 1",
		"theirs 6.000 0.000 8000 0.2 0.0 0.000 0.000 1",
		"lucky -0.500 0.000 8000 0.0 0.0 0.000 0.000 1",
		"ours / theirs 0.50 - 1.00 0.25 - - - 1.00",
		"ours / lucky - - 1.00 - - - - 1.00",
	} {
		if got := strings.Join(strings.Fields(lines[i]), " "); !strings.HasPrefix(got, want) {
			t.Errorf("line %d is %q, want %q", i, got, want)
		}
	}
}

func TestMissingPeer(t *testing.T) {
	b := &bench{folder: t.TempDir(), caddy: filepath.Join(t.TempDir(), "caddy")}
	if _, err := b.proxied(context.Background(), peersByName()["caddy"]); !errors.Is(err, errMissing) {
		t.Errorf("got %v, want %v", err, errMissing)
	}
}

func TestExecuteRefuses(t *testing.T) {
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-nothing"}, 2, "-nothing"},
		{[]string{"rounds"}, 2, "want flags only"},
		{[]string{"-rounds", "0"}, 2, "at least 1"},
		{[]string{"-duration", "1ms"}, 2, "at least 1s"},
		{[]string{"-peers", "irb,envoy"}, 1, `"envoy" is not one of irb, nginx, haproxy, caddy`},
		{[]string{"-soak", "-agent", "/does/not/exist"}, 1, "/does/not/exist"},
	} {
		var stdout, stderr strings.Builder
		if code := execute(tt.args, &stdout, &stderr); code != tt.code || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("%v: exit code %d, %q, want %d, %q", tt.args, code, stderr.String(), tt.code, tt.want)
		}
	}
}

// BenchmarkAsk is what a request costs engine and caller together, without a
// proxy: at saturation it is taken from what is left for the proxy.
func BenchmarkAsk(b *testing.B) {
	e, err := startEngine(time.Now())
	if err != nil {
		b.Fatal(err)
	}
	defer e.listen.Close()
	r := request(askPath, 1)
	b.RunParallel(func(pb *testing.PB) {
		c, err := dial(e.address())
		if err != nil {
			b.Error(err)
			return
		}
		defer c.conn.Close()
		for pb.Next() {
			if err := c.ask(r); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
