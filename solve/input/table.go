package input

import (
	"fmt"
	"math"
	"strings"
)

// table reads one TOML table key by key. Each method reports what is wrong
// with a value and then returns a harmless one, so that reading goes on. A key
// that no method asked for is unknown, see done.
type table struct {
	report *report
	what   string // for messages: "engine", then `engine "a-1"`
	values map[string]any
	at     *lines
	known  []string
}

// has says whether a key is there.
func (t *table) has(key string) bool {
	_, ok := t.get(key)
	return ok
}

func (t *table) get(key string) (any, bool) {
	t.known = append(t.known, key)
	v, ok := t.values[key]
	return v, ok
}

func (t *table) line(key string) int { return t.at.key(key).line }

// need reports keys that are not there.
func (t *table) need(keys ...string) {
	for _, key := range keys {
		if !t.has(key) {
			t.report.problemf(t.at.line, "%s has no %s", t.what, key)
		}
	}
}

// done reports the keys that were not asked for.
func (t *table) done() {
	known := make(map[string]bool, len(t.known))
	for _, key := range t.known {
		known[key] = true
	}
	for _, key := range sorted(t.values) {
		if !known[key] {
			t.report.add(t.line(key), didYouMean(key, t.known), "unknown key %s", quote(key))
		}
	}
}

// bad reports that a value is not what was wanted.
func (t *table) bad(key string, value any, want string) {
	t.report.problemf(t.line(key), "%s is %s, want %s", key, show(value), want)
}

// number returns a number within bounds, def if the key is not there.
func (t *table) number(key string, b bounds, def float64) float64 {
	value, ok := t.get(key)
	if !ok {
		return def
	}
	v, ok := toNumber(value)
	if !ok {
		t.bad(key, value, b.want)
		return def
	}
	if want := b.check(v); want != "" {
		t.bad(key, value, want)
		return def
	}
	return v
}

// optional returns a number within bounds, nil if the key is not there.
func (t *table) optional(key string, b bounds) *float64 {
	if !t.has(key) {
		return nil
	}
	v := t.number(key, b, b.hi)
	return &v
}

// numbers returns a list of numbers within bounds.
func (t *table) numbers(key string, b bounds) []float64 {
	value, ok := t.get(key)
	if !ok {
		return nil
	}
	elements, ok := value.([]any)
	if !ok {
		t.bad(key, value, "a list of numbers")
		return nil
	}
	list := make([]float64, 0, len(elements))
	for i, element := range elements {
		v, ok := toNumber(element)
		want := b.want
		if ok {
			want = b.check(v)
		}
		if want != "" {
			t.report.problemf(t.at.key(key).element(i).line, "%s[%d] is %s, want %s", key, i, show(element), want)
		}
		list = append(list, v)
	}
	return list
}

// integer returns a whole number of 32 bits, 0 if the key is not there.
func (t *table) integer(key string) int {
	value, ok := t.get(key)
	if !ok {
		return 0
	}
	v, ok := value.(int64)
	if !ok || v < math.MinInt32 || v > math.MaxInt32 {
		t.bad(key, value, "a whole number of 32 bits")
		return 0
	}
	return int(v)
}

func (t *table) boolean(key string) bool {
	value, ok := t.get(key)
	v, isBool := value.(bool)
	if ok && !isBool {
		t.bad(key, value, "true or false")
	}
	return v
}

// str returns a string that is valid, "" if the key is not there or not valid.
func (t *table) str(key string, valid func(string) bool, want string) string {
	value, ok := t.get(key)
	if !ok {
		return ""
	}
	s, ok := value.(string)
	if !ok || !valid(s) {
		t.bad(key, value, want)
		return ""
	}
	return s
}

// name returns a name; a bad one is reported and returned as it is, so that
// references to it are found.
func (t *table) name(key string) string {
	value, ok := t.get(key)
	s, isString := value.(string)
	if ok && (!isString || !validName(s)) {
		t.bad(key, value, "a name: "+wantName)
	}
	return s
}

// oneOf returns one of a few words, the first if the key is not there.
func (t *table) oneOf(key string, words ...string) string {
	s := t.str(key, func(s string) bool {
		for _, word := range words {
			if s == word {
				return true
			}
		}
		return false
	}, `"`+strings.Join(words, `" or "`)+`"`)
	if s == "" {
		return words[0]
	}
	return s
}

// list returns a list of different valid strings.
func (t *table) list(key string, valid func(string) bool, want string) []string {
	value, ok := t.get(key)
	if !ok {
		return nil
	}
	elements, ok := value.([]any)
	if !ok {
		t.bad(key, value, "a list of strings")
		return nil
	}
	return t.distinct(key, elements, valid, want)
}

// oneOrList returns a list that may be written as a single string.
func (t *table) oneOrList(key string, valid func(string) bool, want string) []string {
	value, ok := t.get(key)
	if !ok {
		return nil
	}
	switch v := value.(type) {
	case string:
		return t.distinct(key, []any{v}, valid, want)
	case []any:
		return t.distinct(key, v, valid, want)
	}
	t.bad(key, value, "a string or a list of strings")
	return nil
}

func (t *table) distinct(key string, elements []any, valid func(string) bool, want string) []string {
	seen := make(map[string]bool, len(elements))
	list := make([]string, 0, len(elements))
	for i, element := range elements {
		s, ok := element.(string)
		line := t.at.key(key).element(i).line
		switch {
		case !ok || !valid(s):
			t.report.problemf(line, "%s has %s, want %s", key, show(element), want)
		case seen[s]:
			t.report.problemf(line, "%s has %s twice", key, quote(s))
		default:
			seen[s] = true
			list = append(list, s)
		}
	}
	return list
}

// sub returns the table under a key, nil if there is none.
func (t *table) sub(key string) *table {
	value, ok := t.get(key)
	if !ok {
		return nil
	}
	values, ok := value.(map[string]any)
	if !ok {
		t.bad(key, value, "a table")
		return nil
	}
	return &table{report: t.report, what: key, values: values, at: t.at.key(key)}
}

// subs returns the tables of an array of tables.
func (t *table) subs(key string) []*table {
	value, ok := t.get(key)
	if !ok {
		return nil
	}
	var tables []*table
	add := func(i int, values map[string]any) {
		tables = append(tables, &table{report: t.report, what: key, values: values, at: t.at.key(key).element(i)})
	}
	switch v := value.(type) {
	case []map[string]any:
		for i, values := range v {
			add(i, values)
		}
		return tables
	case []any: // written inline
		for i, element := range v {
			values, ok := element.(map[string]any)
			if !ok {
				t.report.problemf(t.at.key(key).element(i).line, "%s[%d] is %s, want a table", key, i, show(element))
				continue
			}
			add(i, values)
		}
		return tables
	case map[string]any:
		t.report.add(t.line(key), func() string { return fmt.Sprintf("write [[%s]] for each", key) },
			"%s is one table, want a list of tables", key)
		return nil
	}
	t.bad(key, value, "a list of tables")
	return nil
}
