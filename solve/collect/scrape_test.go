package collect

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fakeAgent serves each of its texts once, in order, and then the last one.
func fakeAgent(t *testing.T, texts ...string) string {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text := texts[min(int(n.Add(1)), len(texts))-1]
		if text == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/metrics"
}

func offeredLine(cluster, class string, n float64) string {
	return fmt.Sprintf("irb_requests_offered_total{irb_fleet=\"prod\",irb_cluster=%q,class=%q,attempt=\"first\"} %v\n", cluster, class, n)
}

// scrapes is a source whose scrapes are 10 s apart, on a clock of its own.
func scrapes(urls ...string) *Scrape {
	now := time.Unix(1000, 0)
	return &Scrape{
		URLs: urls, Client: http.DefaultClient, Apart: 10 * time.Second,
		Sleep: func(_ context.Context, d time.Duration) error { now = now.Add(d); return nil },
		Clock: func() time.Time { return now },
	}
}

func TestScrape(t *testing.T) {
	tokens := func(prompt, reports float64) string {
		return fmt.Sprintf(`irb_tokens_total{irb_fleet="prod",irb_cluster="east",class="chat",kind="prompt",source="estimate"} %v
irb_token_reports_total{irb_fleet="prod",irb_cluster="east",class="chat",kind="prompt",source="estimate"} %v
`, prompt, reports)
	}
	counters := "# TYPE irb_requests_offered_total counter\n# TYPE irb_tokens_total counter\n# TYPE irb_token_reports_total counter\n"
	one := fakeAgent(t, counters+offeredLine("east", "chat", 500)+tokens(100, 1), counters+offeredLine("east", "chat", 600)+tokens(50_100, 101)+`# TYPE irb_engine_rtt_seconds gauge
irb_engine_rtt_seconds{irb_fleet="prod",irb_cluster="east",engine="a-1"} 0.0035
# TYPE irb_endpoint_up gauge
irb_endpoint_up{irb_fleet="prod",irb_cluster="east",engine="a-1",endpoint="http://10.0.0.1:8000"} 1
irb_endpoint_up{irb_fleet="prod",irb_cluster="east",engine="a-1",endpoint="http://10.0.0.2:8000"} NaN
irb_endpoint_up{irb_fleet="prod",irb_cluster="east",engine="c-1",endpoint="http://10.0.2.1:8000"} 0
`)
	again := fakeAgent(t, counters+offeredLine("east", "chat", 9000), counters+offeredLine("east", "chat", 50)) // restarted
	other := fakeAgent(t, "# TYPE go_goroutines gauge\ngo_goroutines 3\n")
	fleet, _ := testFleet(t)
	r, err := Run(t.Context(), scrapes(one, one, again, other), fleet, Options{Now: time.Unix(1000, 0), Every: 15 * time.Minute, Quantile: 0.9})
	if err != nil {
		t.Fatal(err)
	}
	east := row(t, r, "east", "chat")
	// 100 and 50 requests in 10 s, and no history: the default margin.
	if f := east.Forecast; f == nil || f.Level != 15 || f.Shape != 1 || f.Margin != 1.2 || east.RPS != 18 {
		t.Errorf("east/chat: %+v of %+v, want 15 req/s x 1.2", east, east.Forecast)
	}
	if east.PromptTokens != 500 || east.EstimatedShare != 1 || east.OutputTokens != 200 {
		t.Errorf("east/chat: %+v, want a mean of 500 tokens, all estimated, and the fleet's output", east)
	}
	want := []EngineHealth{{"a-1", 1, 1, ""}, {"b-1", 0, 0, ""}, {"c-1", 0, 1, "connects of agents: 0 of 1 endpoints up"}}
	if !slices.Equal(r.Engines, want) {
		t.Errorf("%+v, want %+v: of a-1 one endpoint is unknown", r.Engines, want)
	}
	if text := string(r.latency()); !strings.Contains(text, "\neast,3.5,65,\n") {
		t.Errorf("latency: %s", text)
	}
	r.noted(t, "west/chat has no measured demand; it stays at 20 req/s")
	r.noted(t, "began again between the scrapes")
	r.noted(t, `tells nothing of fleet "prod"`)
	r.noted(t, "the tokens of 100 % of the requests are estimates")
}

// What cannot be trusted is an error, not a small number.
func TestScrapeFails(t *testing.T) {
	good := fakeAgent(t, offeredLine("east", "chat", 5))
	fleet, _ := testFleet(t)
	for name, test := range map[string]struct {
		url, want string
	}{
		"goes away":       {fakeAgent(t, offeredLine("east", "chat", 5), ""), "status 503, want 200"},
		"not metrics":     {fakeAgent(t, "<html>"), "metrics: text format parsing error in line 1"},
		"nobody there":    {"http://127.0.0.1:1/metrics", "connection refused"},
		"with a password": {"http://me:secret@127.0.0.1:1/metrics", "me:xxxxx@"},
	} {
		_, err := Run(t.Context(), scrapes(good, test.url), fleet, Options{Every: time.Minute, Quantile: 0.9})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// An outage of everything is an error of measuring.
func TestAllEnginesLost(t *testing.T) {
	fleet, _ := testFleet(t)
	s := newSignals()
	for _, e := range fleet.Engines {
		s.Health[e.Name] = Health{0, "scrapes"}
	}
	if _, err := healthOf(s, fleet); err != errAllLost {
		t.Errorf("%v, want %v", err, errAllLost)
	}
	s.Health["a-1"] = Health{2.0 / 3, "scrapes"}
	list, err := healthOf(s, fleet)
	if err != nil || list[0].Health != 0.6667 {
		t.Errorf("%+v, %v, want a-1 at 0.6667", list, err)
	}
}

// Only what is known of all of an engine's endpoints is its health.
func TestReplicas(t *testing.T) {
	fleet, _ := testFleet(t) // a-1 has two endpoints
	one, two := fleet.Engines[0].Endpoints[0], fleet.Engines[0].Endpoints[1]
	for name, test := range map[string]struct {
		see  func(r *replicas)
		want float64 // -1: unknown
	}{
		"nothing":    {func(*replicas) {}, -1},
		"one of two": {func(r *replicas) { r.connected("a-1", one, false) }, -1},
		"both":       {func(r *replicas) { r.connected("a-1", one, false); r.connected("a-1", two, true) }, 0.5},
		"one agent cannot reach one": {func(r *replicas) {
			r.connected("a-1", one, true)
			r.connected("a-1", one, false)
			r.connected("a-1", two, true)
		}, 1},
		"a stranger is up": {func(r *replicas) { r.connected("a-1", one, false); r.connected("a-1", "http://6.6.6.6:8000", true) }, -1},
		"scrapes go first": {func(r *replicas) {
			r.connected("a-1", one, true)
			r.connected("a-1", two, true)
			r.scraped("a-1", hostPort(one), false)
			r.scraped("a-1", hostPort(two), true)
		}, 0.5},
		"a scrape of one is not enough": {func(r *replicas) {
			r.connected("a-1", one, true)
			r.connected("a-1", two, true)
			r.scraped("a-1", hostPort(one), false)
		}, 1},
		"a name of several": {func(r *replicas) { r.connected("a-1", one+" at 10.0.0.7", true) }, -1},
	} {
		s, r := newSignals(), newReplicas(fleet)
		test.see(r)
		r.into(s)
		got, known := s.Health["a-1"]
		if !known {
			got.Fraction = -1
		}
		if got.Fraction != test.want {
			t.Errorf("%s: %v, want %v", name, got.Fraction, test.want)
		}
	}
	s, r := newSignals(), newReplicas(fleet)
	s.Health["a-1"] = Health{0.25, "--health-query"}
	r.connected("a-1", one+" at 10.0.0.7", true)
	r.into(s)
	if s.Health["a-1"].Fraction != 0.25 || len(s.Notes) != 0 {
		t.Errorf("%+v, want what the query says, and no note", s)
	}
}

func TestHostPort(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://10.0.0.1:8000": "10.0.0.1:8000", "http://a.example": "a.example:80", "https://a.example": "a.example:443", "http://[::1]:8": "[::1]:8",
	} {
		if got := hostPort(endpoint); got != want {
			t.Errorf("%s: %s, want %s", endpoint, got, want)
		}
	}
}

func FuzzExposition(f *testing.F) {
	f.Add(offeredLine("east", "chat", 5))
	f.Add("# TYPE irb_endpoint_up gauge\nirb_endpoint_up{a=\"b\"} NaN\nirb_endpoint_up{a=\"b\"} 1\nirb_endpoint_up{a=\"b\"} 0\n")
	f.Add("# TYPE irb_x histogram\nirb_x_bucket{le=\"1\"} 2\nirb_x_sum 1\nirb_x_count 2\n")
	f.Fuzz(func(t *testing.T, text string) {
		found, err := parseExposition(strings.NewReader(text))
		if err != nil {
			return
		}
		for key, x := range found {
			if !strings.HasPrefix(x.name, "irb_") || !(x.value >= 0) || key == "" {
				t.Errorf("%q: %+v", key, x)
			}
		}
	})
}
