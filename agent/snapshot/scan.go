package snapshot

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep the values below [x] may nest.
const maxDepth = 16

// scanner reads keys and values from UTF-8 text.
type scanner struct {
	text string
	pos  int
	line int
}

func (s *scanner) atEnd() bool { return s.pos >= len(s.text) }

// peek returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	if s.atEnd() {
		return 0
	}
	return s.text[s.pos]
}

// take goes past c if it is next.
func (s *scanner) take(c byte) bool {
	if s.peek() != c || s.atEnd() {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) skipBlanks() {
	for s.pos < len(s.text) && (s.text[s.pos] == ' ' || s.text[s.pos] == '\t') {
		s.pos++
	}
}

// skipSpace goes past blanks, comments and line ends.
func (s *scanner) skipSpace() error {
	for {
		s.skipBlanks()
		if err := s.skipComment(); err != nil {
			return err
		}
		if !s.take('\n') {
			return nil
		}
		s.line++
	}
}

// isControl says whether c may not stand in strings and comments.
func isControl(c byte) bool { return c < ' ' && c != '\t' || c == 0x7f }

// skipComment goes past a comment, if there is one, to the end of the line.
func (s *scanner) skipComment() error {
	if s.peek() != '#' {
		return nil
	}
	for ; !s.atEnd() && s.text[s.pos] != '\n'; s.pos++ {
		if c := s.text[s.pos]; isControl(c) {
			return fmt.Errorf("control character %#02x in a comment", c)
		}
	}
	return nil
}

// skipLine goes to the start of the next line.
func (s *scanner) skipLine() {
	n := strings.IndexByte(s.text[s.pos:], '\n')
	if n < 0 {
		s.pos = len(s.text)
		return
	}
	s.pos += n + 1
	s.line++
}

func (s *scanner) endOfLine() error {
	s.skipBlanks()
	if err := s.skipComment(); err != nil {
		return err
	}
	if s.take('\n') {
		s.line++
		return nil
	}
	if s.atEnd() {
		return nil
	}
	return fmt.Errorf("found %s, want the end of the line", s.found())
}

// found describes what is next, for errors.
func (s *scanner) found() string {
	switch {
	case s.atEnd():
		return "the end"
	case s.peek() == '\n':
		return "the end of the line"
	}
	r, _ := utf8.DecodeRuneInString(s.text[s.pos:])
	return strconv.Quote(string(r))
}

// key reads a bare or quoted key.
func (s *scanner) key() (string, error) {
	if c := s.peek(); c == '"' || c == '\'' {
		return s.string()
	}
	from := s.pos
	for s.pos < len(s.text) && isBare(s.text[s.pos]) {
		s.pos++
	}
	if s.pos == from {
		return "", fmt.Errorf("found %s, want a key", s.found())
	}
	return s.text[from:s.pos], nil
}

// string reads a basic or a literal string.
func (s *scanner) string() (string, error) {
	quote := s.peek()
	if quote != '"' && quote != '\'' {
		return "", fmt.Errorf("found %s, want a string", s.found())
	}
	rest := s.text[s.pos+1:]
	if len(rest) >= 2 && rest[0] == quote && rest[1] == quote {
		return "", errors.New("a string over several lines, want one line with \\n")
	}
	for i := range len(rest) {
		switch c := rest[i]; {
		case c == quote:
			s.pos += i + 2
			return rest[:i], nil
		case isControl(c):
			return "", badInString(c)
		case c == '\\' && quote == '"':
			return s.escapedString(i)
		}
	}
	return "", errors.New("a string without an end")
}

func badInString(c byte) error {
	if c == '\n' {
		return errors.New("a string without an end")
	}
	return fmt.Errorf("control character %#02x in a string, want it escaped", c)
}

// escapedString reads a basic string that has its first backslash at byte i.
func (s *scanner) escapedString(i int) (string, error) {
	out := []byte(s.text[s.pos+1 : s.pos+1+i])
	s.pos += 1 + i
	for !s.atEnd() {
		switch c := s.text[s.pos]; {
		case c == '"':
			s.pos++
			return string(out), nil
		case isControl(c):
			return "", badInString(c)
		case c == '\\':
			r, err := s.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
			s.pos++
		}
	}
	return "", errors.New("a string without an end")
}

// escape reads a backslash and what it stands for.
func (s *scanner) escape() (rune, error) {
	rest := s.text[s.pos+1:]
	if rest == "" {
		return 0, errors.New("a string without an end")
	}
	digits := 0
	var r rune
	switch rest[0] {
	case 'b':
		r = '\b'
	case 't':
		r = '\t'
	case 'n':
		r = '\n'
	case 'f':
		r = '\f'
	case 'r':
		r = '\r'
	case '"', '\\':
		r = rune(rest[0])
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	default:
		return 0, fmt.Errorf("unknown escape %.2q", s.text[s.pos:])
	}
	if digits > 0 {
		if len(rest) < 1+digits {
			return 0, errors.New("a string without an end")
		}
		x, err := strconv.ParseUint(rest[1:1+digits], 16, 32)
		r = rune(x)
		if err != nil || x > utf8.MaxRune || !utf8.ValidRune(r) {
			return 0, fmt.Errorf("bad escape %q", `\`+rest[:1+digits])
		}
	}
	s.pos += 2 + digits
	return r, nil
}

// token reads up to what ends a number, a time or a word.
func (s *scanner) token() string {
	from := s.pos
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t', '\n', ',', ']', '}', '#':
			return s.text[from:s.pos]
		}
		s.pos++
	}
	return s.text[from:]
}

func (s *scanner) bool() (bool, error) {
	switch token := s.token(); token {
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return false, fmt.Errorf("found %q, want true or false", token)
	}
}

func (s *scanner) integer() (int64, error) {
	token := s.token()
	if whole := sign(token); whole == "" || digits(whole) != "" || badZero(token) {
		return 0, fmt.Errorf("found %q, want an integer", token)
	}
	x, err := strconv.ParseInt(token, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is out of range", token)
	}
	return x, nil
}

func (s *scanner) float() (float64, error) {
	token := s.token()
	if !isNumber(token) {
		return 0, fmt.Errorf("found %q, want a finite number", token)
	}
	x, err := strconv.ParseFloat(token, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is out of range", token)
	}
	// Readers that hold an integer as such would lose digits here.
	if math.Abs(x) >= 1<<53 && !strings.ContainsAny(token, ".eE") {
		return 0, fmt.Errorf("%s has too many digits, want it with an exponent", token)
	}
	return x, nil
}

// isNumber says whether a token is a TOML integer or float, in digits.
func isNumber(token string) bool {
	if badZero(token) {
		return false
	}
	whole := sign(token)
	rest := digits(whole)
	if len(rest) == len(whole) {
		return false
	}
	if fraction, ok := strings.CutPrefix(rest, "."); ok {
		rest = digits(fraction)
		if len(rest) == len(fraction) {
			return false
		}
	}
	if rest == "" {
		return true
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return false
	}
	exponent := sign(rest[1:])
	return exponent != "" && digits(exponent) == ""
}

// sign returns what follows a sign, digits what follows the leading digits.
func sign(token string) string {
	if token != "" && (token[0] == '+' || token[0] == '-') {
		return token[1:]
	}
	return token
}

func digits(token string) string {
	i := 0
	for i < len(token) && '0' <= token[i] && token[i] <= '9' {
		i++
	}
	return token[i:]
}

// badZero says whether a number has a zero in front, which TOML forbids.
func badZero(token string) bool {
	t := sign(token)
	return len(t) >= 2 && t[0] == '0' && '0' <= t[1] && t[1] <= '9'
}

// array reads [ ... ], also over several lines, elem reading each element.
func (s *scanner) array(elem func() error) error {
	if !s.take('[') {
		return fmt.Errorf("found %s, want an array", s.found())
	}
	for {
		if err := s.skipSpace(); err != nil {
			return err
		}
		if s.take(']') {
			return nil
		}
		if err := elem(); err != nil {
			return err
		}
		if err := s.skipSpace(); err != nil {
			return err
		}
		if s.take(']') {
			return nil
		}
		if !s.take(',') {
			return fmt.Errorf("found %s, want \",\" or \"]\"", s.found())
		}
	}
}

// inlineTable reads { key = value, ... } on one line, value reading each value.
func (s *scanner) inlineTable(value func(key string) error) error {
	if !s.take('{') {
		return fmt.Errorf("found %s, want an inline table", s.found())
	}
	s.skipBlanks()
	if s.take('}') {
		return nil
	}
	for {
		s.skipBlanks()
		key, err := s.key()
		if err != nil {
			return err
		}
		s.skipBlanks()
		if !s.take('=') {
			return fmt.Errorf("found %s after key %q, want \"=\"", s.found(), key)
		}
		s.skipBlanks()
		if err := value(key); err != nil {
			return err
		}
		s.skipBlanks()
		if s.take('}') {
			return nil
		}
		if !s.take(',') {
			return fmt.Errorf("found %s, want \",\" or \"}\"", s.found())
		}
	}
}

// skipValue goes past any value that the subset knows.
func (s *scanner) skipValue(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("values nest deeper than %d", maxDepth)
	}
	switch s.peek() {
	case '"', '\'':
		_, err := s.string()
		return err
	case '[':
		return s.array(func() error { return s.skipValue(depth + 1) })
	case '{':
		return s.inlineTable(func(string) error { return s.skipValue(depth + 1) })
	}
	token := s.token()
	if token == "" {
		return fmt.Errorf("found %s, want a value", s.found())
	}
	if i := strings.IndexFunc(token, func(r rune) bool { return r >= utf8.RuneSelf || !isBare(byte(r)) && !strings.ContainsRune("+.:", r) }); i >= 0 {
		return fmt.Errorf("found %q, want a value", token)
	}
	return nil
}
