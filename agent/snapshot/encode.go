package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxBytes is the largest file that is written, and read unless a Rules says
// otherwise: some 150,000 weights.
const MaxBytes = 64 << 20

const head = `# irb routing policy. Change nothing by hand: the "# minisign:" lines at the end
# sign every byte above them. Check it: irbctl verify FILE --pub KEY
# What it does and why: irbctl explain FILE
`

// Encode writes the body of a snapshot. The same snapshot gives the same
// bytes, and so does the decoded body: keys in the order of the fields, maps
// in order of key, numbers in the shortest form that reads back as the same,
// strings on one line with everything that does not print escaped. It does not
// check the meaning, see Check.
//
// A NaN, an infinity, text that is not UTF-8 and a body above MaxBytes are
// errors.
func Encode(s *Snapshot) ([]byte, error) {
	e := &encoder{}
	e.out = append(e.out, head...)
	e.table(newTable(reflect.TypeFor[Snapshot](), "", false), reflect.ValueOf(s).Elem(), "")
	if len(e.out) > MaxBytes {
		e.errs = append(e.errs, fmt.Errorf("body has %d bytes, want at most %d", len(e.out), MaxBytes))
	}
	if err := errors.Join(e.errs...); err != nil {
		return nil, err
	}
	return e.out, nil
}

type encoder struct {
	out  []byte
	errs []error
}

// table writes the plain keys of a table and then the tables below it.
func (e *encoder) table(n *table, v reflect.Value, indent string) {
	for i := range n.fields {
		f := &n.fields[i]
		fv := v.Field(f.index)
		if f.section() || f.omitempty && empty(fv) {
			continue
		}
		e.out = append(e.out, indent...)
		e.key(f.name)
		e.out = append(e.out, " = "...)
		e.value(f, fv)
		e.out = append(e.out, '\n')
	}
	for i := range n.fields {
		f := &n.fields[i]
		if !f.section() {
			continue
		}
		// Two blanks for each level below the first.
		below := strings.Repeat("  ", strings.Count(f.table.name, "."))
		fv := v.Field(f.index)
		if !f.table.array {
			e.section(f.table, fv, below)
			continue
		}
		for j := range fv.Len() {
			e.section(f.table, fv.Index(j), below)
		}
	}
}

func (e *encoder) section(n *table, v reflect.Value, indent string) {
	e.out = append(e.out, '\n')
	e.out = append(e.out, indent...)
	e.out = append(e.out, n.String()...)
	e.out = append(e.out, '\n')
	e.table(n, v, indent)
}

// empty says whether omitempty leaves a value out.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}

// value writes a value of a field: its own, or one element of it.
func (e *encoder) value(f *field, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		e.string(v.String(), f.path)
	case reflect.Float64:
		e.float(v.Float(), f.path)
	case reflect.Int, reflect.Int64:
		e.out = strconv.AppendInt(e.out, v.Int(), 10)
	case reflect.Uint32:
		e.out = strconv.AppendUint(e.out, v.Uint(), 10)
	case reflect.Pointer: // of a number that may be 0; nil is left out
		e.value(f, v.Elem())
	case reflect.Bool:
		e.out = strconv.AppendBool(e.out, v.Bool())
	case reflect.Slice:
		e.out = append(e.out, '[')
		for i := range v.Len() {
			if i > 0 {
				e.out = append(e.out, ", "...)
			}
			e.value(f, v.Index(i))
		}
		e.out = append(e.out, ']')
	case reflect.Map:
		e.mapping(f, v)
	case reflect.Struct:
		if t, ok := v.Interface().(time.Time); ok {
			e.time(t, f.path)
			return
		}
		e.inline(f.table, v)
	default:
		panic("snapshot: no text form for " + v.Type().String())
	}
}

func (e *encoder) mapping(f *field, v reflect.Value) {
	keys := make([]string, 0, v.Len())
	for _, k := range v.MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	e.out = append(e.out, '{')
	for i, k := range keys {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		e.out = append(e.out, ' ')
		if bareKey(k) {
			e.key(k)
		} else {
			e.string(k, f.path)
		}
		e.out = append(e.out, " = "...)
		e.value(f, v.MapIndex(reflect.ValueOf(k)))
	}
	e.out = append(e.out, " }"...)
}

func (e *encoder) inline(n *table, v reflect.Value) {
	separator := "{ "
	for i := range n.fields {
		f := &n.fields[i]
		fv := v.Field(f.index)
		if f.omitempty && empty(fv) {
			continue
		}
		e.out = append(e.out, separator...)
		e.key(f.name)
		e.out = append(e.out, " = "...)
		e.value(f, fv)
		separator = ", "
	}
	e.out = append(e.out, " }"...)
}

func (e *encoder) key(k string) { e.out = append(e.out, k...) }

func bareKey(k string) bool {
	for i := range len(k) {
		if !isBare(k[i]) {
			return false
		}
	}
	return k != ""
}

func isBare(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// float writes the shortest decimal that reads back as x, with a point or an
// exponent, as TOML wants it of a float.
func (e *encoder) float(x float64, path string) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		e.errorf("%s is %v, want a finite number", path, x)
		return
	}
	if a := math.Abs(x); a != 0 && (a < 1e-6 || a >= 1e15) {
		e.out = strconv.AppendFloat(e.out, x, 'e', -1, 64)
		return
	}
	from := len(e.out)
	e.out = strconv.AppendFloat(e.out, x, 'f', -1, 64)
	if bytes.IndexByte(e.out[from:], '.') < 0 {
		e.out = append(e.out, ".0"...)
	}
}

func (e *encoder) time(t time.Time, path string) {
	t = t.UTC()
	if t.Year() < 0 || t.Year() > 9999 {
		e.errorf("%s is in the year %d, want 0 to 9999", path, t.Year())
		return
	}
	e.out = t.AppendFormat(e.out, time.RFC3339Nano)
}

// string writes a basic string. Because all that does not print is escaped, a
// body has no line that its fields could forge (a signature line, say), and no
// text that shows otherwise than it reads.
func (e *encoder) string(s, path string) {
	if !utf8.ValidString(s) {
		e.errorf("%s is %q, want UTF-8", path, s)
		return
	}
	e.out = append(e.out, '"')
	from := 0
	for i := 0; i < len(s); {
		if c := s[i]; ' ' <= c && c <= '~' && c != '"' && c != '\\' {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r >= utf8.RuneSelf && strconv.IsPrint(r) {
			i += size
			continue
		}
		e.out = append(e.out, s[from:i]...)
		e.escape(r)
		i += size
		from = i
	}
	e.out = append(e.out, s[from:]...)
	e.out = append(e.out, '"')
}

func (e *encoder) escape(r rune) {
	switch {
	case r == '"' || r == '\\':
		e.out = append(e.out, '\\', byte(r))
	case r == '\n':
		e.out = append(e.out, `\n`...)
	case r == '\t':
		e.out = append(e.out, `\t`...)
	case r > 0xffff:
		e.out = fmt.Appendf(e.out, `\U%08X`, r)
	default:
		e.out = fmt.Appendf(e.out, `\u%04X`, r)
	}
}

func (e *encoder) errorf(format string, args ...any) {
	if len(e.errs) < maxProblems {
		e.errs = append(e.errs, fmt.Errorf(format, args...))
	}
}
