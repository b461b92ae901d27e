package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/irb-project/irb/solve/model"
)

// Scrape reads signals from the agents themselves, without a Prometheus server:
// each is scraped twice, some time apart. There is no history, so demand is
// what it was in between, with a fixed margin.
//
// All agents must answer both times: the demand of one that does not is
// missing, and a plan for less than what comes sheds.
type Scrape struct {
	URLs   []string // of the agents' metrics
	Client *http.Client
	Apart  time.Duration
	// Sleep waits between the scrapes, or until the context ends.
	Sleep func(context.Context, time.Duration) error
	Clock func() time.Time
}

// String names the agents, without passwords.
func (c *Scrape) String() string {
	names := make([]string, len(c.URLs))
	for i, raw := range c.URLs {
		names[i] = "?"
		if u, err := url.Parse(raw); err == nil {
			names[i] = u.Redacted()
		}
	}
	return fmt.Sprintf("two scrapes of %s, %v apart", strings.Join(names, ", "), c.Apart)
}

// maxScrapeBytes bounds what an agent may answer: some 100,000 series.
const maxScrapeBytes = 32 << 20

// Signals is part of Source.
func (c *Scrape) Signals(ctx context.Context, fleet *model.Fleet, o Options) (*Signals, error) {
	urls := slices.Compact(slices.Sorted(slices.Values(c.URLs))) // named twice: one agent
	began := c.Clock()
	first, err := c.all(ctx, urls)
	if err != nil {
		return nil, err
	}
	if err := c.Sleep(ctx, c.Apart); err != nil {
		return nil, err
	}
	second, err := c.all(ctx, urls)
	if err != nil {
		return nil, err
	}
	took := c.Clock().Sub(began)
	g := gatherer{s: newSignals(), fleet: fleet, up: newReplicas(fleet), window: keyWindowFor(o.Every).label, seconds: took.Seconds(),
		offered: map[Pair]float64{}, recent: map[Pair]*Tokens{}, total: map[Pair]*Tokens{}, rtts: map[Way][]float64{}, requests: map[Pair]float64{}, keys: map[Pair]float64{}}
	if !(took > 0) {
		return nil, fmt.Errorf("the scrapes are %v apart, want some time between them", took)
	}
	for i, u := range urls {
		g.agent(u, first[i], second[i])
	}
	return g.signals(took), nil
}

// all scrapes every agent, side by side; the error names all that failed.
func (c *Scrape) all(ctx context.Context, urls []string) ([]exposition, error) {
	answers, errs := make([]exposition, len(urls)), make([]error, len(urls))
	var wg sync.WaitGroup
	for i, u := range urls {
		wg.Go(func() { answers[i], errs[i] = c.one(ctx, u) })
	}
	wg.Wait()
	return answers, errors.Join(errs...)
}

func (c *Scrape) one(ctx context.Context, target string) (exposition, error) {
	shown := target
	if u, err := url.Parse(target); err == nil {
		shown = u.Redacted()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/plain;version=0.0.4")
	resp, err := c.Client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", shown, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("agent %s: status %d, want 200", shown, resp.StatusCode)
	}
	found, err := parseExposition(io.LimitReader(resp.Body, maxScrapeBytes))
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", shown, err)
	}
	return found, nil
}

// gatherer adds up the agents.
type gatherer struct {
	s             *Signals
	fleet         *model.Fleet
	up            *replicas
	window        string
	seconds       float64
	offered       map[Pair]float64 // requests between the scrapes
	recent, total map[Pair]*Tokens // between the scrapes, since the agents began
	rtts          map[Way][]float64
	requests      map[Pair]float64
	keys          map[Pair]float64
}

// agent takes in the two scrapes of one agent.
func (g *gatherer) agent(target string, first, second exposition) {
	ours, resets := 0, 0
	for key, x := range second {
		if x.labels["irb_fleet"] != g.fleet.Policy.Fleet {
			continue
		}
		ours++
		before, known := first[key]
		grown := x.value - before.value
		if !known || grown < 0 {
			grown = x.value // the agent began again, and counted from 0
			if known && x.counter {
				resets++
			}
		}
		g.series(x, grown)
	}
	switch {
	case ours == 0:
		g.s.notef("agent %s tells nothing of fleet %q", target, g.fleet.Policy.Fleet)
	case resets > 0:
		g.s.notef("agent %s began again between the scrapes; what it counted before is missing", target)
	}
}

func (g *gatherer) series(x point, grown float64) {
	pair := sample{labels: x.labels}.pair()
	switch x.name {
	case "irb_requests_offered_total":
		if x.labels["attempt"] == "first" {
			g.offered[pair] += grown
		}
	case "irb_tokens_total":
		addTokens(g.recent, []sample{{x.labels, grown}}, addSum)
		addTokens(g.total, []sample{{x.labels, x.value}}, addSum)
	case "irb_token_reports_total":
		addTokens(g.recent, []sample{{x.labels, grown}}, addReports)
		addTokens(g.total, []sample{{x.labels, x.value}}, addReports)
	case "irb_window_requests_total":
		if x.labels["window"] == g.window {
			g.requests[pair] += x.value
		}
	case "irb_window_keys_total":
		if x.labels["window"] == g.window {
			g.keys[pair] += x.value
		}
	case "irb_engine_rtt_seconds":
		way := Way{x.labels["irb_cluster"], x.labels["engine"]}
		g.rtts[way] = append(g.rtts[way], 1000*x.value)
	case "irb_endpoint_up":
		g.up.connected(x.labels["engine"], x.labels["endpoint"], x.value > 0)
	}
}

func (g *gatherer) signals(took time.Duration) *Signals {
	s := g.s
	s.Step = took
	for pair, n := range g.offered {
		s.Offered[pair] = []float64{n / g.seconds}
	}
	for pair, t := range g.total {
		r := g.recent[pair]
		s.Tokens[pair] = Tokens{Prompt: enough(r.Prompt, t.Prompt), Output: enough(r.Output, t.Output), Cached: enough(r.Cached, t.Cached), CachedOf: enough(r.CachedOf, t.CachedOf)}
	}
	s.requestsPerKey(g.requests, g.keys)
	for way, all := range g.rtts {
		s.RTTMs[way] = quantile(all, 0.5)
	}
	g.up.into(s)
	return s
}
