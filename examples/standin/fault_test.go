package standin

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func setFault(t *testing.T, e *Engine, body string, want int) {
	t.Helper()
	if w := serve(e, request("/fault", body)); w.Code != want {
		t.Errorf("fault %s: status is %d, %s, want %d", body, w.Code, w.Body, want)
	}
}

func TestFaultStatus(t *testing.T) {
	e := start(t, func(c *Config) { c.Speedup = 1000 })
	for _, bad := range []string{`{`, `{"kind":"off","factor":2}`, `{"kind":"slow"}`, `{"kind":"gone"}`, `{"kind":"off","x":1}`} {
		setFault(t, e, bad, 400)
	}
	for kind, want := range map[string]string{"500": "500 internal_error", "503": "503 not_ready", "queue-full": "503 queue_full"} {
		setFault(t, e, fmt.Sprintf(`{"kind":%q}`, kind), 204)
		w := serve(e, chat(1, ""))
		if got := fmt.Sprintf("%d %s", w.Code, errorCode(t, w)); got != want {
			t.Errorf("fault %s: answer is %s, want %s", kind, got, want)
		}
	}
	setFault(t, e, `{"kind":"off"}`, 204)
	if w := serve(e, chat(1, "")); w.Code != 200 {
		t.Errorf("after off: status is %d, want 200", w.Code)
	}
}

func TestFaultSlowAndCapacity(t *testing.T) {
	// Alone 1 s: three times slower is 3 s; at a tenth of the capacity a
	// request among one other meets v = 1/(1+0.1).
	for _, test := range []struct {
		fault    string
		requests int
		want     time.Duration
	}{
		{`{"kind":"off"}`, 1, time.Second},
		{`{"kind":"slow","factor":3}`, 1, 3 * time.Second},
		{`{"kind":"capacity","factor":0.1}`, 1, time.Second},
		{`{"kind":"capacity","factor":0.1}`, 2, 11 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := start(t, nil)
			setFault(t, e, test.fault, 204)
			begin := time.Now()
			var all sync.WaitGroup
			for range test.requests {
				all.Go(func() { serve(e, chat(100, "")) })
			}
			all.Wait()
			if got := time.Since(begin).Round(time.Microsecond); got != test.want {
				t.Errorf("%s: %d requests took %v, want %v", test.fault, test.requests, got, test.want)
			}
			e.Close()
		})
	}
}

// A hanging stream has half its tokens and goes on when the fault is over.
func TestFaultHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, nil)
		setFault(t, e, `{"kind":"hang-mid-stream"}`, 204)
		var all sync.WaitGroup
		w, whole := httptest.NewRecorder(), httptest.NewRecorder()
		all.Go(func() { e.ServeHTTP(w, chat(100, `,"stream":true`)) })
		all.Go(func() { e.ServeHTTP(whole, chat(100, "")) })
		time.Sleep(time.Hour) // in the bubble's time
		synctest.Wait()
		if got := strings.Count(w.Body.String(), `"tok "`); got != 5 {
			t.Errorf("%d tokens while hanging, want 5", got)
		}
		if whole.Body.Len() != 0 {
			t.Errorf("answer while hanging is %s, want none", whole.Body)
		}
		setFault(t, e, `{"kind":"off"}`, 204)
		all.Wait()
		if got := strings.Count(w.Body.String(), `"tok "`); got != 10 || !strings.HasSuffix(w.Body.String(), "[DONE]\n\n") {
			t.Errorf("%d tokens after hanging, want 10 and [DONE]", got)
		}
		e.Close()
	})
}
