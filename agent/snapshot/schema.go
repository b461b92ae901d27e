package snapshot

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// table is what encoder and decoder know of a struct type at one place of the
// document, read from its fields and their toml tags. The decoder also keeps
// its place in it, so each call makes its own.
type table struct {
	name     string // "source.weight", "" for the document itself
	array    bool   // [[name]], one table per element
	fields   []field
	required uint64 // bit per field: keys that may not be left out

	value reflect.Value // what is being decoded, invalid before the first header
	seen  uint64        // bit per field
}

// field is a key of a table.
type field struct {
	name      string
	path      string // with the tables above it: "source.weight.rps"
	index     int    // of the struct field
	omitempty bool
	inline    bool   // a struct written as { ... }
	table     *table // of a struct, or of the elements of a slice of structs
}

// section says that the field is written below a header of its own.
func (f *field) section() bool { return f.table != nil && !f.inline }

var timeType = reflect.TypeFor[time.Time]()

// newTable reads the schema of a struct type.
func newTable(t reflect.Type, name string, array bool) *table {
	n := &table{name: name, array: array}
	for i := range t.NumField() {
		tag, options, _ := strings.Cut(t.Field(i).Tag.Get("toml"), ",")
		path := strings.TrimPrefix(name+"."+tag, ".")
		f := field{
			name:      tag,
			path:      path,
			index:     i,
			omitempty: strings.Contains(options, "omitempty"),
			inline:    strings.Contains(options, "inline"),
		}
		switch ft := t.Field(i).Type; {
		case ft.Kind() == reflect.Struct && ft != timeType:
			f.table = newTable(ft, path, false)
		case ft.Kind() == reflect.Slice && ft.Elem().Kind() == reflect.Struct:
			f.table = newTable(ft.Elem(), path, true)
		}
		if !f.omitempty && !f.section() {
			n.required |= 1 << len(n.fields)
		}
		n.fields = append(n.fields, f)
	}
	if len(n.fields) > 64 {
		panic(fmt.Sprintf("snapshot: %s has %d fields, want <= 64", t, len(n.fields)))
	}
	return n
}

// find returns the number of a key. Keys mostly come in the order of the
// fields, so the search starts at hint.
func (n *table) find(key string, hint int) (i int, ok bool) {
	for k := range n.fields {
		i := hint + k
		if i >= len(n.fields) {
			i -= len(n.fields)
		}
		if n.fields[i].name == key {
			return i, true
		}
	}
	return 0, false
}

// String names the table as people see it in the file.
func (n *table) String() string {
	switch {
	case n.name == "":
		return "the document"
	case n.array:
		return "[[" + n.name + "]]"
	}
	return "[" + n.name + "]"
}
