package standin

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

const (
	maxBodyBytes = 16 << 20
	// bytesPerToken makes the token count of a text: close to English in
	// common tokenizers, and the same in both directions, so that an answer
	// fed back as history counts as many tokens as it was.
	bytesPerToken = 4
	// keyBytes of a raw prompt know a conversation.
	keyBytes  = 1024
	tokenText = "tok "
)

// completionRequest is the part of both completion APIs that matters here.
type completionRequest struct {
	Model               string          `json:"model"`
	Messages            []message       `json:"messages"`
	Prompt              json.RawMessage `json:"prompt"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Stream              bool            `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`

	chat         bool
	promptTokens float64
	outputTokens int
	key          uint64 // of the conversation
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// readRequest reads and checks a completion request.
func (e *Engine) readRequest(w http.ResponseWriter, r *http.Request) (*completionRequest, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	q := &completionRequest{chat: strings.HasSuffix(r.URL.Path, "/chat/completions")}
	if err := json.Unmarshal(body, q); err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	q.outputTokens = int(math.Round(e.cfg.Profile.OutputTokens))
	for _, n := range []*int{q.MaxTokens, q.MaxCompletionTokens} {
		if n != nil {
			q.outputTokens = *n
		}
	}
	if q.outputTokens < 1 {
		return nil, fmt.Errorf("max_tokens is %d, want at least 1", q.outputTokens)
	}
	h := xxhash.New()
	io.WriteString(h, q.Model)
	bytes := 0
	if q.chat {
		bytes, err = q.readMessages(h)
	} else {
		bytes, err = q.readPrompt(h)
	}
	if err != nil {
		return nil, err
	}
	q.promptTokens = math.Ceil(float64(bytes) / bytesPerToken)
	q.key = h.Sum64()
	return q, nil
}

// readMessages hashes the messages up to the first user message, which is how
// turns of one conversation agree, and returns the size of all.
func (q *completionRequest) readMessages(h io.Writer) (bytes int, err error) {
	if len(q.Messages) == 0 {
		return 0, fmt.Errorf("messages: want at least one")
	}
	first := slices.IndexFunc(q.Messages, func(m message) bool { return m.Role == "user" })
	for i, m := range q.Messages {
		text := textOf(m.Content)
		if i <= first || first < 0 {
			fmt.Fprintf(h, "\x00%s\x00%s", m.Role, text)
		}
		bytes += len(text)
	}
	return max(1, bytes), nil
}

func (q *completionRequest) readPrompt(h io.Writer) (bytes int, err error) {
	text := textOf(q.Prompt)
	if text == "" {
		return 0, fmt.Errorf("prompt: want a text")
	}
	io.WriteString(h, text[:min(len(text), keyBytes)])
	return len(text), nil
}

// textOf returns the text of a content or prompt: a string, or what the parts
// of an array hold as text; of anything else its JSON.
func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) == nil {
		var b strings.Builder
		for _, p := range parts {
			b.WriteString(p.Text)
		}
		return b.String()
	}
	return string(raw)
}

func (e *Engine) serves(model string) bool {
	return len(e.cfg.Models) == 0 || slices.Contains(e.cfg.Models, model)
}
