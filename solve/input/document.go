package input

import (
	"bytes"
	"fmt"
	"time"
)

// Table reads a TOML table of a file that is no part of a fleet, such as the
// scenario of a simulation, as strictly as those that are: what is wrong is
// collected, by file and line, and told by Err of the root.
type Table struct{ t *table }

// ParseTable returns the root table of a TOML file, by its base name; the error
// is a *Problems.
func ParseTable(name string, text []byte) (*Table, error) {
	f := &file{path: name, text: bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))}
	f.file = name
	root := parseTOML(f)
	if root == nil {
		_, err := join([]*report{&f.report})
		return nil, err
	}
	return &Table{root}, nil
}

// Err returns everything that is wrong with the file, a *Problems, or nil.
func (t *Table) Err() error {
	_, err := join([]*report{t.t.report})
	return err
}

// Done reports the keys that nobody asked for.
func (t *Table) Done() { t.t.done() }

// Need reports keys that are not there.
func (t *Table) Need(keys ...string) { t.t.need(keys...) }

// Has says whether a key is there.
func (t *Table) Has(key string) bool { return t.t.has(key) }

// Problem reports what is wrong with a key.
func (t *Table) Problem(key, format string, args ...any) {
	t.t.report.problemf(t.t.line(key), "%s", key+" "+fmt.Sprintf(format, args...))
}

// Number returns a number from low to high, the default if the key is not there.
func (t *Table) Number(key string, low, high, byDefault float64) float64 {
	v := t.t.number(key, bounds{lo: min(low, 0), want: between(low, high)}, byDefault)
	if v < low || v > high {
		t.Problem(key, "is %s, want %s", number(v), between(low, high))
		return byDefault
	}
	return v
}

// between says what is wanted.
func between(low, high float64) string { return number(low) + " to " + number(high) }

// Numbers returns a list of numbers from low to high, the default if the key is
// not there.
func (t *Table) Numbers(key string, low, high float64, byDefault []float64) []float64 {
	if !t.t.has(key) {
		return byDefault
	}
	list := t.t.numbers(key, bounds{lo: min(low, 0), want: between(low, high)})
	for i, v := range list {
		if v < low || v > high {
			t.Problem(key, "has %s at %d, want %s", number(v), i+1, between(low, high))
		}
	}
	if len(list) == 0 {
		t.Problem(key, "is empty, want a number at least")
		return byDefault
	}
	return list
}

// Duration returns a time such as "90s" or "1h30m", the default if the key is
// not there.
func (t *Table) Duration(key string, low, high, byDefault time.Duration) time.Duration {
	value, ok := t.t.get(key)
	if !ok {
		return byDefault
	}
	text, _ := value.(string)
	d, err := time.ParseDuration(text)
	if err != nil || d < low || d > high {
		t.t.bad(key, value, fmt.Sprintf("a time such as \"90s\", %v to %v", low, high))
		return byDefault
	}
	return d
}

// Name returns a name, as those of clusters and engines are.
func (t *Table) Name(key string) string { return t.t.name(key) }

// Text returns a string that is not empty, "" if the key is not there.
func (t *Table) Text(key string) string {
	return t.t.str(key, func(s string) bool { return validText(s) && s != "" }, "a text")
}

// OneOf returns one of a few words, the first if the key is not there.
func (t *Table) OneOf(key string, words ...string) string { return t.t.oneOf(key, words...) }

// Words returns a list of some of these words, the default if the key is not
// there.
func (t *Table) Words(key string, words, byDefault []string) []string {
	if !t.t.has(key) {
		return byDefault
	}
	known := make(map[string]bool, len(words))
	for _, w := range words {
		known[w] = true
	}
	return t.t.list(key, func(s string) bool { return known[s] }, fmt.Sprintf("some of %q", words))
}

// Sub returns the table under a key, an empty one if there is none.
func (t *Table) Sub(key string) *Table {
	if sub := t.t.sub(key); sub != nil {
		return &Table{sub}
	}
	return &Table{&table{report: t.t.report, what: key, at: t.t.at}}
}

// Subs returns the tables of an array of tables.
func (t *Table) Subs(key string) []*Table {
	var out []*Table
	for _, sub := range t.t.subs(key) {
		out = append(out, &Table{sub})
	}
	return out
}
