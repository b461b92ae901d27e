package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/irb-project/irb/examples/standin"
	"github.com/irb-project/irb/solve/profile"
	"github.com/irb-project/irb/solve/simulate/engine"
	"github.com/irb-project/irb/solve/simulate/kv"
)

// standinCapacity in req/s, of which six tenths are asked for.
const standinCapacity, standinRPS = 30, 18

// standinProfile is an engine whose times are long beside those of HTTP.
func standinProfile() (profile.Profile, error) {
	return profile.Fit(profile.Spec{
		Name: "stand-in", PromptTokens: 256, OutputTokens: 32,
		Utilization: []float64{0, 0.25, 0.5, 0.75, 1},
		TTFTMs:      []float64{200, 220, 260, 340, 600}, TBOTMs: []float64{15, 16, 18, 22, 35},
	})
}

// seen is one request over HTTP, in s.
type seen struct{ at, ttft float64 }

// againstStandin sends requests to a stand-in engine over real HTTP, then plays
// the same requests at the times when they were really sent to an engine of the
// simulation, and prints the mean TTFT of both. It takes its time, a minute for
// a thousand requests, and means something on a machine that is not busy.
func againstStandin(ctx context.Context, n int, out io.Writer) error {
	p, err := standinProfile()
	if err != nil {
		return err
	}
	requests, err := overHTTP(ctx, p, n)
	if err != nil {
		return err
	}
	simulated, err := inVirtualTime(p, requests)
	if err != nil {
		return err
	}
	real := 0.0
	for _, r := range requests {
		real += r.ttft / float64(len(requests))
	}
	fmt.Fprintf(out, "mean TTFT of %d requests: %.1f ms from the stand-in engine over HTTP, %.1f ms in the simulation (%+.1f %%)\n",
		len(requests), 1000*real, 1000*simulated, 100*(simulated/real-1))
	return nil
}

// overHTTP sends a Poisson process of streamed reference requests.
func overHTTP(ctx context.Context, p profile.Profile, n int) ([]seen, error) {
	e, err := standin.New(standin.Config{Name: "e", Profile: p, CapacityRPS: standinCapacity})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(listener) // ends with Close
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
	requests, errs := make([]seen, n), make([]error, n)
	rng := rand.New(rand.NewPCG(1, 1))
	start := time.Now()
	due := time.Duration(0)
	var wait sync.WaitGroup
	for i := range n {
		due += time.Duration(rng.ExpFloat64() / standinRPS * 1e9)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Until(start.Add(due))):
		}
		wait.Go(func() {
			requests[i].at = time.Since(start).Seconds()
			requests[i].ttft, errs[i] = firstToken(ctx, client, "http://"+listener.Addr().String(), p, i)
		})
	}
	wait.Wait()
	return requests, errors.Join(errs...)
}

// firstToken sends a streamed request that no cache knows, reads all of the
// answer, and returns the time to its first content in s.
func firstToken(ctx context.Context, client *http.Client, url string, p profile.Profile, n int) (ttft float64, err error) {
	// Four characters are a token to the stand-in engine.
	opening := fmt.Sprintf("%08d", n)
	body := fmt.Sprintf(`{"model":"m","stream":true,"max_tokens":%.0f,"messages":[{"role":"user","content":%q}]}`,
		p.OutputTokens, opening+strings.Repeat("text", int(p.PromptTokens)-len(opening)/4))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	sent := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("request %d: status %d", n, resp.StatusCode)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if ttft == 0 && strings.HasPrefix(lines.Text(), "data: ") {
			ttft = time.Since(sent).Seconds()
		}
	}
	return ttft, lines.Err()
}

// inVirtualTime returns the mean TTFT in s of the same requests.
func inVirtualTime(p profile.Profile, requests []seen) (float64, error) {
	e, err := engine.New(engine.Config{Profile: p, CapacityRPS: standinCapacity, OutputTokenWork: 4, BlockTokens: 16})
	if err != nil {
		return 0, err
	}
	sum := 0.0
	step := func(until float64) {
		for e.Due() <= until {
			at := e.Due()
			if x := e.Step(); x.First {
				sum += at - requests[x.ID].at
			}
		}
	}
	for i, r := range requests {
		step(r.at)
		job := engine.Job{ID: int32(i), PromptTokens: p.PromptTokens, OutputTokens: p.OutputTokens, Prefix: &kv.Prefix{}}
		if !e.Submit(job, r.at) {
			return 0, fmt.Errorf("request %d: the queue is full", i)
		}
	}
	step(math.MaxFloat64)
	return sum / float64(len(requests)), nil
}
