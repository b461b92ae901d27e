package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/irb-project/irb/examples/standin"
)

const (
	// conversationsPerRPS sizes the traffic: a pass over all conversations, one
	// turn each, takes some 6 s.
	conversationsPerRPS = 6
	// pace is the part of the planned demand that is sent. Agents may shed what
	// is above plan, and even pacing is not exact to the last request.
	pace = 0.95
	// One conversation in streamEvery streams its answers.
	streamEvery = 8

	firstTokens, turnTokens, answerTokens = 600, 32, 256
)

// conversation is a client that sends one turn after the other, each with all
// that was said before.
type conversation struct {
	cluster  string
	stream   bool
	messages []message
	engines  []string // that served each turn
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// newConversations returns the clients of all clusters; no two begin alike.
func newConversations() (all []*conversation) {
	for _, cluster := range clusters {
		for i := range int(conversationsPerRPS * demandRPS[cluster]) {
			opening := fmt.Sprintf("Conversation %d of %s. ", i, cluster)
			all = append(all, &conversation{
				cluster: cluster, stream: i%streamEvery == 0,
				messages: []message{
					{"system", "You are the stand-in of a language model."},
					{"user", opening + strings.Repeat("text", firstTokens-len(opening)/4)},
				},
			})
		}
	}
	return all
}

// turn is what became of one request.
type turn struct {
	engine         string
	prompt, cached float64 // tokens
	err            error
}

// traffic sends what the conversations say to the agents.
type traffic struct {
	clients       map[string]*http.Client // by cluster
	agents        map[string]string       // URL by cluster
	conversations []*conversation
}

func newTraffic(agents []*agent) *traffic {
	t := &traffic{clients: map[string]*http.Client{}, agents: map[string]string{}, conversations: newConversations()}
	for _, a := range agents {
		t.agents[a.cluster] = a.url
		t.clients[a.cluster] = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
	}
	return t
}

func (t *traffic) close() {
	for _, c := range t.clients {
		c.CloseIdleConnections()
	}
}

// pass sends one turn of every conversation, evenly at the planned rates, and
// returns what became of each, in their order.
func (t *traffic) pass(ctx context.Context) ([]turn, error) {
	turns := make([]turn, len(t.conversations))
	var all sync.WaitGroup
	begin := time.Now()
	sent := map[string]float64{}
	due := time.NewTimer(0)
	defer due.Stop()
	for i, c := range interleaved(t.conversations) {
		sent[c.cluster]++
		due.Reset(time.Until(begin.Add(time.Duration(sent[c.cluster] / (pace * demandRPS[c.cluster]) * 1e9))))
		select {
		case <-due.C:
		case <-ctx.Done():
			all.Wait()
			return nil, ctx.Err()
		}
		all.Go(func() {
			defer recovered(&turns[i].err)
			turns[i] = t.send(ctx, c)
		})
	}
	all.Wait()
	return turns, ctx.Err()
}

// interleaved yields the conversations so that all clusters last as long.
func interleaved(all []*conversation) iter.Seq2[int, *conversation] {
	return func(yield func(int, *conversation) bool) {
		next := map[string][]int{}
		for i, c := range all {
			next[c.cluster] = append(next[c.cluster], i)
		}
		sent := map[string]float64{}
		for range all {
			first := ""
			for _, cluster := range clusters {
				if len(next[cluster]) > 0 && (first == "" || sent[cluster]/demandRPS[cluster] < sent[first]/demandRPS[first]) {
					first = cluster
				}
			}
			i := next[first][0]
			next[first] = next[first][1:]
			sent[first]++
			if !yield(i, all[i]) {
				return
			}
		}
	}
}

// recovered makes a panic of a goroutine an error, so that the demo still
// ends what it started.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}

// send sends the next turn of a conversation and notes the answer in it.
func (t *traffic) send(ctx context.Context, c *conversation) (result turn) {
	body, err := json.Marshal(map[string]any{
		"model": "stand-in", "messages": c.messages, "max_tokens": answerTokens,
		"stream": c.stream, "stream_options": map[string]any{"include_usage": true},
	})
	if err != nil {
		return turn{err: err}
	}
	r, err := http.NewRequestWithContext(ctx, "POST", t.agents[c.cluster]+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return turn{err: err}
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := t.clients[c.cluster].Do(r)
	if err != nil {
		return turn{err: err}
	}
	defer answer.Body.Close()
	result.engine = answer.Header.Get(standin.NameHeader)
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	var content string
	if err == nil {
		content, err = result.read(text, c.stream)
	}
	if err != nil {
		result.err = err
		return result
	}
	c.engines = append(c.engines, result.engine)
	c.messages = append(c.messages, message{"assistant", content}, message{"user", strings.Repeat("more", turnTokens)})
	return result
}

// chunk is the part of an answer, or of a frame of one, that matters here.
type chunk struct {
	Choices []struct{ Message, Delta struct{ Content string } }
	Usage   *struct {
		Prompt  float64 `json:"prompt_tokens"`
		Answer  float64 `json:"completion_tokens"`
		Details struct {
			Cached float64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

// read takes an answer apart; an incomplete one is an error.
func (r *turn) read(text []byte, stream bool) (content string, err error) {
	frames := [][]byte{text}
	if stream {
		body, complete := bytes.CutSuffix(text, []byte("data: [DONE]\n\n"))
		if !complete {
			return "", errors.New("the stream ended without [DONE]")
		}
		frames = bytes.Split(bytes.TrimSpace(body), []byte("\n\n"))
	}
	var b strings.Builder
	for _, frame := range frames {
		var c chunk
		if err := json.Unmarshal(bytes.TrimPrefix(frame, []byte("data: ")), &c); err != nil {
			return "", err
		}
		for _, choice := range c.Choices {
			b.WriteString(choice.Message.Content + choice.Delta.Content)
		}
		if c.Usage != nil {
			r.prompt, r.cached = c.Usage.Prompt, c.Usage.Details.Cached
			if c.Usage.Answer != answerTokens {
				return "", fmt.Errorf("the answer has %v tokens, want %d", c.Usage.Answer, answerTokens)
			}
		}
	}
	if r.prompt == 0 {
		return "", errors.New("the answer has no usage")
	}
	return b.String(), nil
}
