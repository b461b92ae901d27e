package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/irb-project/irb/examples/standin"
)

// fleet writes a fleet with one engine of two replicas on free ports.
func fleet(t *testing.T) (folder string, urls []string) {
	folder = t.TempDir()
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		urls = append(urls, "http://"+l.Addr().String())
	}
	for name, text := range map[string]string{
		"demand.csv":  "cluster,rps\neast,1\n",
		"latency.csv": "rtt_ms,here\neast,1\n",
		"engines.toml": fmt.Sprintf(`[profile.p]
prompt_tokens = 100
output_tokens = 10
ttft_ms = 1
tbot_ms = 1
queueing = "none"
[[engine]]
name = "a-1"
region = "here"
endpoints = [%q, %q]
profile = "p"
capacity_rps = 100
`, urls[0], urls[1]),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder, urls
}

func TestServesAllEndpoints(t *testing.T) {
	folder, urls := fleet(t)
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"-speedup", "10", folder, "a-1"}, in, io.Discard)
		in.Close()
	}()
	for _, url := range urls {
		line := make([]byte, 200)
		n, err := out.Read(line)
		if want := "a-1 serves " + url + "\n"; err != nil || string(line[:n]) != want {
			t.Fatalf("printed %q, %v, want %q", line[:n], err, want)
		}
		answer, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != 200 || answer.Header.Get(standin.NameHeader) != "a-1" || answer.Header.Get(standin.EndpointHeader) != strings.TrimPrefix(url, "http://") {
			t.Errorf("%s: %s from %v, want 200 from a-1 there", url, answer.Status, answer.Header)
		}
	}
	cancel()
	if got := <-code; got != 0 {
		t.Errorf("exit code is %d, want 0", got)
	}
	for _, url := range urls {
		l, err := net.Listen("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Errorf("address is not free after the end: %v", err)
			continue
		}
		l.Close()
	}
}

func TestRefuses(t *testing.T) {
	folder, urls := fleet(t)
	taken, err := net.Listen("tcp", strings.TrimPrefix(urls[1], "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "usage: engine"},
		{[]string{"-fast"}, 2, "usage: engine"},
		{[]string{filepath.Join(folder, "none")}, 2, "none"},
		{[]string{folder, "b-1"}, 1, `no engine "b-1"`},
		{[]string{"-speedup", "-1", folder}, 1, "speedup is -1"},
		{[]string{folder}, 1, "address already in use"},
	} {
		var stderr bytes.Buffer
		if code := run(t.Context(), test.args, io.Discard, &stderr); code != test.code || !strings.Contains(stderr.String(), test.want) {
			t.Errorf("engine %v: code %d, %q, want %d and %q", test.args, code, stderr.String(), test.code, test.want)
		}
	}
}
