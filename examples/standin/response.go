package standin

import (
	"encoding/json"
	"net/http"
)

// response is the answer of both completion APIs, whole or one chunk of it.
type response struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

// choice holds Message (chat), Delta (chat chunk) or Text (completions).
type choice struct {
	Index        int      `json:"index"`
	Message      *content `json:"message,omitempty"`
	Delta        *content `json:"delta,omitempty"`
	Text         *string  `json:"text,omitempty"`
	FinishReason *string  `json:"finish_reason"`
}

type content struct {
	Role    string `json:"role,omitempty"`
	Content string `json:"content"`
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
	Details          struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (c *call) usage() *usage {
	u := &usage{PromptTokens: int(c.promptTokens), CompletionTokens: c.outputTokens}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	u.Details.CachedTokens = int(c.cachedTokens)
	return u
}

// finishLength is why every answer ends: it always has the length asked for.
func finishLength() *string { s := "length"; return &s }

func (c *call) response(text string) response {
	r := response{ID: c.id, Object: "text_completion", Created: c.created, Model: c.Model, Usage: c.usage()}
	if c.chat {
		r.Object = "chat.completion"
		r.Choices = []choice{{Message: &content{Role: "assistant", Content: text}, FinishReason: finishLength()}}
	} else {
		r.Choices = []choice{{Text: &text, FinishReason: finishLength()}}
	}
	return r
}

func (c *call) chunk(choices []choice, u *usage) []byte {
	r := response{ID: c.id, Object: "text_completion", Created: c.created, Model: c.Model, Choices: choices, Usage: u}
	if c.chat {
		r.Object = "chat.completion.chunk"
	}
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return append(append([]byte("data: "), b...), "\n\n"...)
}

// firstFrame is what a chat stream opens with, a role without content.
func (c *call) firstFrame() []byte {
	if !c.chat {
		return nil
	}
	return c.chunk([]choice{{Delta: &content{Role: "assistant"}}}, nil)
}

// tokenFrame is one token; all are alike.
func (c *call) tokenFrame() []byte {
	if c.chat {
		return c.chunk([]choice{{Delta: &content{Content: tokenText}}}, nil)
	}
	text := tokenText
	return c.chunk([]choice{{Text: &text}}, nil)
}

// lastFrames are the finish reason, the usage if asked for, and the end mark.
func (c *call) lastFrames() []byte {
	last := choice{FinishReason: finishLength(), Delta: &content{}}
	if !c.chat {
		empty := ""
		last = choice{FinishReason: finishLength(), Text: &empty}
	}
	b := c.chunk([]choice{last}, nil)
	if c.StreamOptions.IncludeUsage {
		b = append(b, c.chunk([]choice{}, c.usage())...)
	}
	return append(b, "data: [DONE]\n\n"...)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) // an error means that the client has gone
}

// writeError writes an error body as the OpenAI API has it.
func writeError(w http.ResponseWriter, status int, code, message string) {
	kind := "invalid_request_error"
	switch status {
	case http.StatusServiceUnavailable:
		kind = "overloaded_error"
	case http.StatusInternalServerError:
		kind = "server_error"
	}
	writeJSON(w, status, map[string]any{"error": map[string]any{
		"message": message, "type": kind, "code": code, "param": nil,
	}})
}

func writeQueueFull(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	writeError(w, http.StatusServiceUnavailable, "queue_full", "the request queue is full")
}

func (e *Engine) serveModels(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	list := []model{}
	for _, m := range e.cfg.Models {
		list = append(list, model{ID: m, Object: "model", Created: e.start.Unix(), OwnedBy: "standin"})
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}
