package metrics

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func scrape(s *Set) string {
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func TestSnapshotGauges(t *testing.T) {
	now := time.Unix(1000, 0)
	s := New(func() time.Time { return now })
	if strings.Contains(scrape(s), "irb_snapshot_age_seconds ") {
		t.Error("an age before anything is served")
	}
	s.Serving(Snapshot{Sequence: 7, Created: now.Add(-5 * time.Second), Expires: now.Add(-time.Second)})
	text := scrape(s)
	for _, want := range []string{"irb_snapshot_sequence 7\n", "irb_snapshot_age_seconds 5\n", "irb_snapshot_expires_in_seconds -1\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestRoute(t *testing.T) {
	s := New(time.Now)
	r := s.Route("chat", "a-1")
	r.Done(Backpressure)
	r.InFlight.Inc()
	r.TTFT.Observe(0.2)
	s.Retry(Full)
	s.RetryHeld(HeldBudget)
	s.Reload("accepted")
	text := scrape(s)
	for _, want := range []string{
		`irb_requests_total{class="chat",engine="a-1",outcome="backpressure"} 1`,
		`irb_requests_in_flight{class="chat",engine="a-1"} 1`,
		`irb_time_to_first_token_seconds_count{class="chat",engine="a-1"} 1`,
		`irb_retries_total{reason="full"} 1`,
		`irb_retries_not_sent_total{reason="budget"} 1`,
		`irb_reloads_total{result="accepted"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	s.Forget("a-1")
	if strings.Contains(scrape(s), `engine="a-1"`) {
		t.Error("series of a forgotten engine are still there")
	}
	s.Route("chat", "a-2")
	s.Route("batch", "a-2")
	s.ForgetClass("chat")
	if text := scrape(s); strings.Contains(text, `class="chat"`) || !strings.Contains(text, `class="batch"`) {
		t.Error("series of a forgotten class are still there, or others are not")
	}
	if n := testing.AllocsPerRun(100, func() { r.Done(OK); r.TTFT.Observe(0.1); r.InFlight.Inc() }); n != 0 {
		t.Errorf("%v allocations per request, want 0", n)
	}
}

func TestEveryWordIsNamed(t *testing.T) {
	seen := map[string]bool{}
	for o := range outcomes {
		seen[o.String()] = true
	}
	for r := range reasons {
		seen[r.String()] = true
	}
	if seen[""] || len(seen) != int(outcomes)+int(reasons) {
		t.Errorf("a word is empty or there twice: %v", seen)
	}
}
