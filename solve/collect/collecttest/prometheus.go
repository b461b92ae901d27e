// Package collecttest runs a real Prometheus server for tests.
package collecttest

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Prometheus starts a server with a configuration and returns its URL; history,
// if not empty, is OpenMetrics text with timestamps that it has as its past.
// The server ends with the test.
func Prometheus(t testing.TB, config, history string) string {
	t.Helper()
	server := program(t, "prometheus")
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if history != "" {
		text := write(t, filepath.Join(dir, "history.txt"), history)
		run(t, program(t, "promtool"), "tsdb", "create-blocks-from", "openmetrics", "--quiet", text, data)
	}
	address := freeAddress(t)
	var log bytes.Buffer
	cmd := exec.Command(server, "--config.file="+write(t, filepath.Join(dir, "prometheus.yml"), config), "--storage.tsdb.path="+data,
		"--web.listen-address="+address, "--storage.tsdb.retention.time=30d", "--log.level=warn")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ends shows in what it did
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	url := "http://" + address
	for range 600 {
		if resp, err := http.Get(url + "/-/ready"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return url
			}
		}
		select {
		case <-ended:
			t.Fatalf("prometheus ended: %s", log.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatal("prometheus is not ready after 30 s")
	return ""
}

// Job is a scrape job of a configuration for some targets, as host:port.
func Job(name string, targets ...string) string {
	return fmt.Sprintf("  - job_name: %s\n    static_configs:\n      - targets: ['%s']\n", name, strings.Join(targets, "', '"))
}

// Config is a configuration that scrapes every second.
func Config(jobs ...string) string {
	return "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n" + strings.Join(jobs, "")
}

func program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("the %s program is not installed: run make setup", name)
	}
	return path
}

func write(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func run(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(name), err, out)
	}
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
