package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// sessions is the number of conversations of each class.
const sessions = 2000

// tally is what became of the requests of one stretch of time.
type tally struct {
	sent, answered, refused, failed int
	broken                          int // of failed: after the answer had begun
	goldSent, goldLost              int
	owned, moved                    map[string]int // by owner: all, and those that another engine answered
	seconds                         float64
}

// traffic sends requests to a rig.
type traffic struct {
	rig      *rig
	client   *http.Client
	rng      *rand.Rand
	requests int64
	wait     sync.WaitGroup
}

func newTraffic(r *rig) *traffic {
	return &traffic{
		rig: r, rng: rand.New(rand.NewPCG(1, 1)),
		client: &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 2000}},
	}
}

// run sends a Poisson process of gold and bulk requests for a while and returns
// what becomes of them; it does not wait for the last ones unless asked to.
func (t *traffic) run(gold, bulk float64, d time.Duration) *result {
	res := &result{tally: tally{owned: map[string]int{}, moved: map[string]int{}, seconds: d.Seconds()}}
	begin := time.Now()
	next := begin
	for {
		next = next.Add(time.Duration(t.rng.ExpFloat64() / (gold + bulk) * 1e9))
		if next.Sub(begin) >= d {
			time.Sleep(time.Until(begin.Add(d)))
			return res
		}
		time.Sleep(time.Until(next))
		class := "bulk"
		if t.rng.Float64()*(gold+bulk) < gold {
			class = "gold"
		}
		agent := t.rig.agents[t.rng.IntN(len(t.rig.agents))]
		session := fmt.Sprint(t.rng.IntN(sessions))
		t.requests++
		n := t.requests
		t.wait.Add(1)
		res.pending.Add(1)
		go func() {
			defer t.wait.Done()
			defer res.pending.Done()
			engine, status := t.rig.send(t.client, agent, class, session, fmt.Sprint("scenario-", n), body(n))
			res.add(class, t.rig.owner(class, session), engine, status)
		}()
	}
}

// result is a tally in the making.
type result struct {
	mu      sync.Mutex
	pending sync.WaitGroup
	tally   tally
}

func (r *result) add(class, owner, engine string, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &r.tally
	t.sent++
	switch {
	case status == http.StatusOK:
		t.answered++
		t.owned[owner]++
		if engine != owner {
			t.moved[owner]++
		}
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		t.refused++
	default:
		t.failed++
		if engine != "" {
			t.broken++
		}
	}
	if class == "gold" {
		t.goldSent++
		if status != http.StatusOK {
			t.goldLost++
		}
	}
}

// done waits for the answers and returns the tally.
func (r *result) done() tally {
	r.pending.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tally
}

// movedFrom returns the part of the requests of an engine's keys that another
// engine answered, and that of all other keys.
func (t tally) movedFrom(engine string) (its, others float64) {
	moved, owned := 0, 0
	for owner, n := range t.owned {
		if owner != engine {
			owned += n
			moved += t.moved[owner]
		}
	}
	return share(t.moved[engine], t.owned[engine]), share(moved, owned)
}

func share(n, of int) float64 { return float64(n) / float64(max(1, of)) }
