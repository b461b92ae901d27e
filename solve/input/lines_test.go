package input

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

func TestIndexLines(t *testing.T) {
	const document = `# comment [not.a.table]
title = "x = 1 # [no]" # [no]
multi = """
[no]
a = \"""
"""""
after = 3
literal = '''
'' [no] '''
list = [ # comment, ]
  1, 2,
  # comment
  [3,
   4], "]",
]
when = 1979-05-27 07:32:00 # a blank in a value
dotted.a."b.c" . 'd' = 1
point = { x = 1, y = { z = [1,
  2] } }

[a.b.c]
k = 1
[a] # after a table inside it
k = 2
"quo\u0074ed" = 3
[[array]]
[array.sub]
k = 4
[[array]]
k = 5
[array.sub]
k = 6
[[array.deep]]
k = 7
[[array.deep]]
k = 8
`
	root := indexLines(document)
	for _, test := range []struct {
		path string // keys and indices by slashes
		want int
	}{
		{"title", 2}, {"multi", 3}, {"after", 7}, {"literal", 8}, {"list", 10},
		{"list/0", 11}, {"list/1", 11}, {"list/2", 13}, {"list/2/0", 13}, {"list/2/1", 14}, {"list/3", 14},
		{"when", 16}, {"dotted/a/b.c/d", 17}, {"point", 18}, {"point/y/z", 18}, {"point/y/z/0", 18}, {"point/y/z/1", 19},
		{"a/b", 21}, {"a/b/c", 21}, {"a/b/c/k", 22}, {"a", 23}, {"a/k", 24}, {"a/quoted", 25},
		{"array", 26}, {"array/0", 26}, {"array/0/sub/k", 28}, {"array/1", 29}, {"array/1/k", 30}, {"array/1/sub", 31},
		{"array/1/sub/k", 32}, {"array/1/deep/0/k", 34}, {"array/1/deep/1", 35}, {"array/1/deep/1/k", 36},
		{"a/nothing", 23}, {"array/7", 26}, // what is not there is where its table is
	} {
		at := root
		for _, step := range strings.Split(test.path, "/") {
			var i int
			if _, err := fmt.Sscanf(step, "%d", &i); err == nil {
				at = at.element(i)
			} else {
				at = at.key(step)
			}
		}
		if at.line != test.want {
			t.Errorf("%s is on line %d, want %d", test.path, at.line, test.want)
		}
	}
	if err := mirrors(root, decode(t, document)); err != nil {
		t.Error(err)
	}
}

func decode(t *testing.T, document string) map[string]any {
	t.Helper()
	var values map[string]any
	if _, err := toml.Decode(document, &values); err != nil {
		t.Fatalf("%v in:\n%s", err, document)
	}
	return values
}

// mirrors checks that an index has exactly the shape of the decoded value.
func mirrors(at *lines, value any) error {
	elements := func(n int, element func(int) any) error {
		if len(at.elements) != n {
			return fmt.Errorf("line %d: array of %d in the index, %d decoded", at.line, len(at.elements), n)
		}
		for i := range n {
			if err := mirrors(at.elements[i], element(i)); err != nil {
				return err
			}
		}
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		if len(at.keys) != len(v) {
			return fmt.Errorf("line %d: table with %q in the index, %q decoded", at.line, sorted(at.keys), sorted(v))
		}
		for key, inner := range v {
			next := at.keys[key]
			if next == nil {
				return fmt.Errorf("line %d: no key %q in the index", at.line, key)
			}
			if err := mirrors(next, inner); err != nil {
				return err
			}
		}
	case []map[string]any:
		return elements(len(v), func(i int) any { return v[i] })
	case []any:
		return elements(len(v), func(i int) any { return v[i] })
	default:
		if at.keys != nil || at.elements != nil {
			return fmt.Errorf("line %d: %v is no table and no array, the index has one", at.line, value)
		}
	}
	return nil
}

// writer writes random TOML and notes the line of everything it writes: every
// scalar is its own line number, every table holds one.
type writer struct {
	rnd  *rand.Rand
	text strings.Builder
	line int
	next int // for names that differ
}

func (w *writer) print(s string) {
	w.text.WriteString(s)
	w.line += strings.Count(s, "\n")
}

// pause writes what may stand between two tokens; newline says whether a line
// may end there.
func (w *writer) pause(newline bool) {
	for range w.rnd.IntN(3) {
		choices := []string{" ", "\t", ""}
		if newline {
			choices = append(choices, "\n", "\r\n", "# [x] = \"' {\n")
		}
		w.print(choices[w.rnd.IntN(len(choices))])
	}
}

func (w *writer) key() {
	w.next++
	name := fmt.Sprintf("k%d", w.next)
	w.print([]string{name, `"` + name + `"`, `'` + name + `'`, `"\u006b` + name[1:] + `"`, `"` + name + ` # =[]"`}[w.rnd.IntN(5)])
	for w.rnd.IntN(4) == 0 {
		w.pause(false)
		w.print(".")
		w.pause(false)
		w.next++
		w.print(fmt.Sprintf("'%d.'", w.next))
	}
}

func (w *writer) pair(depth int) {
	w.key()
	w.pause(false)
	w.print("=")
	w.pause(false)
	w.value(depth)
}

// value writes a value. A scalar is the number of the line it begins on, in
// some spelling, or a string that begins with it.
func (w *writer) value(depth int) {
	line := w.line
	kind := w.rnd.IntN(9)
	if depth == 0 {
		kind = w.rnd.IntN(6)
	}
	switch kind {
	case 0, 1:
		w.print(fmt.Sprint(line))
	case 2:
		w.print(fmt.Sprintf(`"%d ] } # \" \\"`, line))
	case 3:
		w.print(fmt.Sprintf(`'%d ] } # \'`, line))
	case 4:
		w.print(fmt.Sprintf("\"\"\"%d\n]\n\\\"\"\"\\\\%s\"\"\"", line, strings.Repeat(`"`, w.rnd.IntN(3))))
	case 5:
		w.print(fmt.Sprintf("'''%d\n\\%s'''", line, strings.Repeat(`'`, w.rnd.IntN(3))))
	case 6, 7:
		w.print("[")
		w.pause(true)
		for n := w.rnd.IntN(4); n > 0; n-- {
			w.value(depth - 1)
			w.pause(true)
			if n > 1 || w.rnd.IntN(2) == 0 {
				w.print(",")
			}
			w.pause(true)
		}
		w.print("]")
	default:
		w.print("{")
		w.pause(true)
		for n := w.rnd.IntN(4); n > 0; n-- {
			w.pair(depth - 1)
			w.pause(true)
			if n > 1 {
				w.print(",")
			}
			w.pause(true)
		}
		w.print("}")
	}
}

// document writes tables and arrays of tables, each with its line under "at".
func (w *writer) document() string {
	w.line = 1
	section := func() {
		for range w.rnd.IntN(4) {
			w.pair(3)
			w.pause(false)
			w.print("\n")
			w.pause(true)
		}
	}
	section()
	w.print("\n")
	for range w.rnd.IntN(5) {
		w.next++
		name := fmt.Sprintf("t%d", w.next)
		if w.rnd.IntN(2) == 0 {
			w.print(fmt.Sprintf("[ %s . \"a.b\" ] # ]\nat = %d\n", name, w.line))
			section()
			w.print(fmt.Sprintf("\n[%s]\nat = %d\n", name, w.line+1))
			section()
		} else {
			for range 1 + w.rnd.IntN(3) {
				w.print(fmt.Sprintf("\n[[%s]]\nat = %d\n", name, w.line+1))
				section()
				w.print(fmt.Sprintf("\n[%s.inner]\nat = %d\n", name, w.line+1))
				section()
				w.print(fmt.Sprintf("\n[[%s.list]]\nat = %d\n", name, w.line+1))
				section()
			}
		}
		w.print("\n")
	}
	return w.text.String()
}

// sameLines checks an index against the line numbers that the values are.
func sameLines(at *lines, value any) error {
	var line int
	switch v := value.(type) {
	case int64:
		line = int(v)
	case string:
		if _, err := fmt.Sscanf(v, "%d", &line); err != nil {
			return err
		}
	case []any:
		for i := range v {
			if err := sameLines(at.element(i), v[i]); err != nil {
				return err
			}
		}
		return nil
	case []map[string]any:
		for i := range v {
			if err := sameLines(at.element(i), v[i]); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		for key, inner := range v {
			if key == "at" {
				if at.line != int(inner.(int64)) {
					return fmt.Errorf("a table is on line %d, want %d", at.line, inner)
				}
				continue
			}
			if err := sameLines(at.key(key), inner); err != nil {
				return err
			}
		}
		return nil
	}
	if at.line != line {
		return fmt.Errorf("value %v is on line %d", value, at.line)
	}
	return nil
}

func TestIndexLinesOfRandomDocuments(t *testing.T) {
	for seed := range uint64(1000) {
		w := writer{rnd: rand.New(rand.NewPCG(seed, 1))}
		document := w.document()
		values := decode(t, document)
		root := indexLines(document)
		if err := mirrors(root, values); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, document)
		}
		if err := sameLines(root, values); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, document)
		}
	}
}
