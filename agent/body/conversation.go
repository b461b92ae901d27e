package body

import (
	"bytes"
	"encoding/binary"
)

// role is who speaks in an item of a conversation.
type role uint8

const (
	roleNone role = iota
	roleSystem
	roleUser
	roleModel // the assistant, or a tool that it called
)

// items reads messages or input: a text, a list of items, or a list of tokens.
func (j *jsonBody) items() {
	switch j.peek() {
	case '"':
		j.userText()
	case '[':
		if j.isTokenList() {
			start := j.i
			j.tokenList()
			j.item.reset(maxItemBytes)
			j.item.write(j.b[start:j.i])
			j.addUser()
			return
		}
		j.open()
		for n := 0; j.element(n); n++ {
			switch j.peek() {
			case '"':
				j.userText()
			case '{':
				j.message()
			default:
				j.skip()
			}
		}
	default:
		j.skip()
	}
}

// userText reads an item that is a bare text.
func (j *jsonBody) userText() {
	j.item.reset(maxItemBytes)
	j.text(false)
	j.addUser()
}

// message reads one item. Its role may come after its content, so the content
// is digested before it is known whether it counts.
func (j *jsonBody) message() {
	j.item.reset(maxItemBytes)
	if j.hasUser {
		j.item.reset(0) // nothing after the first user item counts
	}
	who, kind := roleNone, roleNone
	j.open()
	for n := 0; j.member(n); n++ {
		switch string(j.key) {
		case "role":
			who = j.role()
		case "type":
			kind = j.itemKind()
		case "content":
			j.content(false)
		default:
			j.skip()
		}
	}
	if who == roleNone {
		who = kind
	}
	switch who {
	case roleSystem:
		// Later ones come and go while the conversation runs.
		if !j.hasUser {
			j.addSystem()
		}
	case roleUser:
		j.addUser()
	case roleModel:
		j.UnderWay = true
	}
}

func (j *jsonBody) role() role {
	word, _ := j.word()
	switch string(word) {
	case "system", "developer":
		return roleSystem
	case "user":
		return roleUser
	case "assistant", "tool", "function", "model":
		return roleModel
	}
	return roleNone
}

// itemKind reads the type of an item of the responses API. But for messages,
// which have a role, these are all made by the model or answer it: calls, their
// outputs, reasoning, references.
func (j *jsonBody) itemKind() role {
	word, ok := j.word()
	if !ok || string(word) == "message" || bytes.HasPrefix(word, []byte("input_")) {
		return roleNone
	}
	return roleModel
}

func (j *jsonBody) addSystem() {
	if j.item.left == maxItemBytes {
		return // null or empty
	}
	j.hasSystem = true
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], j.item.digest.Sum64())
	j.system.Write(b[:])
}

func (j *jsonBody) addUser() {
	if j.hasUser {
		return
	}
	j.hasUser = true
	j.user = j.item.digest.Sum64()
}

// content digests the texts of a content value: a string, parts, or parts
// within parts. A string and a single text part of the same text agree.
// Members that say how a part is to be treated do not count: clients change
// them from turn to turn. media says that the value is data, not text.
func (j *jsonBody) content(media bool) {
	switch j.peek() {
	case '"':
		j.text(media)
	case '[':
		j.open()
		for n := 0; j.element(n); n++ {
			j.content(media)
		}
	case '{':
		j.open()
		for n := 0; j.member(n); n++ {
			switch string(j.key) {
			case "type":
				j.partKind()
			case "cache_control", "id", "status", "detail", "annotations":
				j.skip()
			case "data", "file_data":
				j.content(true)
			default:
				j.content(false)
			}
		}
	default:
		j.skip()
	}
}

func (j *jsonBody) partKind() {
	word, _ := j.word()
	switch string(word) {
	case "image_url", "input_image", "image":
		j.Vision = true
	}
}

// text digests a string as it is written, with an end mark that no string can
// hold.
func (j *jsonBody) text(media bool) {
	start, end, _ := j.str()
	raw := j.b[start:end]
	if len(raw) == 0 {
		return
	}
	if media || isDataURL(raw) {
		j.mediaBytes += len(raw)
	}
	j.item.write(raw)
	j.item.write([]byte{0})
}

func isDataURL(raw []byte) bool {
	return bytes.HasPrefix(raw, []byte("data:")) && bytes.Contains(raw[:min(len(raw), 128)], []byte(";base64,"))
}

// rawPrompt reads the prompt of the completions API: a text, a list of texts
// of which the first counts, a list of tokens, or a list of those.
func (j *jsonBody) rawPrompt() {
	j.prompt.reset(maxPromptBytes)
	j.hasPrompt = false
	switch c := j.peek(); {
	case c == '"':
		j.promptText()
	case c == '[' && j.isTokenList():
		start := j.i
		j.tokenList()
		j.prompt.write(j.b[start:j.i])
		j.hasPrompt = true
	case c == '[':
		j.open()
		for n := 0; j.element(n); n++ {
			if n == 0 && j.peek() == '"' {
				j.promptText()
			} else {
				j.skip()
			}
		}
	default:
		j.skip()
	}
}

func (j *jsonBody) promptText() {
	start, end, _ := j.str()
	j.prompt.write(j.b[start:end])
	j.hasPrompt = end > start
}

// isTokenList says whether the array here holds a number or an array.
func (j *jsonBody) isTokenList() bool {
	rest := bytes.TrimLeft(j.b[j.i+1:], " \n\r\t")
	return len(rest) > 0 && (rest[0] == '[' || rest[0]-'0' <= 9)
}

// tokenList reads and counts the numbers of an array, of arrays too.
func (j *jsonBody) tokenList() {
	start := j.i
	j.countTokens()
	j.tokenBytes += j.i - start
}

func (j *jsonBody) countTokens() {
	j.open()
	for n := 0; j.element(n); n++ {
		if j.peek() == '[' {
			j.countTokens()
			continue
		}
		j.tokens++
		j.skip()
	}
}
