package input

import (
	"strings"

	"github.com/BurntSushi/toml"
)

// lines mirrors a decoded TOML value and holds the line, from 1, where it
// begins: the key of a value, the header of a table, the first character of
// the element of an array. The TOML library gives positions of errors only.
type lines struct {
	line     int
	explicit bool              // a table with a header of its own
	keys     map[string]*lines // of a table
	elements []*lines          // of an array
}

// key returns the place of a key of a table; a key that is not there is where
// its table is.
func (l *lines) key(key string) *lines {
	if at := l.keys[key]; at != nil {
		return at
	}
	return &lines{line: l.line}
}

// element returns the place of element i of an array.
func (l *lines) element(i int) *lines {
	if i < len(l.elements) {
		return l.elements[i]
	}
	return &lines{line: l.line}
}

// indexLines returns the lines of a TOML document. It relies on the document
// being valid, as the TOML library found it to be; of any other it returns
// something, without a panic.
func indexLines(document string) *lines {
	s := scanner{text: document, line: 1}
	root := &lines{line: 1}
	table := root
	for s.skipSpace(); s.pos < len(s.text); s.skipSpace() {
		if s.text[s.pos] == '[' {
			table = s.header(root)
		} else {
			s.keyValue(table)
		}
	}
	return root
}

// scanner walks over a TOML document. Every method moves forward, so that it
// ends on any text.
type scanner struct {
	text string
	pos  int
	line int
}

// skipSpace moves to the next character that is not blank, line end or comment.
func (s *scanner) skipSpace() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case '\n':
			s.line++
		case ' ', '\t', '\r':
		case '#':
			end := strings.IndexByte(s.text[s.pos:], '\n')
			if end < 0 {
				end = len(s.text) - s.pos
			}
			s.pos += end
			continue
		default:
			return
		}
		s.pos++
	}
}

// take moves over c, if it is next, and says whether it was.
func (s *scanner) take(c byte) bool {
	if s.pos < len(s.text) && s.text[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

// header reads [a.b] or [[a.b]] and returns the table that it opens.
func (s *scanner) header(root *lines) *lines {
	line := s.line
	s.pos++ // '['
	array := s.take('[')
	keys := s.dottedKey()
	s.skipSpace()
	s.take(']')
	if array {
		s.take(']')
	}
	at := root
	for i, key := range keys {
		at = at.child(key, line)
		if array && i == len(keys)-1 {
			at.elements = append(at.elements, &lines{line: line, explicit: true})
		}
		if n := len(at.elements); n > 0 {
			at = at.elements[n-1]
		}
	}
	if !at.explicit { // it was only named by a header of a table inside it
		at.line, at.explicit = line, true
	}
	return at
}

// child returns the place of a key of a table and makes it if it is new.
func (l *lines) child(key string, line int) *lines {
	if l.keys == nil {
		l.keys = make(map[string]*lines)
	}
	at := l.keys[key]
	if at == nil {
		at = &lines{line: line}
		l.keys[key] = at
	}
	return at
}

// keyValue reads a.b = value into a table.
func (s *scanner) keyValue(table *lines) {
	line := s.line
	for _, key := range s.dottedKey() {
		table = table.child(key, line)
	}
	s.skipSpace()
	s.take('=')
	s.skipSpace()
	s.value(table)
}

// dottedKey reads a.b."c"; it moves over at least one character.
func (s *scanner) dottedKey() []string {
	var keys []string
	for {
		s.skipSpace()
		keys = append(keys, s.simpleKey())
		s.skipSpace()
		if !s.take('.') {
			return keys
		}
	}
}

func (s *scanner) simpleKey() string {
	start := s.pos
	if s.pos < len(s.text) && (s.text[s.pos] == '"' || s.text[s.pos] == '\'') {
		s.str()
		return unquoteKey(s.text[start:s.pos])
	}
	for s.pos < len(s.text) && !strings.ContainsRune(" \t\r\n.=[]{},#\"'", rune(s.text[s.pos])) {
		s.pos++
	}
	if s.pos == start && s.pos < len(s.text) && s.text[s.pos] != '\n' {
		s.pos++
	}
	return s.text[start:s.pos]
}

// unquoteKey returns the key that a quoted key stands for. Escapes are left to
// the TOML library: they are rare, and must be read exactly as it reads them.
func unquoteKey(quoted string) string {
	if !strings.Contains(quoted, `\`) || quoted[0] == '\'' {
		return strings.Trim(quoted, quoted[:1])
	}
	var table map[string]any
	if _, err := toml.Decode(quoted+" = 0", &table); err == nil {
		for key := range table {
			return key
		}
	}
	return quoted
}

// value reads a value whose place is at.
func (s *scanner) value(at *lines) {
	if s.pos >= len(s.text) {
		return
	}
	switch s.text[s.pos] {
	case '"', '\'':
		s.str()
	case '[':
		s.pos++
		for s.skipSpace(); s.pos < len(s.text) && !s.take(']'); s.skipSpace() {
			if !s.take(',') {
				element := &lines{line: s.line}
				at.elements = append(at.elements, element)
				s.value(element)
			}
		}
	case '{':
		s.pos++
		for s.skipSpace(); s.pos < len(s.text) && !s.take('}'); s.skipSpace() {
			if !s.take(',') {
				s.keyValue(at)
			}
		}
	default: // number, boolean, or time, which may hold a blank
		start := s.pos
		for s.pos < len(s.text) && !strings.ContainsRune(",]}#\n", rune(s.text[s.pos])) {
			s.pos++
		}
		if s.pos == start && s.text[s.pos] != '\n' {
			s.pos++ // not TOML
		}
	}
}

// str moves over a string of any of the four kinds.
func (s *scanner) str() {
	quote := s.text[s.pos : s.pos+1]
	long := strings.HasPrefix(s.text[s.pos:], quote+quote+quote)
	if long {
		quote += quote + quote
	}
	s.pos += len(quote)
	for s.pos < len(s.text) {
		switch {
		case s.text[s.pos] == '\\' && quote[0] == '"':
			s.pos++ // what follows is no end
		case strings.HasPrefix(s.text[s.pos:], quote):
			s.pos += len(quote)
			for long && s.take(quote[0]) { // up to two quotes before the end belong to the text
			}
			return
		}
		if s.pos < len(s.text) {
			if s.text[s.pos] == '\n' {
				s.line++
			}
			s.pos++
		}
	}
}
