package snapshot

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxProblems is how many problems of one file are told.
const maxProblems = 20

// SyntaxError is a problem of the text of a body.
type SyntaxError struct {
	Line int
	Msg  string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Msg) }

// FormatError is returned for a body of a format that this code does not read.
type FormatError struct{ Got int }

func (e *FormatError) Error() string {
	return fmt.Sprintf("format is %d, want %s", e.Got, formats())
}

func formats() string {
	if Format == 1 {
		return "1"
	}
	return fmt.Sprintf("%d or %d", Format-1, Format)
}

// Decode reads a body. It takes the subset of TOML 1.0 that Encode writes and
// a little more: one key per line, basic and literal strings on one line,
// decimal numbers, times in UTC, arrays (also over several lines),
// inline tables for maps and structs, comments; it refuses dotted keys,
// multi-line strings, carriage returns. What it reads, any TOML reader reads
// the same.
//
// Unknown, duplicate and missing keys are errors, but all below a table [x] is
// ignored: room for what later versions add. The error joins a *SyntaxError for
// each problem, at most 20, or is a *FormatError. Decode does not check the
// meaning, see Check.
func Decode(body []byte) (*Snapshot, error) { return decode(body, func() {}) }

// decode is Decode with pauses.
func decode(body []byte, pause func()) (*Snapshot, error) {
	if len(body) > MaxBytes {
		return nil, fmt.Errorf("body has %d bytes, want at most %d", len(body), MaxBytes)
	}
	if !utf8.Valid(body) {
		return nil, errors.New("body is not UTF-8")
	}
	pause()
	text := string(body) // the strings of the snapshot are parts of this copy
	pause()
	s := &Snapshot{}
	root := newTable(reflect.TypeFor[Snapshot](), "", false)
	root.open(reflect.ValueOf(s).Elem())
	d := &decoder{scanner: scanner{text: text, line: 1}, root: root, table: root, tableLine: 1, pause: pause}
	d.document()
	known := max(1, Format-1) <= s.Format && s.Format <= Format
	if !known && s.Format != 0 {
		return nil, &FormatError{s.Format} // other problems only follow from it
	}
	if err := errors.Join(d.errs...); err != nil {
		return nil, err
	}
	if !known {
		return nil, &FormatError{s.Format}
	}
	return s, nil
}

type decoder struct {
	scanner
	root      *table
	table     *table // where keys go; nil below [x] or a header that was refused
	tableLine int    // of its header
	next      int    // field that the next key is likely to be
	errs      []error
	pause     func()
}

// pauseLines is how many lines are read between two pauses, some 20 us.
const pauseLines = 64

// document reads line after line; a bad line is told and left out.
func (d *decoder) document() {
	for !d.atEnd() && len(d.errs) < maxProblems {
		line := d.line
		if line%pauseLines == 0 {
			d.pause()
		}
		if err := d.statement(); err != nil {
			d.errs = append(d.errs, &SyntaxError{line, err.Error()})
			d.skipLine()
		}
	}
	if len(d.errs) < maxProblems {
		d.leaveTable()
	}
}

// statement reads a header, a key with its value, or a blank line, to the end
// of the line.
func (d *decoder) statement() error {
	d.skipBlanks()
	var err error
	switch c := d.peek(); {
	case d.atEnd() || c == '\n' || c == '#':
	case c == '[':
		err = d.header()
	default:
		err = d.keyValue()
	}
	if err != nil {
		return err
	}
	return d.endOfLine()
}

func (d *decoder) keyValue() error {
	key, err := d.key()
	if err != nil {
		return err
	}
	d.skipBlanks()
	if !d.take('=') {
		return fmt.Errorf("found %s after key %q, want \"=\"", d.found(), key)
	}
	d.skipBlanks()
	if d.table == nil {
		return d.skipValue(0)
	}
	return d.assign(d.table, key, &d.next)
}

// assign reads the value of a key of the table; next is where to look for the
// key first.
func (d *decoder) assign(n *table, key string, next *int) error {
	i, ok := n.find(key, *next)
	if !ok {
		return fmt.Errorf("unknown key %q in %s", key, n)
	}
	if n.seen>>i&1 != 0 {
		return fmt.Errorf("duplicate key %q in %s", key, n)
	}
	n.seen |= 1 << i
	*next = i + 1
	f := &n.fields[i]
	if err := d.value(f, n.value.Field(f.index)); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// header reads [a.b] or [[a.b]] and goes to that table.
func (d *decoder) header() error {
	d.leaveTable()
	d.table, d.tableLine, d.next = nil, d.line, 0
	d.take('[')
	array := d.take('[')
	n := d.root
	for last := false; !last; {
		d.skipBlanks()
		key, err := d.key()
		if err != nil {
			return err
		}
		d.skipBlanks()
		last = !d.take('.')
		switch {
		case n == nil: // below [x]
		case n == d.root && key == "x":
			n = nil
		default:
			if n, err = n.descend(key, array, last); err != nil {
				return err
			}
		}
	}
	if !d.take(']') || array && !d.take(']') {
		return fmt.Errorf("found %s, want the end of the header", d.found())
	}
	d.table = n
	return nil
}

// descend goes from a table to one below it, which it opens if it is the last
// of its header.
func (n *table) descend(key string, array, last bool) (*table, error) {
	i, ok := n.find(key, 0)
	if !ok || n.fields[i].table == nil {
		return nil, fmt.Errorf("unknown table %q in %s", key, n)
	}
	f := &n.fields[i]
	switch {
	case !last && !f.table.value.IsValid():
		return nil, fmt.Errorf("a table below %s before %s itself", f.table, f.table)
	case !last:
		return f.table, nil
	case array != f.table.array:
		return nil, fmt.Errorf("wrong brackets, want %s", f.table)
	case n.seen>>i&1 != 0 && !array:
		return nil, fmt.Errorf("duplicate table %s", f.table)
	}
	n.seen |= 1 << i
	v := n.value.Field(f.index)
	if array {
		v.Grow(1)
		v.SetLen(v.Len() + 1)
		v = v.Index(v.Len() - 1)
	}
	f.table.open(v)
	return f.table, nil
}

// open starts a new instance of a table.
func (n *table) open(v reflect.Value) {
	n.value, n.seen = v, 0
	for i := range n.fields {
		if t := n.fields[i].table; t != nil {
			t.value = reflect.Value{}
		}
	}
}

// leaveTable tells the keys that the present table lacks.
func (d *decoder) leaveTable() {
	if d.table == nil {
		return
	}
	if err := d.table.complete(); err != nil {
		d.errs = append(d.errs, &SyntaxError{d.tableLine, err.Error()})
	}
}

func (n *table) complete() error {
	missing := n.required &^ n.seen
	if missing == 0 {
		return nil
	}
	var keys []string
	for i := range n.fields {
		if missing>>i&1 != 0 {
			keys = append(keys, strconv.Quote(n.fields[i].name))
		}
	}
	return fmt.Errorf("missing in %s: %s", n, strings.Join(keys, ", "))
}

// value reads a value of a field: its own, or one element of it.
func (d *decoder) value(f *field, v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		s, err := d.string()
		v.SetString(s)
		return err
	case reflect.Float64:
		x, err := d.float()
		v.SetFloat(x)
		return err
	case reflect.Int, reflect.Int64:
		x, err := d.integer()
		v.SetInt(x)
		return err
	case reflect.Uint32:
		x, err := d.integer()
		if err == nil && x != int64(uint32(x)) {
			err = fmt.Errorf("%d is not in [0, 2^32)", x)
		}
		v.SetUint(uint64(uint32(x)))
		return err
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return d.value(f, v.Elem())
	case reflect.Bool:
		x, err := d.bool()
		v.SetBool(x)
		return err
	case reflect.Slice:
		if f.table != nil {
			return fmt.Errorf("want tables %s, not a value", f.table)
		}
		return d.array(func() error {
			v.Grow(1)
			v.SetLen(v.Len() + 1)
			return d.value(f, v.Index(v.Len()-1))
		})
	case reflect.Map:
		return d.mapping(f, v)
	case reflect.Struct:
		if v.Type() == timeType {
			t, err := d.time()
			v.Set(reflect.ValueOf(t))
			return err
		}
		return d.inline(f.table, v)
	}
	panic("snapshot: no text form for " + v.Type().String())
}

func (d *decoder) mapping(f *field, v reflect.Value) error {
	v.Set(reflect.MakeMap(v.Type()))
	return d.inlineTable(func(key string) error {
		k := reflect.ValueOf(key)
		if v.MapIndex(k).IsValid() {
			return fmt.Errorf("duplicate key %q", key)
		}
		elem := reflect.New(v.Type().Elem()).Elem()
		if err := d.value(f, elem); err != nil {
			return err
		}
		v.SetMapIndex(k, elem)
		return nil
	})
}

func (d *decoder) inline(n *table, v reflect.Value) error {
	n.open(v)
	next := 0
	err := d.inlineTable(func(key string) error { return d.assign(n, key, &next) })
	// No header may open or go below a table that was closed inline.
	n.value = reflect.Value{}
	if err != nil {
		return err
	}
	return n.complete()
}

// time reads a time in UTC. time.Parse alone would take an hour of one digit and
// a comma before the fraction, which TOML does not know.
func (d *decoder) time() (time.Time, error) {
	token := d.token()
	t, err := time.Parse(time.RFC3339Nano, token)
	if err != nil || token[13] != ':' || strings.Contains(token, ",") || !strings.HasSuffix(token, "Z") {
		return t, fmt.Errorf("found %q, want a time like 2006-01-02T15:04:05Z", token)
	}
	return t, nil
}
