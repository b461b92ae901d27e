package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/irb-project/irb/agent/guard"
	"github.com/irb-project/irb/agent/signal"
	"github.com/irb-project/irb/agent/snapshot"
)

// TestGuardSettings: the defaults of agent.toml are those of package guard, and
// the ends of its ranges pass the check there.
func TestGuardSettings(t *testing.T) {
	if got := guardSettings(parseConfig(t, testConfig)); got != guard.Defaults() {
		t.Errorf("settings are %+v, want the defaults %+v", got, guard.Defaults())
	}
	for _, text := range []string{
		"agents = 100000\n" + testConfig + "[guard]\nconsecutive_faults = 1\nejection_max = \"3s\"\nmax_ejected_share = 0\noutlier_factor = 1.2\nqueue_limit = 1\nconcurrency_slack = 1.1\npoll_interval = \"100ms\"\n",
		testConfig + "[guard]\nconsecutive_faults = 1000\nejection_max = \"10m\"\nmax_ejected_share = 1\noutlier_factor = 100\nqueue_limit = 10000\nconcurrency_slack = 100\npoll_interval = \"1m\"\n[retry]\nbudget_ratio = 1\nbudget_floor = 1000\n",
	} {
		if err := guardSettings(parseConfig(t, text)).Check(); err != nil {
			t.Error(err)
		}
	}
}

// TestLimitsOfAClass: what the snapshot says of a class holds for it, whether
// more or less than agent.toml; what it does not say is agent.toml's.
func TestLimitsOfAClass(t *testing.T) {
	c := parseConfig(t, testConfig+"[timeouts]\nttft = \"3s\"\ntotal = \"20s\"\n[retry]\nattempts = 4\n")
	for _, test := range []struct {
		guard snapshot.Guard
		want  limits
	}{
		{snapshot.Guard{}, limits{4, 3 * time.Second, time.Minute, 20 * time.Second}},
		{snapshot.Guard{RetryAttempts: 1, TTFTTimeoutMs: 1500.5}, limits{1, 1500500 * time.Microsecond, time.Minute, 20 * time.Second}},
		{snapshot.Guard{IdleTimeoutMs: 10, TotalTimeoutMs: snapshot.MaxTotalTimeoutMs}, limits{4, 3 * time.Second, 10 * time.Millisecond, 24 * time.Hour}},
	} {
		if got := limitsOf(c, &test.guard); got != test.want {
			t.Errorf("%+v: limits are %+v, want %+v", test.guard, got, test.want)
		}
	}
}

// TestOverridesOfAClass: a class without retries gets the refusal of its first
// engine, one with a short deadline is told so, and both can be seen.
func TestOverridesOfAClass(t *testing.T) {
	var asked atomic.Int32
	refusing := engine(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that we leave
		if r.Header.Get("X-Slow") != "" {
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusBadGateway)
	})
	s := fleet(named("a", refusing), named("b", engine(t, answerJSON("b"))))
	batch := s.Classes[0]
	batch.Name, batch.Match.Path = "batch", "/v1/batch/"
	batch.Guard = snapshot.Guard{RetryAttempts: 1, TotalTimeoutMs: 50}
	src := s.Sources[0]
	src.Class = "batch"
	s.Classes, s.Sources = append([]snapshot.Class{batch}, s.Classes...), append([]snapshot.Source{src}, s.Sources...)
	r := start(t, s, "")
	expect(t, r.post(chatBody), 200, `"b"`)
	for header, want := range map[string]int{"X-Fast": 502, "X-Slow": 504} {
		before := asked.Load()
		resp, err := r.do(t.Context(), "POST", "/v1/batch/completions", strings.NewReader(chatBody), header, "1")
		if err != nil {
			t.Fatal(err)
		}
		expect(t, resp, want, "")
		if n := asked.Load() - before; n != 1 {
			t.Errorf("%s: %d attempts, want 1", header, n)
		}
	}
	debug := httptest.NewRecorder()
	r.proxy.Debug().ServeHTTP(debug, httptest.NewRequest("GET", "/debug/engines", nil))
	var seen struct{ Classes []debugClass }
	if err := json.Unmarshal(debug.Body.Bytes(), &seen); err != nil || len(seen.Classes) != 2 {
		t.Fatalf("%v in %s", err, debug.Body)
	}
	for i, want := range []debugClass{
		{ClassView: guard.ClassView{Class: "batch"}, Attempts: 1, TotalMs: 50, OfSnapshot: true},
		{ClassView: guard.ClassView{Class: "chat"}, Attempts: 3, TotalMs: 600000},
	} {
		got := seen.Classes[i]
		if got.Class != want.Class || got.Attempts != want.Attempts || got.TotalMs != want.TotalMs || got.OfSnapshot != want.OfSnapshot || got.Admitted != 1 {
			t.Errorf("seen: %+v, want %+v", got, want)
		}
	}
}

// tick lets the guards look at what was counted, n times in a row.
func (r *rig) tick(n int) {
	for range n {
		r.proxy.guard.Tick(r.proxy.now())
	}
}

func (r *rig) view(engine int) guard.View { return r.proxy.guard.Views(r.proxy.now())[engine] }

// TestLoadReports: engines are asked for load reports, which are taken in and
// not passed on; what the client asks of them is not asked.
func TestLoadReports(t *testing.T) {
	var format atomic.Value
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		format.Store(r.Header.Get(signal.FormatHeader))
		w.Header().Set(signal.ReportHeader, "TEXT named_metrics.num_requests_waiting=7, named_metrics.kv_cache_usage_perc=0.5")
	})
	r := start(t, fleet(named("a", e)), "")
	resp := r.post(chatBody, signal.FormatHeader, "JSON")
	read(t, resp)
	if format.Load() != "TEXT" || resp.Header.Get(signal.ReportHeader) != "" {
		t.Errorf("asked for %q, client got %q", format.Load(), resp.Header.Get(signal.ReportHeader))
	}
	if v := r.view(0); v.Waiting == nil || *v.Waiting != 7 || *v.KVUsage != 0.5 || v.Running != nil {
		t.Errorf("taken in: %+v", v)
	}
}

// TestFaultsEject: an engine that answers 500 is left alone after a while, though
// each time another one helped out; and so is one whose answers break off.
func TestFaultsEject(t *testing.T) {
	for name, fail := range map[string]http.HandlerFunc{
		"500": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"broken off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"x"}}]}`+"\n\n")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		var asked atomic.Int32
		a := engine(t, func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			fail(w, r)
		})
		s := fleet(named("a", a), named("b", engine(t, answerJSON("b"))))
		s.Sources[0].Fallbacks[0].AbsorbRPS = 1000
		r := start(t, s, "")
		for range guard.Defaults().ConsecutiveFaults {
			if resp, err := r.client.Post(r.url+"/v1/chat/completions", "application/json", strings.NewReader(streamBody)); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body) // breaks off
				resp.Body.Close()
			}
		}
		r.idle()
		r.tick(1)
		before := asked.Load()
		for range 10 {
			expect(t, r.post(chatBody), 200, `"b"`)
		}
		if n := asked.Load() - before; n != 0 {
			t.Errorf("%s: an ejected engine was asked %d times", name, n)
		}
		if v := r.view(0); v.Ejections != 1 || v.Why != "ejected" {
			t.Errorf("%s: %+v", name, v)
		}
		if !strings.Contains(r.log.String(), "guard: ejected") {
			t.Errorf("%s: nothing is said of it in %s", name, r.log)
		}
	}
}

// vllm-project/production-stack PR 1035: a hot key queues on no endpoint while its
// sibling idles. Over the bound, by requests in flight or by the queue that the
// endpoint tells of, it walks on; it comes home afterwards.
func TestCase19BoundedLoad(t *testing.T) {
	for name, test := range map[string]struct {
		agents  int
		report  string
		atHome  int // of the requests that are held
		sibling int
	}{
		// 1 req/s planned at each endpoint, 3.152 s each, twice as many with slack, and 3 standard deviations more.
		"in flight": {1, "", 14, 14},
		"its queue": {0, "TEXT named_metrics.num_requests_running=1, named_metrics.num_requests_waiting=100", 4, 10},
	} {
		t.Run(name, func(t *testing.T) {
			held, hold := make(chan string, 100), make(chan bool)
			serve := func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Hold") != "" {
					held <- r.Host
					<-hold
				}
				fmt.Fprint(w, r.Host)
			}
			var home atomic.Value
			home.Store("")
			handler := func(w http.ResponseWriter, r *http.Request) {
				if home.Load() == r.Host && test.report != "" {
					w.Header().Set(signal.ReportHeader, test.report)
				}
				serve(w, r)
			}
			e := named("a", engine(t, handler), engine(t, handler))
			e.CapacityRPS, e.Profile = 10, snapshot.Profile{
				PromptTokens: 1024, OutputTokens: 256, TTFTV: []float64{0}, TTFTMs: []float64{80}, TBOTV: []float64{0}, TBOTMs: []float64{12},
			}
			s := fleet(e)
			s.Policy.OutputTokenWork = 4
			src := &s.Sources[0]
			src.PromptTokens, src.OutputTokens, src.ServedRPS, src.Weights[0].RPS = 1024, 256, 2, 2
			r := startWith(t, s, fmt.Sprintf("agents = %d\n", test.agents)+testConfig, nil)
			home.Store(read(t, r.post(chatBody)))
			read(t, r.post(chatBody)) // with the report
			r.tick(1)
			var waiting sync.WaitGroup
			at := map[bool]int{}
			for range test.atHome + test.sibling {
				waiting.Go(func() { read(t, r.post(chatBody, "X-Hold", "1")) })
				at[<-held == home.Load()]++
			}
			if at[true] != test.atHome || at[false] != test.sibling {
				t.Errorf("%d at home, %d at the sibling, want %d and %d", at[true], at[false], test.atHome, test.sibling)
			}
			close(hold)
			waiting.Wait()
			r.idle()
			if got := read(t, r.post(chatBody)); got != home.Load() {
				t.Errorf("afterwards at %s, want home again, %s", got, home.Load())
			}
		})
	}
}

// TestFallbacksAbsorbWhatTheyMay: beyond it requests go to the engine of their
// key after all.
func TestFallbacksAbsorbWhatTheyMay(t *testing.T) {
	s := fleet(named("a", engine(t, answerJSON("a"))), named("b", engine(t, answerJSON("b"))))
	s.Sources[0].Fallbacks[0].AbsorbRPS = 3
	r := start(t, s, "")
	at := r.proxy.plan.Load().guards
	// As full as can be told without an engine.
	a := at.Class(0).Begin(0, 0, guard.Work{Untimed: true}, r.proxy.now())
	a.End(guard.Ending{Outcome: guard.Pushback, RetryAfter: time.Minute}, r.proxy.now())
	got := map[bool]int{}
	for range 10 {
		got[strings.Contains(read(t, r.post(chatBody)), `"b"`)]++
	}
	if got[true] != 3 {
		t.Errorf("the fallback got %d of 10 requests, want the 3 that it may absorb", got[true])
	}
}

// TestShedding: when all engines tell of long queues and nothing was planned,
// requests are refused in the form that clients understand.
func TestShedding(t *testing.T) {
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(signal.ReportHeader, "TEXT named_metrics.num_requests_running=10, named_metrics.num_requests_waiting=500")
	})
	r := start(t, fleet(named("a", e)), "")
	var refused *http.Response
	for i := range 300 {
		resp := r.post(fmt.Sprintf(`{"model":"m","prompt_cache_key":"%d"}`, i))
		read(t, resp)
		if resp.StatusCode == http.StatusTooManyRequests {
			refused = resp
			break
		}
		r.tick(1)
	}
	if refused == nil {
		t.Fatal("nothing was refused")
	}
	if refused.Header.Get("X-Irb-Request-Dropped-Reason") != droppedSaturated || refused.Header.Get("Retry-After") == "" {
		t.Errorf("header: %v", refused.Header)
	}
	if r.metric(`irb_requests_total{class="none",engine="none",outcome="rejected"}`) == "" {
		t.Error("the refusal was not counted")
	}
	if text := r.log.String(); !strings.Contains(text, "guard: shedding") {
		t.Errorf("log: %s", text)
	}
}
