package body

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// str goes past the string that begins here and returns where its text is, as
// written, and whether there are escapes in it.
func (s *scanner) str() (start, end int, escaped bool) {
	s.i++
	start = s.i
	if start+8 <= len(s.b) { // names and most values are short
		if found := special(binary.LittleEndian.Uint64(s.b[start:])); found != 0 {
			end = start + bits.TrailingZeros64(found)/8
			if s.b[end] == '"' {
				s.i = end + 1
				return start, end, false
			}
		}
	}
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

// special returns a word whose lowest set bit is in the first byte of x that is a
// quote, a backslash or a control character; 0 if none is. A byte of x is zero
// if and only if the lowest set bit of (x - 0x01..) &^ x & 0x80.. is in it or
// below it (Warren, Hacker's Delight, 6-1).
func special(x uint64) uint64 {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	quote := x ^ '"'*ones
	slash := x ^ '\\'*ones
	return ((quote-ones)&^quote | (slash-ones)&^slash | (x-' '*ones)&^x) & highs
}

// plainBytes returns how many bytes come before the first quote, backslash or
// control character. It looks at eight bytes at a time.
func plainBytes(b []byte) int {
	n := 0
	for ; n+8 <= len(b); n += 8 {
		if found := special(binary.LittleEndian.Uint64(b[n:])); found != 0 {
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
