package proxy

import (
	"bytes"
	"net/http"

	"github.com/irb-project/irb/agent/metrics"
)

// clientRetryHeader says how often a client has sent a request before; the SDKs
// of OpenAI and Anthropic set it.
const clientRetryHeader = "X-Stainless-Retry-Count"

// countOffered counts the request as demand, whatever becomes of it.
func (x *exchange) countOffered() {
	if x.request.Method != http.MethodPost {
		return // lists of models and the like are no work for an engine
	}
	v := x.request.Header[clientRetryHeader]
	x.demand().Offered(x.key, len(v) == 1 && v[0] != "0" && v[0] != "")
}

func (x *exchange) demand() *metrics.ClassDemand { return x.plan.demand[x.class.Number] }

// countTokens counts the tokens of an answered request, as far as they are
// known.
func (x *exchange) countTokens() {
	if x.class == nil || !x.generates() {
		return
	}
	d := x.demand()
	if n := x.sse.InTokens; n > 0 {
		d.Tokens(metrics.PromptTokens, metrics.FromUsage, int64(n))
	} else {
		d.Tokens(metrics.PromptTokens, metrics.FromEstimate, x.facts.PromptTokens)
	}
	if x.sse.InTokens > 0 && x.sse.cachedKnown {
		d.Tokens(metrics.CachedTokens, metrics.FromUsage, int64(x.sse.cached))
	}
	switch {
	case x.sse.OutTokens > 0:
		d.Tokens(metrics.OutputTokens, metrics.FromUsage, int64(x.sse.OutTokens))
	case x.sse.Content > 0:
		d.Tokens(metrics.OutputTokens, metrics.FromEstimate, int64(x.sse.Content))
	}
}

// usageTail is how much of the end of a long JSON answer is kept to find its
// usage in, which engines put last.
const usageTail = 1 << 10

// readUsage looks for the usage of an answer that is one document, after a read
// of m bytes into the buffer at n. A short answer is whole there.
func (s *answerStream) readUsage(n, m int) {
	if int64(n+m) == s.response.ContentLength {
		s.x.sse.lastUsage(s.buffer[:n+m])
		return
	}
	s.x.sse.keepTail(s.buffer[n : n+m])
	s.x.sse.lastUsage(s.x.sse.tail)
}

// keepTail keeps the end of what has been read.
func (s *sseScanner) keepTail(b []byte) {
	s.tail = append(s.tail, b[max(0, len(b)-usageTail):]...)
	if extra := len(s.tail) - usageTail; extra > 0 {
		s.tail = s.tail[:copy(s.tail, s.tail[extra:])]
	}
}

// lastUsage reads the last usage object in a text. Quotes inside generated text
// are escaped there, so it cannot be taken for one.
func (s *sseScanner) lastUsage(text []byte) {
	end := text[max(0, len(text)-usageTail):]
	if i := bytes.LastIndex(end, usageKey); i >= 0 {
		s.usage(end[i:])
	}
}

// usage keeps the token counts of a usage object: OpenAI's two spellings, and
// Anthropic's, whose input tokens are those that no cache held.
func (s *sseScanner) usage(data []byte) {
	if n := numberAfter(data, `"completion_tokens"`, `"output_tokens"`); n > 0 {
		s.OutTokens = n
	}
	read, hasRead := intAfter(data, `"cache_read_input_tokens"`)
	cached, known := intAfter(data, `"cached_tokens"`)
	if n := numberAfter(data, `"prompt_tokens"`, `"input_tokens"`); n > 0 {
		s.InTokens = n
		if hasRead {
			written, _ := intAfter(data, `"cache_creation_input_tokens"`)
			s.InTokens += read + written
		}
	}
	switch {
	case known:
		s.cached, s.cachedKnown = cached, true
	case hasRead:
		s.cached, s.cachedKnown = read, true
	}
}

// intAfter returns the number that follows a key; false if the key is not
// there, or has another value, such as null.
func intAfter(data []byte, key string) (n int, ok bool) {
	i := bytes.Index(data, []byte(key))
	if i < 0 {
		return 0, false
	}
	rest := bytes.TrimLeft(data[i+len(key):], ": ")
	if len(rest) == 0 || rest[0] < '0' || rest[0] > '9' {
		return 0, false
	}
	return numberAfter(data[i:], key), true
}
