package body

import "fmt"

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
	if s.i < len(s.b) && s.b[s.i] > ' ' { // nearly always
		return s.b[s.i]
	}
	return s.peekOn()
}

func (s *scanner) peekOn() byte {
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
