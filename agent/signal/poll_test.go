package signal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// engines answers polls in virtual time.
type engines struct {
	mu      sync.Mutex
	answer  func(url string) (string, error)
	takes   time.Duration
	polls   map[string][]time.Time
	present int // polls under way
	most    int
}

func (e *engines) RoundTrip(r *http.Request) (*http.Response, error) {
	e.mu.Lock()
	if e.polls == nil {
		e.polls = map[string][]time.Time{}
	}
	url := r.URL.String()
	e.polls[url] = append(e.polls[url], time.Now())
	e.present++
	e.most = max(e.most, e.present)
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.present--
		e.mu.Unlock()
	}()
	if !sleep(r.Context(), e.takes) {
		return nil, r.Context().Err()
	}
	text, err := e.answer(url)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(text))}, nil
}

// poll runs a poller of n endpoints for a while of virtual time.
func poll(t *testing.T, e *engines, n int, d time.Duration) (reports []Report, p *Poller) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		p = NewPoller(time.Second, prometheus.NewRegistry())
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		var targets []Target
		for i := range n {
			targets = append(targets, Target{
				ID: fmt.Sprint("engine ", i), URL: fmt.Sprintf("http://e%d/metrics", i), Transport: e,
				Report: func(r Report) {
					mu.Lock()
					defer mu.Unlock()
					reports = append(reports, r)
				},
			})
		}
		p.Set(targets[:n/2]) // replaced before any poll
		go func() {
			time.Sleep(time.Millisecond)
			p.Set(targets)
		}()
		p.Run(ctx)
	})
	return reports, p
}

func TestPollerSpreadsPolls(t *testing.T) {
	e := &engines{answer: func(string) (string, error) { return "tgi_queue_size 3\ntgi_batch_current_size 1\n", nil }}
	reports, p := poll(t, e, 200, 10*time.Second)
	var bins [10]int
	for url, times := range e.polls {
		if len(times) < 9 || len(times) > 11 {
			t.Errorf("%s: %d polls in 10 s, want one per second", url, len(times))
		}
		bins[times[0].UnixMilli()%1000/100]++
	}
	for i, n := range bins {
		if n < 5 || n > 40 { // 20 expected, binomial
			t.Errorf("tenth %d of the interval has %d of 200 polls", i, n)
		}
	}
	if ok := count(p.polls.WithLabelValues("ok")); int(ok) != len(reports) || len(reports) < 1800 {
		t.Errorf("%v polls counted, %d reported", ok, len(reports))
	}
	if !same(reports[0], Report{1, 3, Unknown()}) {
		t.Errorf("reported %v", reports[0])
	}
}

func TestPollerBoundsPollsAtOnce(t *testing.T) {
	e := &engines{takes: time.Minute, answer: func(string) (string, error) { return "", nil }}
	reports, p := poll(t, e, 100, 10*time.Second)
	if e.most != maxPolls {
		t.Errorf("%d polls at once, want %d", e.most, maxPolls)
	}
	if n := count(p.polls.WithLabelValues("error")); n < 4*maxPolls || len(reports) != 0 {
		t.Errorf("%v polls timed out, %d reports; want one slot's worth every %v and none", n, len(reports), pollTimeout)
	}
}

func TestPollerBacksOff(t *testing.T) {
	e := &engines{answer: func(string) (string, error) { return "", errors.New("refused") }}
	reports, _ := poll(t, e, 1, 4*time.Minute)
	if n := len(e.polls["http://e0/metrics"]); n < 8 || n > 14 || len(reports) != 0 {
		t.Errorf("%d polls in 240 s and %d reports of an endpoint without metrics, want about 6 + 240/32", n, len(reports))
	}
}

func TestPollerMissesAloud(t *testing.T) {
	e := &engines{answer: func(string) (string, error) { return "vllm:num_requests_running 3\n", nil }}
	_, p := poll(t, e, 1, 5500*time.Millisecond)
	for _, q := range []string{"waiting", "kv_usage"} {
		if n := count(p.missing.WithLabelValues("vllm", q)); n < 4 || n > 6 {
			t.Errorf("%s missed %v times in 5 polls", q, n)
		}
	}
}

func TestUntilPhase(t *testing.T) {
	for at := range 3000 {
		now := time.UnixMilli(int64(at))
		d := untilPhase(now, time.Second, 300*time.Millisecond)
		if d <= 0 || d > time.Second || now.Add(d).UnixMilli()%1000 != 300 {
			t.Fatalf("at %d ms: %v", at, d)
		}
	}
}

func count(c prometheus.Counter) float64 {
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		panic(err)
	}
	return m.GetCounter().GetValue()
}
