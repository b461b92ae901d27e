package body

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth of nested objects and arrays. Tool schemas go some 30 deep; parsers
// written in Python give up near 1,000.
const maxDepth = 256

// scanner walks over JSON text (RFC 8259) in one pass. Its methods do nothing
// once err is set, so callers check it when they are through. Like most parsers
// it lets strings hold bytes that are no UTF-8.
type scanner struct {
	b     []byte
	i     int
	depth int
	err   error

	key   []byte // of the last member, unescaped
	space []byte // for what was escaped, made when first needed
	// unicodeEscapes counts \uXXXX: six bytes for a character of two or three.
	unicodeEscapes int
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = &SyntaxError{Offset: s.i, Problem: fmt.Sprintf(format, args...)}
	}
}

// unexpected fails with what is at the present place.
func (s *scanner) unexpected(want string) {
	if s.i >= len(s.b) {
		s.fail("the body ends, want %s", want)
	} else {
		s.fail("found %q, want %s", s.b[s.i], want)
	}
}

// peek skips blanks and returns the byte there, 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\n', '\r', '\t':
			s.i++
		default:
			return c
		}
	}
	return 0
}

// open goes into an object or array.
func (s *scanner) open() {
	s.i++
	s.depth++
	if s.depth > maxDepth {
		s.fail("nested deeper than %d", maxDepth)
	}
}

// member goes to the value of the n-th member of the object that was opened,
// its name in key; at the end of the object it goes out and returns false.
func (s *scanner) member(n int) bool {
	if !s.next(n, '}') {
		return false
	}
	if s.peek() != '"' {
		s.unexpected("a name in quotes")
		return false
	}
	start, end, escaped := s.str()
	s.key = s.b[start:end]
	if escaped {
		// A name too long for the space is none of those looked for.
		s.key, _ = s.unescape(s.key)
	}
	if s.peek() != ':' {
		s.unexpected("a colon")
		return false
	}
	s.i++
	return s.err == nil
}

// element goes to the n-th value of the array that was opened; at the end of
// the array it goes out and returns false.
func (s *scanner) element(n int) bool { return s.next(n, ']') }

// next goes past what separates the n-th part from the one before.
func (s *scanner) next(n int, end byte) bool {
	if s.err != nil {
		return false
	}
	switch c := s.peek(); {
	case c == end:
		s.i++
		s.depth--
		return false
	case n == 0:
		return true
	case c != ',':
		s.unexpected(fmt.Sprintf("a comma or %q", end))
		return false
	}
	s.i++
	return true
}

// skip goes past any value.
func (s *scanner) skip() {
	if s.err != nil {
		return
	}
	switch c := s.peek(); c {
	case '"':
		s.str()
	case '{':
		s.open()
		for n := 0; s.member(n); n++ {
			s.skip()
		}
	case '[':
		s.open()
		for n := 0; s.element(n); n++ {
			s.skip()
		}
	case 't':
		s.literal("true")
	case 'f':
		s.literal("false")
	case 'n':
		s.literal("null")
	default:
		s.number()
	}
}

func (s *scanner) literal(want string) {
	if len(s.b)-s.i < len(want) || string(s.b[s.i:s.i+len(want)]) != want {
		s.unexpected(want)
		return
	}
	s.i += len(want)
}

// number goes past a number.
func (s *scanner) number() {
	if s.at('-') {
		s.i++
	}
	switch {
	case s.at('0'):
		s.i++
	case !s.digits():
		s.unexpected("a value")
		return
	}
	if s.at('.') {
		s.i++
		if !s.digits() {
			s.unexpected("a digit")
			return
		}
	}
	if s.at('e') || s.at('E') {
		s.i++
		if s.at('+') || s.at('-') {
			s.i++
		}
		if !s.digits() {
			s.unexpected("a digit")
		}
	}
}

func (s *scanner) at(c byte) bool { return s.i < len(s.b) && s.b[s.i] == c }

// digits goes past a run of digits and says whether there was one.
func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		s.i++
	}
	return s.i > start
}

// str goes past the string that begins here and returns where its text is, as
// written, and whether there are escapes in it.
func (s *scanner) str() (start, end int, escaped bool) {
	s.i++
	start = s.i
	for {
		s.i += plainBytes(s.b[s.i:])
		if s.i >= len(s.b) {
			s.fail("the body ends inside a string")
			return start, s.i, escaped
		}
		switch c := s.b[s.i]; c {
		case '"':
			s.i++
			return start, s.i - 1, escaped
		case '\\':
			escaped = true
			if !s.escape() {
				return start, s.i, escaped
			}
		default:
			s.fail("control character %q in a string", c)
			return start, s.i, escaped
		}
	}
}

// escape goes past a backslash and what belongs to it.
func (s *scanner) escape() bool {
	if s.i+1 < len(s.b) {
		switch s.b[s.i+1] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			s.i += 2
			return true
		case 'u':
			if _, ok := hex4(s.b[s.i+2:]); ok {
				s.i += 6
				s.unicodeEscapes++
				return true
			}
		}
	}
	s.fail("no such escape")
	return false
}

// plainBytes returns how many bytes come before the first quote, backslash or
// control character. It looks at eight bytes at a time: a byte of x is zero if
// and only if the lowest set bit of (x - 0x01..) &^ x & 0x80.. is in it or
// below it (Warren, Hacker's Delight, 6-1).
func plainBytes(b []byte) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	n := 0
	for ; n+8 <= len(b); n += 8 {
		x := binary.LittleEndian.Uint64(b[n:])
		quote := x ^ '"'*ones
		slash := x ^ '\\'*ones
		found := ((quote-ones)&^quote | (slash-ones)&^slash | (x-' '*ones)&^x) & highs
		if found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	for ; n < len(b); n++ {
		if c := b[n]; c == '"' || c == '\\' || c < ' ' {
			break
		}
	}
	return n
}

// word reads a short string, unescaped; it holds until the next member or word.
// ok is false if the value is no string or a longer one; it is gone past either
// way.
func (s *scanner) word() (text []byte, ok bool) {
	if s.peek() != '"' {
		s.skip()
		return nil, false
	}
	start, end, escaped := s.str()
	if s.err != nil {
		return nil, false
	}
	text = s.b[start:end]
	if escaped {
		return s.unescape(text)
	}
	return text, len(text) <= maxNameBytes
}

// integer reads a whole number >= 0 and returns 0 for anything else.
func (s *scanner) integer() int64 {
	s.peek()
	start := s.i
	s.skip()
	n := int64(0)
	for _, c := range s.b[start:s.i] {
		if c < '0' || c > '9' || n > 1<<50 {
			return 0
		}
		n = 10*n + int64(c-'0')
	}
	return n
}

// isTrue reads a value and says whether it is the literal true.
func (s *scanner) isTrue() bool {
	is := s.peek() == 't'
	s.skip()
	return is && s.err == nil
}

// unescape returns the text of a string with valid escapes in space that the
// next call uses again. ok is false if it is too long.
func (s *scanner) unescape(raw []byte) (text []byte, ok bool) {
	if s.space == nil {
		s.space = make([]byte, 0, maxNameBytes)
	}
	return unescape(s.space, raw)
}

// unescape appends the text of a string with valid escapes to dst. It returns
// nil and false if that has no room.
func unescape(dst, raw []byte) (text []byte, ok bool) {
	for i := 0; i < len(raw); {
		if len(dst)+utf8.UTFMax > cap(dst) {
			return nil, false
		}
		if raw[i] != '\\' {
			dst = append(dst, raw[i])
			i++
			continue
		}
		if raw[i+1] != 'u' {
			dst = append(dst, unescaped(raw[i+1]))
			i += 2
			continue
		}
		r, _ := hex4(raw[i+2:])
		i += 6
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if i+6 <= len(raw) && raw[i] == '\\' && raw[i+1] == 'u' {
				low, _ = hex4(raw[i+2:])
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				i += 6
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst, true
}

// unescaped returns the byte that a backslash and c stand for.
func unescaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// hex4 reads four hexadecimal digits.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
