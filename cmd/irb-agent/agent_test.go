package main

import (
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"aead.dev/minisign"
)

// noLeak fails the test if goroutines are left when it ends.
func noLeak(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Cleanup(func() { // runs after the cleanups that the test adds later
		for range 1000 {
			if runtime.NumGoroutine() <= before {
				return
			}
			time.Sleep(time.Millisecond)
		}
		stacks := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
	})
}

// running is an agent in this process.
type running struct {
	t       testing.TB
	agent   *agent
	signals chan os.Signal
	ended   chan error
	log     *logBuffer
	client  *http.Client
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (f *testFleet) start() *running {
	f.t.Helper()
	r := &running{t: f.t, signals: make(chan os.Signal, 4), ended: make(chan error, 1), log: &logBuffer{}}
	var err error
	if r.agent, err = newAgent(f.path("agent.toml"), r.log, time.Now); err != nil {
		f.t.Fatal(err)
	}
	r.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	go func() { r.ended <- r.agent.run(context.Background(), r.signals) }()
	f.t.Cleanup(r.client.CloseIdleConnections)
	// The status server starts after the weight file was looked at.
	eventually(f.t, "the status server", func() bool {
		resp, err := r.client.Get(r.statusURL("/healthz"))
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	return r
}

func (r *running) stop() {
	r.t.Helper()
	r.signals <- syscall.SIGTERM
	if err := <-r.ended; err != nil {
		r.t.Errorf("run: %v", err)
	}
}

func (r *running) url(path string) string {
	return "http://" + r.agent.traffic[0].listen.Addr().String() + path
}

func (r *running) statusURL(path string) string {
	return "http://" + r.agent.status[0].listen.Addr().String() + path
}

func (r *running) get(url string) (int, string) {
	resp, err := r.client.Get(url)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

func (r *running) ask(model, key string) (int, string, error) {
	body := fmt.Sprintf(`{"model":%q,"prompt_cache_key":%q}`, model, key)
	resp, err := r.client.Post(r.url("/v1/chat/completions"), "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

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

const noDelay = "timeouts = { drain_delay = \"0s\" }"

// TestReloadUnderTraffic sends 10,000 requests while the weight file is
// replaced 50 times: none may be lost, none of class eu may leave zone eu.
func TestReloadUnderTraffic(t *testing.T) {
	noLeak(t)
	const requests, reloads, workers = 10000, 50, 16
	f := newFleet(t, noDelay)
	first := time.Now().UnixMilli()
	expires := time.Now().Add(time.Hour)
	f.publish(first, 1<<31, expires)
	r := f.start()
	var asked atomic.Int64
	var traffic sync.WaitGroup
	for w := range workers {
		traffic.Go(func() {
			for i := w; i < requests; i += workers {
				model := []string{"eu-model", "any-model"}[i%2]
				status, engine, err := r.ask(model, fmt.Sprint(i))
				if err != nil || status != http.StatusOK {
					t.Errorf("request %d is lost: %d %q %v", i, status, engine, err)
				}
				if model == "eu-model" && !strings.HasPrefix(engine, "eu-") {
					t.Errorf("request %d of class eu went to %s", i, engine)
				}
				asked.Add(1)
			}
		})
	}
	for i := range int64(reloads) {
		// One reload each time another fiftieth of the requests is done.
		eventually(t, "progress of the traffic", func() bool { return asked.Load() >= i*requests/reloads })
		f.publish(first+1+i, 1<<30+rand.Uint32N(1<<31), expires)
		eventually(t, "the reload", func() bool { return r.agent.reloader.Serving().Snapshot.Sequence == first+1+i })
	}
	traffic.Wait()
	for _, want := range []string{
		fmt.Sprintf("irb_reloads_total{result=\"accepted\"} %d\n", reloads+1),
		"irb_requests_in_flight{class=\"eu\",engine=\"eu-1\"} 0\n",
	} { // counted a moment after they are in service
		eventually(t, want, func() bool {
			_, metrics := r.get(r.statusURL("/metrics"))
			return strings.Contains(metrics, want)
		})
	}
	r.stop()
}

func TestSignalsAndStatus(t *testing.T) {
	noLeak(t)
	f := newFleet(t, noDelay)
	r := f.start()
	if status, body := r.get(r.statusURL("/readyz")); status != 503 || !strings.Contains(body, "no weight file") {
		t.Errorf("readyz without weights: %d %s", status, body)
	}
	if status, body, _ := r.ask("eu-model", "k"); status != 503 || !strings.Contains(body, "no_snapshot") {
		t.Errorf("request without weights: %d %s", status, body)
	}
	now := time.Now()
	f.publish(now.UnixMilli(), 1<<31, now.Add(time.Hour))
	eventually(t, "readiness", func() bool { status, _ := r.get(r.statusURL("/readyz")); return status == 200 })
	if status, body, _ := r.ask("nothing", "k"); status != 404 || !strings.Contains(body, "eu (model eu-model); any (model any-model)") {
		t.Errorf("unknown model: %d %s", status, body)
	}

	// A lower sequence is refused, with its reason in log and metrics.
	f.publish(now.UnixMilli()-5, 1<<31, now.Add(time.Hour))
	eventually(t, "the refusal", func() bool { return strings.Contains(r.log.String(), "older than") })
	eventually(t, "the count of the refusal", func() bool {
		_, m := r.get(r.statusURL("/metrics"))
		return strings.Contains(m, `irb_reloads_total{result="sequence"} 1`)
	})

	// SIGHUP takes over what may change, and refuses the whole of what may not.
	text, _ := os.ReadFile(f.path("agent.toml"))
	f.write("agent.toml", append([]byte("hold = [\"eu-1\"]\n"), text...))
	r.signals <- syscall.SIGHUP
	eventually(t, "the new settings", func() bool { return strings.Contains(r.log.String(), "agent.toml taken over") })
	for i := range 20 {
		if _, engine, _ := r.ask("eu-model", fmt.Sprint(i)); engine != "eu-2" {
			t.Errorf("with eu-1 on hold a request went to %q", engine)
		}
	}
	f.write("agent.toml", bytes.Replace(text, []byte("100ms"), []byte("200ms"), 1))
	r.signals <- syscall.SIGHUP
	eventually(t, "the refusal", func() bool { return strings.Contains(r.log.String(), "a restart is needed for: poll_interval") })

	// New keys are for snapshots that come; what serves goes on.
	_, other, err := minisign.GenerateKey(cryptorand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	old := f.private
	f.private = other
	f.write("agent.toml", append([]byte("hold = [\"eu-1\"]\n"), bytes.Replace(text, []byte(old.Public().(minisign.PublicKey).String()), []byte(other.Public().(minisign.PublicKey).String()), 1)...))
	r.signals <- syscall.SIGHUP
	eventually(t, "the file in service to fail by the new keys", func() bool { return strings.Contains(r.log.String(), "result=signature") })
	if status, _, _ := r.ask("eu-model", "k"); status != http.StatusOK {
		t.Errorf("status %d after the keys changed", status)
	}
	f.publish(now.UnixMilli()+9, 1<<31, now.Add(time.Hour))
	eventually(t, "the snapshot by the new key", func() bool {
		return strings.Contains(r.log.String(), fmt.Sprintf("snapshot %d is in service", now.UnixMilli()+9))
	})

	debug := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", f.path("debug.sock"))
	}}}
	defer debug.CloseIdleConnections()
	_, engine, _ := r.ask("any-model", "some key")
	resp, err := debug.Get("http://agent/debug/pick?class=any&key=some+key")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	var used string
	for line := range strings.SplitSeq(string(b), "\n") {
		if strings.Contains(line, `"engine"`) && !strings.Contains(line, "eu-1") {
			used = line
			break
		}
	}
	if !strings.Contains(used, engine) {
		t.Errorf("/debug/pick says %s, the request went to %s:\n%s", used, engine, b)
	}
	r.stop()
	if !strings.Contains(r.log.String(), "drained") {
		t.Error("no drain in the log")
	}
}

// TestExpiredSnapshotServesAfterRestart: expiry blocks replacement, not
// service.
func TestExpiredSnapshotServesAfterRestart(t *testing.T) {
	noLeak(t)
	f := newFleet(t, noDelay)
	now := time.Now()
	f.publish(now.UnixMilli()-3600_000, 1<<31, now.Add(-time.Minute))
	r := f.start()
	if status, body := r.get(r.statusURL("/readyz")); status != 200 || !strings.Contains(body, `"expired":true,"degraded":true`) {
		t.Errorf("readyz: %d %s", status, body)
	}
	if status, _, err := r.ask("eu-model", "k"); status != 200 {
		t.Errorf("request: %d %v", status, err)
	}
	if !strings.Contains(r.log.String(), "although it has expired") {
		t.Error("the log does not say so")
	}
	r.stop()
}

// TestDecisionLogIsRotated: after the file was moved away and a SIGHUP, decisions go
// to a new one; none is lost, also where no new one can be made.
func TestDecisionLogIsRotated(t *testing.T) {
	noLeak(t)
	f := newFleet(t, noDelay+"\ndecision_log = { path = \"log/decisions\", sample = 1.0 }")
	if err := os.Mkdir(f.path("log"), 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	f.publish(now.UnixMilli(), 1<<31, now.Add(time.Hour))
	r := f.start()
	lines := func(name string, want int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d lines in %s", want, name), func() bool {
			text, err := os.ReadFile(f.path(name))
			return err == nil && bytes.Count(text, []byte("\n")) == want
		})
	}
	ask := func() {
		t.Helper()
		if status, _, err := r.ask("eu-model", "k"); status != 200 || err != nil {
			t.Fatal(status, err)
		}
	}
	reload := func(n int) {
		t.Helper()
		r.signals <- syscall.SIGHUP
		want := fmt.Sprintf("irb_config_reloads_total{result=\"accepted\"} %d\n", n)
		eventually(t, want, func() bool {
			_, metrics := r.get(r.statusURL("/metrics"))
			return strings.Contains(metrics, want)
		})
	}
	ask()
	lines("log/decisions", 1)
	if err := os.Rename(f.path("log/decisions"), f.path("log/old")); err != nil {
		t.Fatal(err)
	}
	ask()
	lines("log/old", 2)
	reload(1)
	ask()
	lines("log/decisions", 1)
	if err := os.Rename(f.path("log"), f.path("away")); err != nil {
		t.Fatal(err)
	}
	reload(2)
	ask()
	lines("away/decisions", 2)
	if text := r.log.String(); !strings.Contains(text, "the old file stays in use") {
		t.Error(text)
	}
	r.stop()
}

// TestReloadWhileDraining: a SIGHUP cuts no request that is still answered; a
// second signal to end does.
func TestReloadWhileDraining(t *testing.T) {
	for _, last := range []os.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		f := newFleet(t, "timeouts = { drain_delay = \"20ms\" }")
		asked, answer := make(chan bool), make(chan bool)
		for _, e := range f.engines {
			e.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/metrics") {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body) // else nobody notices that the agent leaves
				asked <- true
				select {
				case <-answer:
				case <-r.Context().Done():
				}
			})
		}
		now := time.Now()
		f.publish(now.UnixMilli(), 1<<31, now.Add(time.Hour))
		r := f.start()
		done := make(chan error)
		go func() {
			_, _, err := r.ask("eu-model", "k")
			done <- err
		}()
		<-asked
		r.signals <- syscall.SIGTERM
		eventually(t, "the listener to close", func() bool {
			c, err := net.Dial("tcp", r.agent.traffic[0].listen.Addr().String())
			if err == nil {
				c.Close()
			}
			return err != nil
		})
		r.signals <- last
		if last == syscall.SIGHUP {
			r.signals <- last
			eventually(t, "the signals to be read", func() bool { return len(r.signals) == 0 })
			time.Sleep(50 * time.Millisecond) // long enough for the request to be cut
			close(answer)
		}
		if err := <-done; (err == nil) != (last == syscall.SIGHUP) {
			t.Errorf("after %v: %v", last, err)
		}
		if err := <-r.ended; (err == nil) != (last == syscall.SIGHUP) {
			t.Errorf("the agent ends after %v with %v", last, err)
		}
	}
}

// TestDrainLosesNothing sends requests until the agent refuses connections; all
// those it took must be answered.
func TestDrainLosesNothing(t *testing.T) {
	noLeak(t)
	f := newFleet(t, "timeouts = { drain_delay = \"50ms\" }")
	now := time.Now()
	f.publish(now.UnixMilli(), 1<<31, now.Add(time.Hour))
	r := f.start()
	var answered atomic.Int64
	var traffic sync.WaitGroup
	for range 8 {
		traffic.Go(func() {
			// A connection each, since one that is kept may be closed by either
			// side just as the other uses it.
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			for {
				resp, err := client.Post(r.url("/v1/x"), "application/json", strings.NewReader(`{"model":"eu-model"}`))
				if err != nil {
					if !strings.Contains(err.Error(), "refused") && !strings.Contains(err.Error(), "reset") {
						t.Errorf("lost: %v", err)
					}
					return
				}
				b, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != 200 {
					t.Errorf("lost: %d %q %v", resp.StatusCode, b, err)
				}
				answered.Add(1)
			}
		})
	}
	eventually(t, "traffic", func() bool { return answered.Load() > 100 })
	r.signals <- syscall.SIGTERM
	eventually(t, "readyz to fail before the end", func() bool {
		status, body := r.get(r.statusURL("/readyz"))
		return status == 503 && strings.Contains(body, "draining")
	})
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
	traffic.Wait()
}
