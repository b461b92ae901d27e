package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/irb-project/irb/examples/standin"
	"github.com/irb-project/irb/solve/profile"
)

func TestSendKeepsTheConversation(t *testing.T) {
	engine, err := standin.New(standin.Config{
		Name: "a-1", CapacityRPS: 1000,
		Profile: profile.Profile{
			PromptTokens: 1024, OutputTokens: answerTokens,
			TTFT: profile.Curve{V: []float64{0}, Ms: []float64{1}},
			TBOT: profile.Curve{V: []float64{0}, Ms: []float64{0.01}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	server := httptest.NewServer(engine)
	defer server.Close()
	traffic := newTraffic([]*agent{{cluster: "us-east", url: server.URL}})
	defer traffic.close()
	for i, c := range traffic.conversations[:2] { // the first is streamed
		if c.stream != (i == 0) {
			t.Fatalf("conversation %d: streamed is %v", i, c.stream)
		}
		for k := range 3 {
			got := traffic.send(t.Context(), c)
			if got.err != nil || got.engine != "a-1" {
				t.Fatalf("conversation %d, turn %d: engine %q, error %v", i, k, got.engine, got.err)
			}
			wantCached := 0.0
			if k > 0 {
				wantCached = got.prompt - turnTokens
			}
			if got.cached != wantCached {
				t.Errorf("conversation %d, turn %d: %v of %v tokens cached, want %v", i, k, got.cached, got.prompt, wantCached)
			}
		}
		if len(c.messages) != 2+2*3 || len(c.engines) != 3 {
			t.Errorf("conversation %d: %d messages, %d engines, want 8 and 3", i, len(c.messages), len(c.engines))
		}
	}
}

func TestSendSeesLosses(t *testing.T) {
	answers := map[string]string{
		"status":      "503",
		"cut off":     "data: {\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":256}}\n\n",
		"no usage":    "data: [DONE]\n\n",
		"too short":   "data: {\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n",
		"not a frame": "data: {\n\ndata: [DONE]\n\n",
	}
	for name, answer := range answers {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if answer == "503" {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			fmt.Fprint(w, answer)
		}))
		traffic := newTraffic([]*agent{{cluster: "us-east", url: server.URL}})
		c := traffic.conversations[0]
		if got := traffic.send(t.Context(), c); got.err == nil || len(c.engines) != 0 {
			t.Errorf("%s: no error, want one", name)
		}
		traffic.close()
		server.Close()
		if got := traffic.send(t.Context(), c); got.err == nil {
			t.Errorf("%s: no error from a closed server", name)
		}
	}
}

// All clusters' conversations are spread over a pass in proportion to demand,
// each exactly once.
func TestInterleaved(t *testing.T) {
	all := newConversations()
	seen := map[int]bool{}
	sent := map[string]float64{}
	openings := map[string]bool{}
	for i, c := range interleaved(all) {
		seen[i] = true
		sent[c.cluster]++
		openings[c.messages[1].Content] = true
		for _, cluster := range clusters {
			share := sent[cluster] / demandRPS[cluster]
			if other := sent[c.cluster] / demandRPS[c.cluster]; share < other-0.02 {
				t.Fatalf("after %d: %s is behind %s", len(seen), cluster, c.cluster)
			}
		}
	}
	if len(seen) != len(all) || len(openings) != len(all) {
		t.Errorf("%d conversations with %d openings, want %d", len(seen), len(openings), len(all))
	}
}

func TestRecovered(t *testing.T) {
	var err error
	func() {
		defer recovered(&err)
		panic("boom")
	}()
	if err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("error is %v, want the panic", err)
	}
}
