package metrics

import (
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func contains(t *testing.T, s *Set, want ...string) {
	t.Helper()
	text := scrape(s)
	for _, w := range want {
		if !strings.Contains(text, w+"\n") {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
}

func TestDemand(t *testing.T) {
	s := New(time.Now)
	d := s.NewDemand("prod", "us-east", time.Now)
	c := d.Class("chat")
	contains(t, s, // there before the first request
		`irb_requests_offered_total{attempt="first",class="chat",irb_cluster="us-east",irb_fleet="prod"} 0`,
		`irb_tokens_total{class="chat",irb_cluster="us-east",irb_fleet="prod",kind="output",source="usage"} 0`)
	c.Offered(1, false)
	c.Offered(1, true)
	c.Tokens(PromptTokens, FromUsage, 900)
	c.Tokens(PromptTokens, FromUsage, 100)
	c.Tokens(CachedTokens, FromUsage, 0)
	c.Tokens(OutputTokens, FromEstimate, 20)
	contains(t, s,
		`irb_requests_offered_total{attempt="first",class="chat",irb_cluster="us-east",irb_fleet="prod"} 1`,
		`irb_requests_offered_total{attempt="client_retry",class="chat",irb_cluster="us-east",irb_fleet="prod"} 1`,
		`irb_tokens_total{class="chat",irb_cluster="us-east",irb_fleet="prod",kind="prompt",source="usage"} 1000`,
		`irb_token_reports_total{class="chat",irb_cluster="us-east",irb_fleet="prod",kind="prompt",source="usage"} 2`,
		`irb_token_reports_total{class="chat",irb_cluster="us-east",irb_fleet="prod",kind="cached",source="usage"} 1`,
		`irb_tokens_total{class="chat",irb_cluster="us-east",irb_fleet="prod",kind="output",source="estimate"} 20`)
	if n := testing.AllocsPerRun(100, func() { c.Offered(7, false); c.Tokens(OutputTokens, FromUsage, 3) }); n != 0 {
		t.Errorf("%v allocations per request, want 0", n)
	}
	d.Forget("chat")
	if strings.Contains(scrape(s), `class="chat"`) {
		t.Error("series of a forgotten class are still there")
	}
}

// Thousands of classes must not be tens of objects each for the garbage
// collector, and a class that comes back goes on with the counters it has.
func TestDemandIsSmall(t *testing.T) {
	d := New(time.Now).NewDemand("f", "c", time.Now)
	n := 0
	if allocs := testing.AllocsPerRun(100, func() { n++; d.Class(strconv.Itoa(n)) }); allocs > 5 {
		t.Errorf("%v objects for a class, want at most 5", allocs)
	}
	if c := d.Class("chat"); c != d.Class("chat") {
		t.Error("a class has two sets of counters")
	}
}

func TestDistinct(t *testing.T) {
	for _, n := range []int{0, 1, 10, 100, 1000, 3000, 10_000, 1_000_000} {
		var d distinct
		for i := range n {
			d.add(uint64(i)) // not random at all
			d.add(uint64(i))
		}
		// 4 standard errors, and 2 keys for the smallest.
		if got := d.count(); math.Abs(got-float64(n)) > 4*0.0325*float64(n)+2 {
			t.Errorf("%d keys are counted as %.0f", n, got)
		}
	}
}

func TestDistinctMerges(t *testing.T) {
	var a, b, both distinct
	for i := range uint64(5000) {
		a.add(i)
		b.add(i + 2500)
		both.add(i)
		both.add(i + 2500)
	}
	a.merge(&b)
	if got, want := a.count(), both.count(); got != want {
		t.Errorf("merged: %v, want %v as of one that had all", got, want)
	}
}

// 10 conversations of 30 requests in 5 minutes are 3 requests per key there;
// if the same go on, 9 per 15 minutes.
func TestRequestsPerKey(t *testing.T) {
	now := time.Unix(0, 0)
	s := New(time.Now)
	c := s.NewDemand("f", "c", func() time.Time { return now }).Class("chat")
	for range 3 {
		for i := range uint64(30) {
			c.Offered(i%10, false)
		}
		now = now.Add(baseWindow)
		scrape(s)
	}
	series := func(name, window string, value string) string {
		return name + `{class="chat",irb_cluster="c",irb_fleet="f",window="` + window + `"} ` + value
	}
	contains(t, s, series("irb_window_requests_total", "5m", "90"), series("irb_window_requests_total", "15m", "90"), series("irb_window_requests_total", "1h", "0"))
	text := scrape(s)
	for window, want := range map[string]string{"5m": "30.", "15m": "10."} { // linear counting: 10.05
		if !strings.Contains(text, series("irb_window_keys_total", window, want)) {
			t.Errorf("keys of %s are not %s in\n%s", window, want, text)
		}
	}
	c.Offered(1, false)
	now = now.Add(time.Hour) // nobody scraped: no window of 5 minutes
	scrape(s)
	contains(t, s, series("irb_window_requests_total", "5m", "90"))
}

func TestDemandCountsSideBySide(t *testing.T) {
	now := time.Unix(0, 0)
	s := New(time.Now)
	c := s.NewDemand("f", "c", func() time.Time { return now }).Class("chat")
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 1000 {
				c.Offered(uint64(worker*1000+i), false)
			}
		})
	}
	wg.Wait()
	now = now.Add(baseWindow)
	contains(t, s, `irb_window_requests_total{class="chat",irb_cluster="c",irb_fleet="f",window="5m"} 8000`)
}

func TestReach(t *testing.T) {
	now := time.Unix(1000, 0)
	s := New(time.Now)
	r := s.NewReach("f", "c", func() time.Time { return now })
	a, b := r.Link("a-1", "http://a"), r.Link("a-1", "http://b")
	if strings.Contains(scrape(s), "irb_endpoint_up") {
		t.Error("something is said of what nobody connected to")
	}
	for range 3 {
		a.Connected(65*time.Millisecond, true, now)
	}
	b.Connected(1100*time.Millisecond, true, now) // a packet was lost
	b.Connected(0, false, now)
	contains(t, s,
		`irb_engine_rtt_seconds{engine="a-1",irb_cluster="c",irb_fleet="f"} 0.065`,
		`irb_endpoint_up{endpoint="http://a",engine="a-1",irb_cluster="c",irb_fleet="f"} 1`,
		`irb_endpoint_up{endpoint="http://b",engine="a-1",irb_cluster="c",irb_fleet="f"} 0`)
	r.Keep(func(_, endpoint string) bool { return endpoint == "http://a" })
	if strings.Contains(scrape(s), "http://b") {
		t.Error("an endpoint that is none any more is still there")
	}
	now = now.Add(reachTTL + time.Second)
	if strings.Contains(scrape(s), "irb_engine_rtt_seconds") {
		t.Error("what was seen long ago is still told")
	}
}

// BenchmarkOffered is what a request pays for being counted.
func BenchmarkOffered(b *testing.B) {
	c := New(time.Now).NewDemand("f", "c", time.Now).Class("chat")
	b.ReportAllocs()
	for n := uint64(0); b.Loop(); n++ {
		c.Offered(n%1000, false)
		c.Tokens(PromptTokens, FromUsage, 900)
		c.Tokens(CachedTokens, FromUsage, 500)
		c.Tokens(OutputTokens, FromUsage, 250)
	}
}
