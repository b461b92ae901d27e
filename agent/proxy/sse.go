package proxy

import "bytes"

// sseScanner reads along with a stream of server-sent events and finds out
// when tokens came. It never changes a byte; what it does not understand it
// passes over.
type sseScanner struct {
	tail     []byte // the unfinished line, carried over from earlier reads
	skipping bool   // the line is too long to keep: wait for its end
	midFrame bool   // the last event is not ended by an empty line

	Content   int  // data lines with content, about one token each
	Other     bool // something else was seen that clients may wait for
	Progress  bool // and shows, in words that are not known here, that the engine works
	OutTokens int  // from the last usage seen; 0 unknown
	InTokens  int

	cached      int // tokens of InTokens that came from a cache
	cachedKnown bool
}

// maxLine bounds what is carried over from one read to the next.
const maxLine = 64 << 10

func (s *sseScanner) reset() { *s = sseScanner{tail: s.tail[:0]} }

// scan takes the next bytes and returns how many data lines with content ended
// in them.
func (s *sseScanner) scan(p []byte) (content int) {
	before := s.Content
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			s.carry(p)
			break
		}
		line := p[:end]
		p = p[end+1:]
		switch {
		case s.skipping:
			s.skipping = false
			s.Content++ // so long a line is no empty delta
		case len(s.tail) > 0:
			s.tail = append(s.tail, line...)
			s.line(s.tail)
			s.tail = s.tail[:0]
		default:
			s.line(line)
		}
	}
	return s.Content - before
}

func (s *sseScanner) carry(p []byte) {
	s.midFrame = true
	if s.skipping {
		return
	}
	if len(s.tail)+len(p) > maxLine {
		s.tail, s.skipping = s.tail[:0], true
		return
	}
	s.tail = append(s.tail, p...)
}

var (
	dataField = []byte("data:")
	usageKey  = []byte(`"usage"`)
)

func (s *sseScanner) line(line []byte) {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) == 0 {
		s.midFrame = false
		return
	}
	s.midFrame = true
	data, ok := bytes.CutPrefix(line, dataField)
	if !ok {
		s.Other = s.Other || line[0] == ':' // a comment, to keep the client waiting
		return
	}
	data = bytes.TrimSpace(data)
	switch {
	case hasContent(data):
		s.Content++
	case !isOpener(data):
		s.Other = true
		s.Progress = s.Progress || !isEmptyHanded(data)
	}
	if bytes.Contains(data, usageKey) {
		s.usage(data)
	}
}

// contentKeys are followed by generated text in the deltas of chat, completion,
// responses and messages streams. A key inside generated text cannot be taken
// for one, since its quotes are escaped there.
var contentKeys = [][]byte{
	[]byte(`"content":`), []byte(`"text":`), []byte(`"delta":`), []byte(`"reasoning_content":`),
	[]byte(`"reasoning":`), []byte(`"arguments":`), []byte(`"thinking":`), []byte(`"partial_json":`),
	[]byte(`"refusal":`), []byte(`"tool_calls":`), []byte(`"audio":`),
}

// hasContent says whether an event carries something generated: one of the keys
// with a string or a list that is not empty, or an audio object.
func hasContent(data []byte) bool {
	for _, key := range contentKeys {
		rest := data
		for {
			i := bytes.Index(rest, key)
			if i < 0 {
				break
			}
			rest = rest[i+len(key):]
			value := bytes.TrimLeft(rest, " ")
			if len(value) < 2 {
				break
			}
			switch {
			case value[0] == '"' && value[1] != '"':
				return true
			case value[0] == '[' && value[1] != ']' && string(key) == `"tool_calls":`:
				return true
			case value[0] == '{' && value[1] != '}' && string(key) == `"audio":`:
				return true
			}
		}
	}
	return false
}

// openers are found in the events that begin an answer and carry nothing yet:
// the role of a chat message, a response object without output, a message.
var openers = [][]byte{[]byte(`"role":`), []byte("response.created"), []byte("response.in_progress"), []byte("message_start")}

func isOpener(data []byte) bool {
	for _, o := range openers {
		if bytes.Contains(data, o) {
			return true
		}
	}
	return false
}

// isEmptyHanded says whether an event without content is of those that come
// before the first token: empty deltas, and pings to keep the client waiting.
func isEmptyHanded(data []byte) bool {
	return bytes.Contains(data, choicesKey) || bytes.Contains(data, pingWord)
}

var choicesKey, pingWord = []byte(`"choices":`), []byte(`"ping"`)

// openersOnly says that nothing came but events that open an answer. They may
// be held back until more comes: an engine that fails now has lost nothing.
func (s *sseScanner) openersOnly() bool { return s.Content == 0 && !s.Other }

// numberAfter returns the number that follows the first of the keys that is
// there, 0 if none is.
func numberAfter(data []byte, keys ...string) int {
	for _, key := range keys {
		i := bytes.Index(data, []byte(key))
		if i < 0 {
			continue
		}
		rest := bytes.TrimLeft(data[i+len(key):], ": ")
		n := 0
		for _, c := range rest {
			if c < '0' || c > '9' || n > 1<<40 {
				break
			}
			n = 10*n + int(c-'0')
		}
		return n
	}
	return 0
}
