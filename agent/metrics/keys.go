package metrics

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// How many requests one conversation sends depends on how long one looks, so
// keys are counted over windows of several lengths: whoever solves every 15
// minutes wants the requests per key and 15 minutes.
//
// A window's numbers are added to its counters when it ends: requests over keys
// of any increase is then the mean over whole windows. A conversation whose
// requests reach several agents is counted by each, so that the ratio is too
// low rather than too high: weights then move less.

// baseWindow is the shortest window; the others are made of it.
const baseWindow = 5 * time.Minute

// windows are the lengths of windows, in base windows, and their label.
var windows = [...]struct {
	bases int
	label string
}{{1, "5m"}, {3, "15m"}, {12, "1h"}}

// keyWindows counts the keys of one class.
type keyWindows struct {
	current atomic.Pointer[window] // that requests add to

	// What is below is guarded by the collector's mutex.
	began  time.Time // the current window
	longer [len(windows)]struct {
		window
		bases int
	}
	requests, keys [len(windows)]float64 // of windows that have ended
}

type window struct {
	requests atomic.Int64
	keys     distinct
}

func (k *keyWindows) add(key uint64) {
	w := k.current.Load()
	w.requests.Add(1)
	w.keys.add(key)
}

// rotate ends the current window if it is over. A window that ran far too long,
// since nobody scraped, is dropped: it would count as a short one.
func (k *keyWindows) rotate(now time.Time) {
	age := now.Sub(k.began)
	if age < baseWindow {
		return
	}
	k.began = now
	done := k.current.Swap(new(window))
	for i := range windows {
		l := &k.longer[i]
		l.bases++
		l.requests.Add(done.requests.Load())
		l.keys.merge(&done.keys)
		late := age > baseWindow*3/2
		if l.bases < windows[i].bases && !late {
			continue
		}
		if !late {
			k.requests[i] += float64(l.requests.Load())
			k.keys[i] += l.keys.count()
		}
		l.bases, l.keys = 0, distinct{}
		l.requests.Store(0)
	}
}

// keyCollector exports the windows of all classes, and ends them when scraped.
type keyCollector struct {
	now     func() time.Time
	mu      sync.Mutex
	classes map[string]*keyWindows
}

func (c *keyCollector) class(name string) *keyWindows {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.classes[name]
	if k == nil {
		k = &keyWindows{began: c.now()}
		k.current.Store(new(window))
		c.classes[name] = k
	}
	return k
}

func (c *keyCollector) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.classes, name)
}

var (
	descKeys          = prometheus.NewDesc("irb_window_keys_total", "Different affinity keys per window, added up when a window ends; about 3 % exact.", []string{"class", "window"}, nil)
	descKeyedRequests = prometheus.NewDesc("irb_window_requests_total", "Requests of the windows of irb_window_keys_total.", []string{"class", "window"}, nil)
)

func (c *keyCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- descKeys
	ch <- descKeyedRequests
}

func (c *keyCollector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for name, k := range c.classes {
		k.rotate(now)
		for i, w := range windows {
			ch <- prometheus.MustNewConstMetric(descKeys, prometheus.CounterValue, k.keys[i], name, w.label)
			ch <- prometheus.MustNewConstMetric(descKeyedRequests, prometheus.CounterValue, k.requests[i], name, w.label)
		}
	}
}
