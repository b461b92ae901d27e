package config

import (
	"strconv"
	"strings"
)

// lineIndex returns the line, counted from 1, of every key of a TOML text that
// is known to be valid: "timeouts.connect", "listener[1].address", and of every
// table. The TOML library keeps these positions to itself.
func lineIndex(text string) map[string]int {
	lines := map[string]int{}
	tables := map[string]int{} // elements seen of each array of tables
	prefix := ""
	s := &valueScanner{}
	for i, line := range strings.Split(text, "\n") {
		if s.open() {
			s.scan(line)
			continue
		}
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case strings.HasPrefix(line, "[["):
			name := bareKey(header(line[2:]))
			prefix = name + "[" + strconv.Itoa(tables[name]) + "]."
			tables[name]++
			lines[strings.TrimSuffix(prefix, ".")] = i + 1
		case line[0] == '[':
			name := bareKey(header(line[1:]))
			prefix = name + "."
			lines[name] = i + 1
		default:
			key, value, _ := strings.Cut(line, "=")
			lines[prefix+bareKey(key)] = i + 1
			s.scan(value)
		}
	}
	return lines
}

func header(s string) string {
	name, _, _ := strings.Cut(s, "]")
	return name
}

// bareKey drops the quotes and blanks that TOML allows around the parts of a
// dotted key.
func bareKey(key string) string {
	parts := strings.Split(key, ".")
	for i, p := range parts {
		parts[i] = strings.Trim(strings.TrimSpace(p), `"'`)
	}
	return strings.Join(parts, ".")
}

// valueScanner follows a value over lines: where it is open, the next line is
// part of the value and holds no key.
type valueScanner struct {
	depth int    // of brackets
	quote string // the delimiter of the open multi-line string
}

func (s *valueScanner) open() bool { return s.depth > 0 || s.quote != "" }

func (s *valueScanner) scan(line string) {
	for i := 0; i < len(line); {
		rest := line[i:]
		switch {
		case s.quote != "":
			if s.quote[0] == '"' && rest[0] == '\\' {
				i++ // and the escaped character below
			} else if strings.HasPrefix(rest, s.quote) {
				i += len(s.quote)
				s.quote = ""
				continue
			}
			i++
		case strings.HasPrefix(rest, `"""`), strings.HasPrefix(rest, `'''`):
			s.quote = rest[:3]
			i += 3
		case rest[0] == '"' || rest[0] == '\'':
			s.quote = rest[:1]
			i++
		case rest[0] == '#':
			i = len(line)
		default:
			switch rest[0] {
			case '[', '{':
				s.depth++
			case ']', '}':
				s.depth--
			}
			i++
		}
	}
	if len(s.quote) == 1 {
		s.quote = "" // one-line strings end with their line
	}
}
