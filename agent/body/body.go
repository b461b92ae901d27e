// Package body reads out of a request body what routing needs, without changing
// or keeping it: the model, what to keep a conversation together by, whether a
// turn is under way, and an estimate of its size.
package body

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// Request is what one body says.
type Request struct {
	Model    string // "" if it names none
	Affinity Affinity
	// Stateful requests name a previous response, which only the engine that
	// made it can go on from.
	Stateful bool
	Previous uint64 // digest of the id of that response
	// UnderWay marks a further turn of a conversation: an assistant message, a
	// tool's answer or a previous response is present.
	UnderWay bool
	Stream   bool
	Tools    bool // tools or functions are offered to the model
	Vision   bool // there is an image among the content
	// PromptTokens is an estimate: 4 bytes of text per token, 1 per element of
	// an array of tokens. Media in base64 count nothing. A little above the
	// truth for JSON with much structure, below it for dense scripts.
	PromptTokens int64
	// MaxTokens is the largest of max_tokens, max_completion_tokens and
	// max_output_tokens, 0 if none is there.
	MaxTokens int64
}

// ContextTokens returns the estimated context that the request needs.
func (r *Request) ContextTokens() int64 { return r.PromptTokens + r.MaxTokens }

// Capabilities returns the names of the capabilities that an engine must have.
// The slice is shared: it must not be changed.
func (r *Request) Capabilities() []string {
	switch {
	case r.Tools && r.Vision:
		return bothCapabilities
	case r.Tools:
		return bothCapabilities[:1]
	case r.Vision:
		return bothCapabilities[1:]
	}
	return nil
}

var bothCapabilities = []string{"tools", "vision"}

// Affinity is what requests of one conversation have in common.
type Affinity struct {
	Source   Source
	Material uint64 // digest; 0 if there is no source
}

// Source says where an affinity comes from.
type Source uint8

// The sources in the order of precedence. A configured header, which comes
// before them all, is no matter of the body.
const (
	SourceNone         Source = iota
	SourceCacheKey            // prompt_cache_key
	SourceResponse            // previous_response_id
	SourceConversation        // model, system text, tools, first user item
	SourcePrompt              // model and a prefix of a raw prompt
	SourceForm                // model, prompt and the head of the file of a form
)

var sourceNames = [...]string{"none", "prompt_cache_key", "previous_response_id", "conversation", "prompt", "form"}

// String returns the word for logs and labels.
func (s Source) String() string { return sourceNames[s] }

const (
	// maxNameBytes bounds the strings that are copied out of a body.
	maxNameBytes = 1024
	// maxItemBytes of an item (a message, a file) go into its digest. Two
	// conversations alike for so long share most of a cache anyhow.
	maxItemBytes = 64 << 10
	// maxPromptBytes of a raw prompt go into its digest. Short enough that the
	// turns of one conversation agree, longer than most system prompts. On
	// Mooncake's conversation trace (kvcache-ai/Mooncake, FAST25-release, 3b5a594,
	// Apache-2.0) keys of the first 2,048 tokens reach 91 % of the cache hits
	// of one common cache, the largest key has 0.4 % of requests; of the first
	// 512 tokens all requests are one key, and 16,384 reach only 56 %.
	maxPromptBytes = 8 << 10
)

// ErrDuplicateModel means that a body names its model twice. Parsers differ in
// which one they take, so what was checked might not be what is served.
var ErrDuplicateModel = errors.New(`body: "model" is there twice, want it once`)

// SyntaxError is a body that is not what its content type says.
type SyntaxError struct {
	Offset  int // in bytes
	Problem string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("body: byte %d: %s", e.Offset, e.Problem) }

// limited is a digest of the first bytes of a text.
type limited struct {
	digest xxhash.Digest
	left   int
}

func (l *limited) reset(limit int) {
	l.digest.Reset()
	l.left = limit
}

func (l *limited) write(b []byte) {
	if len(b) > l.left {
		b = b[:l.left]
	}
	l.left -= len(b)
	l.digest.Write(b)
}

// combine makes one digest of several.
func combine(digests ...uint64) uint64 {
	var d xxhash.Digest
	d.Reset()
	var b [8]byte
	for _, v := range digests {
		binary.LittleEndian.PutUint64(b[:], v)
		d.Write(b[:])
	}
	return d.Sum64()
}
