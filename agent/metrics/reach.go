package metrics

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Reach is what opening connections has shown of the way to the engines: which
// endpoints take connections, and the round trip, which is how long a TCP
// connect takes.
//
// The round trip is a gauge, the median of the last connects to the engine: a
// lost packet costs a whole second and would own any mean, and a histogram
// exact enough for a plan would have some fifty series per engine.
type Reach struct {
	now   func() time.Time
	mu    sync.Mutex
	links map[linkName]*Link
}

type linkName struct{ engine, endpoint string }

// keepRTTs is how many connects to an endpoint are remembered.
const keepRTTs = 15

// reachTTL is how long what was seen of an endpoint stays true.
const reachTTL = 5 * time.Minute

// Link is what is known of one endpoint; connecting takes no lock.
type Link struct {
	rtts [keepRTTs]atomic.Int64 // ns; 0: none yet
	next atomic.Uint32
	seen atomic.Int64 // unix ns of the last connect, good or failed
	down atomic.Bool
}

// NewReach registers the series of the ways to engines.
func (s *Set) NewReach(fleet, cluster string, now func() time.Time) *Reach {
	r := &Reach{now: now, links: map[linkName]*Link{}}
	s.inCluster(fleet, cluster).MustRegister(r)
	return r
}

// Link returns what is known of an endpoint of an engine.
func (r *Reach) Link(engine, endpoint string) *Link {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := linkName{engine, endpoint}
	if r.links[name] == nil {
		r.links[name] = &Link{}
	}
	return r.links[name]
}

// Keep drops the endpoints that are none any more.
func (r *Reach) Keep(still func(engine, endpoint string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.links {
		if !still(name.engine, name.endpoint) {
			delete(r.links, name)
		}
	}
}

// Connected takes in a connect: how long it took, or that it failed.
func (l *Link) Connected(took time.Duration, ok bool, now time.Time) {
	if ok {
		l.rtts[l.next.Add(1)%keepRTTs].Store(max(1, int64(took)))
	}
	l.down.Store(!ok)
	l.seen.Store(now.UnixNano())
}

// Age returns how long ago the last connect was; false if there was none.
func (l *Link) Age(now time.Time) (time.Duration, bool) {
	seen := l.seen.Load()
	return now.Sub(time.Unix(0, seen)), seen != 0
}

var (
	descRTT = prometheus.NewDesc("irb_engine_rtt_seconds", "Round trip to an engine: the median of the last TCP connects.", []string{"engine"}, nil)
	descUp  = prometheus.NewDesc("irb_endpoint_up", "Whether the last TCP connect to an endpoint succeeded.", []string{"engine", "endpoint"}, nil)
)

// Describe is part of prometheus.Collector.
func (r *Reach) Describe(ch chan<- *prometheus.Desc) {
	ch <- descRTT
	ch <- descUp
}

// Collect exports what was seen of late; of the rest nothing is said.
func (r *Reach) Collect(ch chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	rtts := map[string][]int64{}
	for name, l := range r.links {
		if age, seen := l.Age(now); !seen || age > reachTTL {
			continue
		}
		up := 1.0
		if l.down.Load() {
			up = 0
		}
		ch <- prometheus.MustNewConstMetric(descUp, prometheus.GaugeValue, up, name.engine, name.endpoint)
		for i := range l.rtts {
			if ns := l.rtts[i].Load(); ns > 0 {
				rtts[name.engine] = append(rtts[name.engine], ns)
			}
		}
	}
	for engine, all := range rtts {
		slices.Sort(all)
		median := time.Duration(all[(len(all)-1)/2])
		ch <- prometheus.MustNewConstMetric(descRTT, prometheus.GaugeValue, median.Seconds(), engine)
	}
}
