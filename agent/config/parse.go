package config

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/BurntSushi/toml"
)

// problem is something wrong at a line; line 0 is the file as a whole.
type problem struct {
	line int
	text string
}

// parser collects every problem of one file while it fills the config.
type parser struct {
	name     string
	lines    map[string]int
	config   *Config
	problems []problem
}

func (p *parser) fail(line int, format string, args ...any) {
	p.problems = append(p.problems, problem{line, fmt.Sprintf(format, args...)})
}

func (p *parser) sorted() []error {
	sort.SliceStable(p.problems, func(i, j int) bool { return p.problems[i].line < p.problems[j].line })
	errs := make([]error, len(p.problems))
	for i, q := range p.problems {
		if q.line == 0 {
			errs[i] = fmt.Errorf("%s: %s", p.name, q.text)
		} else {
			errs[i] = fmt.Errorf("%s:%d: %s", p.name, q.line, q.text)
		}
	}
	return errs
}

func (p *parser) parse(data []byte) {
	var tree map[string]any
	if err := toml.Unmarshal(data, &tree); err != nil {
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			p.fail(syntax.Position.Line, "%s", syntax.Message)
		} else {
			p.fail(0, "%v", err)
		}
		return
	}
	p.lines = lineIndex(string(data))
	p.config = &Config{}
	global, perListener := map[string]Setting{}, map[string]Setting{}
	for _, s := range Settings() {
		if _, ok := strings.CutPrefix(s.Key, "listener."); ok {
			perListener[s.Key] = s
		} else {
			global[s.Key] = s
		}
	}
	p.listeners(tree, perListener)
	delete(tree, "listener")
	values := map[string]any{}
	p.flatten("", tree, global, values)
	p.fill(values, "", "", global, nil)
	p.checkMeaning()
}

// listeners fills one Listener per [[listener]].
func (p *parser) listeners(tree map[string]any, settings map[string]Setting) {
	tables, ok := tree["listener"].([]map[string]any)
	if !ok || len(tables) == 0 {
		p.fail(p.lines["listener"], "listener is missing, want at least one [[listener]]")
		return
	}
	p.config.Listeners = make([]Listener, len(tables))
	for i, table := range tables {
		prefix := fmt.Sprintf("listener[%d].", i)
		values := map[string]any{}
		for key, v := range table {
			if _, known := settings["listener."+key]; !known {
				p.unknown(p.lines[prefix+key], "listener."+key, settings)
				continue
			}
			values[prefix+key] = v
		}
		p.fill(values, "listener.", prefix, settings, &p.config.Listeners[i])
	}
}

// flatten turns nested tables into dotted keys and reports unknown ones.
func (p *parser) flatten(prefix string, tree map[string]any, settings map[string]Setting, values map[string]any) {
	for key, v := range tree {
		full := prefix + key
		if sub, ok := v.(map[string]any); ok && isTable(full, settings) {
			p.flatten(full+".", sub, settings, values)
			continue
		}
		if _, known := settings[full]; !known {
			p.unknown(p.line(full), full, settings)
			continue
		}
		values[full] = v
	}
}

func isTable(key string, settings map[string]Setting) bool {
	for k := range settings {
		if strings.HasPrefix(k, key+".") {
			return true
		}
	}
	return false
}

// line returns the line of a key, or of the nearest table or inline value that
// holds it.
func (p *parser) line(key string) int {
	for {
		if n, ok := p.lines[key]; ok {
			return n
		}
		i := strings.LastIndexByte(key, '.')
		if i < 0 {
			return 0
		}
		key = key[:i]
	}
}

// fill stores values and defaults; from is the prefix of the keys in settings,
// to that of the keys in values.
func (p *parser) fill(values map[string]any, from, to string, settings map[string]Setting, l *Listener) {
	for key, s := range settings {
		full := to + strings.TrimPrefix(key, from)
		dst := s.field(p.config, l)
		v, given := values[full]
		switch {
		case given && !s.set(dst, v):
			p.fail(p.line(full), "%s is %s, want %s", full, show(v), s.want())
		case given && s.Default == required && isEmpty(v):
			p.fail(p.line(full), "%s is empty, want %s", full, s.want())
		case !given && s.Default == required:
			p.fail(p.line(strings.TrimSuffix(to, ".")), "%s is missing, want %s", full, s.want())
		case !given && s.Default != "":
			s.set(dst, s.defaultValue())
		}
	}
}

// defaultValue is the default as TOML would hand it over.
func (s *Setting) defaultValue() any {
	switch s.kind() {
	case "true or false":
		return s.Default == "true"
	case "integer":
		return int64(mustFloat(s.Default))
	case "number":
		return mustFloat(s.Default)
	default:
		return s.Default
	}
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	}
	return false
}

// show prints a value for a message, cut to a readable length.
func show(v any) string {
	s := fmt.Sprintf("%v", v)
	if text, ok := v.(string); ok {
		s = fmt.Sprintf("%q", text)
	}
	if len(s) > 80 {
		s = s[:80] + "..."
	}
	return s
}

func (p *parser) unknown(line int, key string, settings map[string]Setting) {
	text := fmt.Sprintf("unknown key %q", key)
	names := make([]string, 0, len(settings))
	for k := range settings {
		names = append(names, k)
	}
	slices.Sort(names)
	if near := nearest(key, names); near != "" {
		text += fmt.Sprintf(" (did you mean %q?)", near)
	}
	p.fail(line, "%s", text)
}

// nearest returns the name within two edits of key, or "".
func nearest(key string, names []string) string {
	best, bestDistance := "", 3
	for _, n := range names {
		if d := editDistance(key, n); d < bestDistance {
			best, bestDistance = n, d
		}
	}
	return best
}

// editDistance is Levenshtein's, by the two-row table.
func editDistance(a, b string) int {
	if len(a) > 64 { // no setting is that long
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			next := min(row[j], row[j-1]) + 1
			if a[i-1] == b[j-1] {
				next = min(next, diagonal)
			} else {
				next = min(next, diagonal+1)
			}
			diagonal, row[j] = row[j], next
		}
	}
	return row[len(b)]
}
