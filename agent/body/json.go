package body

import (
	"bytes"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// ScanJSON reads a JSON body: chat completions, responses, completions,
// messages, embeddings and what else is like them. It looks at every byte once,
// and its allocations do not grow with the body.
//
// The error is ErrDuplicateModel or a *SyntaxError; either is the client's.
func ScanJSON(b []byte) (Request, error) {
	j := jsonBody{scanner: scanner{b: b}}
	j.top()
	if j.err != nil {
		return Request{}, j.err
	}
	j.finish()
	return j.Request, nil
}

// jsonBody gathers a Request on the way through a body.
type jsonBody struct {
	scanner
	Request

	hasModel  bool
	hasSystem bool
	hasUser   bool
	hasPrompt bool

	cacheKey affinityValue
	response affinityValue
	system   xxhash.Digest // instructions and the system messages before the first user item
	tools    uint64
	user     uint64  // digest of the first user item
	prompt   limited // the raw prompt
	item     limited // the item being read

	mediaBytes int   // in base64: no text
	tokenBytes int   // of arrays of tokens
	tokens     int64 // their number
}

// affinityValue is the digest of a value that its author meant as a key.
type affinityValue struct {
	digest uint64
	given  bool
}

// top reads the whole body.
func (j *jsonBody) top() {
	if j.peek() != '{' {
		j.unexpected("an object")
		return
	}
	j.system.Reset()
	j.open()
	for n := 0; j.member(n); n++ {
		j.field()
	}
	if j.err == nil && (j.peek() != 0 || j.i < len(j.b)) {
		j.unexpected("nothing after the object")
	}
}

// field reads the value of one member of the body. "system" at the top is how
// the messages API gives its instructions.
func (j *jsonBody) field() {
	switch string(j.key) {
	case "model":
		j.model()
	case "messages", "input":
		j.items()
	case "instructions", "system":
		j.item.reset(maxItemBytes)
		j.content(false)
		j.addSystem()
	case "prompt":
		j.rawPrompt()
	case "tools", "functions":
		j.toolList()
	case "prompt_cache_key":
		j.cacheKey = j.affinityValue()
	case "previous_response_id":
		j.response = j.affinityValue()
	case "stream":
		j.Stream = j.isTrue()
	case "max_tokens", "max_completion_tokens", "max_output_tokens":
		j.MaxTokens = max(j.MaxTokens, j.integer())
	default:
		j.skip()
	}
}

func (j *jsonBody) model() {
	if j.hasModel && j.err == nil {
		j.err = ErrDuplicateModel
		return
	}
	j.hasModel = true
	kind := j.peek()
	at := j.i
	name, ok := j.word()
	if !ok && j.err == nil && kind != 'n' {
		j.err = &SyntaxError{Offset: at, Problem: fmt.Sprintf(`"model" is no string of at most %d bytes`, maxNameBytes)}
	}
	j.Model = string(name)
}

// affinityValue reads a key: null, the empty string and what is no string count
// as not given.
func (j *jsonBody) affinityValue() affinityValue {
	if j.peek() != '"' {
		j.skip()
		return affinityValue{}
	}
	start, end, escaped := j.str()
	if j.err != nil || start == end {
		return affinityValue{}
	}
	text := j.b[start:end]
	if escaped {
		// One too long to be unescaped is as good a key as it is written.
		if short, ok := j.unescape(text); ok {
			text = short
		}
	}
	return affinityValue{digest: xxhash.Sum64(text), given: true}
}

// toolList reads the tools as they are written: a client writes them alike in
// every turn.
func (j *jsonBody) toolList() {
	isList := j.peek() == '['
	start := j.i
	j.skip()
	if !isList || j.err != nil {
		return
	}
	list := j.b[start:j.i]
	if len(bytes.TrimLeft(list[1:], " \n\r\t")) > 1 { // more than the bracket
		j.Tools = true
		j.tools = combine(j.tools, xxhash.Sum64(list))
	}
}

// finish draws the conclusions once the whole body is read.
func (j *jsonBody) finish() {
	j.Stateful, j.Previous = j.response.given, j.response.digest
	j.UnderWay = j.UnderWay || j.Stateful
	text := len(j.b) - j.mediaBytes - j.tokenBytes - 3*j.unicodeEscapes
	j.PromptTokens = int64(text)/4 + j.tokens
	model := xxhash.Sum64String(j.Model)
	switch {
	case j.cacheKey.given:
		j.Affinity = Affinity{SourceCacheKey, j.cacheKey.digest}
	case j.response.given:
		j.Affinity = Affinity{SourceResponse, j.response.digest}
	case j.hasUser || j.hasSystem:
		j.Affinity = Affinity{SourceConversation, combine(model, j.system.Sum64(), j.tools, j.user)}
	case j.hasPrompt:
		j.Affinity = Affinity{SourcePrompt, combine(model, j.prompt.digest.Sum64())}
	}
}
