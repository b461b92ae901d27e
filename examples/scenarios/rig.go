package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/irb-project/irb/agent/config"
	"github.com/irb-project/irb/agent/metrics"
	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/agent/proxy"
	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/examples/standin"
	"github.com/irb-project/irb/solve/profile"
)

const (
	engineCount = 5
	planned     = 0.6 // utilization
	// The reference request, small so that the machine is not the bottleneck.
	promptTokens, outputTokens = 256, 8
)

// spec is the profile of the engines.
func spec() profile.Spec {
	return profile.Spec{
		Name: "small", PromptTokens: promptTokens, OutputTokens: outputTokens,
		Utilization: []float64{0, 0.5, 0.75, 0.9, 1},
		TTFTMs:      []float64{80, 100, 140, 220, 400},
		TBOTMs:      []float64{20, 24, 28, 35, 50},
	}
}

// rig is engines and agents, all on loopback.
type rig struct {
	engines  []*standin.Engine
	servers  []*http.Server // of the engines
	begun    sync.Map       // ids of requests whose client has a part of the answer
	twice    atomic.Int64   // attempts that came after that
	agents   []string       // URLs
	capacity float64        // requests/s of all engines
	table    *pick.Table
	stop     []func()
}

// newRig plans rps requests/s at 60 % of the engines' capacity.
func newRig(agents int, rps float64) (*rig, error) {
	r := &rig{capacity: rps / planned}
	fitted, err := profile.Fit(spec())
	if err != nil {
		return nil, err
	}
	var urls []string
	for n := range engineCount {
		e, err := standin.New(standin.Config{Name: engineName(n), Profile: fitted, CapacityRPS: r.capacity / engineCount})
		if err != nil {
			return nil, err
		}
		server := &http.Server{Handler: r.watched(e), ReadHeaderTimeout: 10 * time.Second}
		r.servers = append(r.servers, server)
		url, err := r.serve(server)
		if err != nil {
			return nil, err
		}
		r.stop = append(r.stop, e.Close)
		r.engines, urls = append(r.engines, e), append(urls, url)
	}
	s := plan(urls, rps, r.capacity/engineCount)
	if r.table, err = pick.NewTable(s, "here"); err != nil {
		return nil, err
	}
	for range agents {
		if err := r.addAgent(agents); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// watched counts attempts at a request that has been answered in part.
func (r *rig) watched(e http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, begun := r.begun.Load(req.Header.Get("X-Request-Id")); begun {
			r.twice.Add(1)
		}
		e.ServeHTTP(w, req)
	})
}

func engineName(n int) string { return fmt.Sprintf("e%d", n) }

// serve listens on a free port of this machine.
func (r *rig) serve(s interface {
	Serve(net.Listener) error
	Close() error
}) (url string, err error) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go s.Serve(listen) // ends with Close
	r.stop = append(r.stop, func() { s.Close() })
	return "http://" + listen.Addr().String(), nil
}

// plan is a snapshot by hand: every engine has a fifth of the keys of the two
// classes.
func plan(urls []string, rps, capacity float64) *snapshot.Snapshot {
	p := spec()
	s := &snapshot.Snapshot{
		Format: 1, Fleet: "scenarios", Sequence: 1, Policy: snapshot.Policy{OutputTokenWork: 4, MaxUtilization: 0.9},
		Classes: []snapshot.Class{
			{Name: "gold", Priority: 1, Match: snapshot.Match{Headers: map[string]string{"x-tier": "gold"}}},
			{Name: "bulk"},
		},
	}
	for n, url := range urls {
		s.Engines = append(s.Engines, snapshot.Engine{
			Name: engineName(n), Region: "here", Domain: engineName(n), Endpoints: []string{url},
			CapacityRPS: capacity, LimitRPS: 0.9 * capacity, Utilization: planned,
			PlannedRPS: planned * capacity, PlannedRefRPS: planned * capacity,
			Profile: snapshot.Profile{
				Name: p.Name, PromptTokens: p.PromptTokens, OutputTokens: p.OutputTokens,
				TTFTV: p.Utilization, TTFTMs: p.TTFTMs, TBOTV: p.Utilization, TBOTMs: p.TBOTMs,
			},
		})
	}
	for _, c := range s.Classes {
		src := snapshot.Source{
			Cluster: "here", Class: c.Name, OfferedRPS: rps / 2, ServedRPS: rps / 2,
			PromptTokens: promptTokens, OutputTokens: outputTokens,
		}
		for n := range urls {
			from := uint32(uint64(n) << 32 / uint64(len(urls)))
			src.LayoutFrom, src.LayoutTo = append(src.LayoutFrom, from), append(src.LayoutTo, engineName(n))
			src.Weights = append(src.Weights, snapshot.Weight{
				Engine: engineName(n), Quota: snapshot.QuotaSum / int64(len(urls)),
				Fraction: 1 / float64(len(urls)), RPS: rps / 2 / float64(len(urls)),
			})
		}
		s.Sources = append(s.Sources, src)
	}
	return s
}

// addAgent starts one of several agents.
func (r *rig) addAgent(agents int) error {
	c, err := config.Parse("agent.toml", fmt.Appendf(nil, `fleet = "scenarios"
cluster = "here"
weights = "-"
trusted_keys = ["-"]
affinity_header = "x-session"
trusted_headers = ["x-tier"]
allow_engine_networks = ["127.0.0.0/8"]
agents = %d
[[listener]]
address = "127.0.0.1:0"
identity = "demo"
trusted_proxies = ["127.0.0.0/8"]
`, agents))
	if err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	p, err := proxy.New(proxy.Options{Config: c, Metrics: metrics.New(time.Now), Log: log, Now: time.Now})
	if err != nil {
		return err
	}
	p.SetTable(r.table)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.RunGuards(ctx) })
	url, err := r.serve(proxy.NewServer(c, p.Handler(c.Listeners[0]), nil, log))
	if err != nil {
		cancel()
		return err
	}
	r.agents = append(r.agents, url)
	r.stop = append(r.stop, func() {
		cancel()
		running.Wait()
		p.Close()
	})
	return nil
}

// close stops everything, what was started last first.
func (r *rig) close() {
	for i := len(r.stop) - 1; i >= 0; i-- {
		r.stop[i]()
	}
}

// owner returns the engine that a session of a class belongs to.
func (r *rig) owner(class, session string) string {
	c := r.table.Class(class)
	return r.table.Engines()[c.Owner(pick.Key(class, "demo", pick.Material(session)))].Name
}

// body is a streamed request of the reference size that no cache knows.
func body(n int64) string {
	opening := fmt.Sprintf("%08d", n)
	return fmt.Sprintf(`{"model":"m","stream":true,"max_tokens":%d,"messages":[{"role":"user","content":%q}]}`,
		outputTokens, opening+strings.Repeat("text", promptTokens-len(opening)/4))
}

// send sends one request and returns the engine that answered it, and the
// status; 0 stands for an answer that broke off, or without an engine for one
// that never came.
func (r *rig) send(client *http.Client, agent, class, session, id, body string) (engine string, status int) {
	req, err := http.NewRequest(http.MethodPost, agent+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return "", 0
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Session", session)
	req.Header.Set("X-Request-Id", id)
	if class == "gold" {
		req.Header.Set("X-Tier", "gold")
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", 0
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		r.begun.Store(id, nil)
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode == http.StatusOK && !strings.HasSuffix(strings.TrimSpace(string(answer)), "[DONE]") {
		return resp.Header.Get(standin.NameHeader), 0
	}
	return resp.Header.Get(standin.NameHeader), resp.StatusCode
}
