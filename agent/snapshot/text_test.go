package snapshot

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// roundTrip demands that the text form loses nothing, is stable, and says the
// same to another TOML reader.
func roundTrip(t *testing.T, s *Snapshot) {
	t.Helper()
	body := encode(t, s)
	got, err := Decode(body)
	if err != nil {
		t.Fatalf("%v in\n%s", err, body)
	}
	if diff := cmp.Diff(s, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("decoded differs (-want +got):\n%s", diff)
	}
	if again := encode(t, got); !bytes.Equal(again, body) {
		t.Fatalf("encoded again differs:\n%s", cmp.Diff(string(body), string(again)))
	}
	sameToOthers(t, body, s)
}

func sameToOthers(t *testing.T, body []byte, s *Snapshot) {
	t.Helper()
	var other Snapshot
	meta, err := toml.Decode(string(body), &other)
	if err != nil {
		t.Fatalf("another TOML reader: %v in\n%s", err, body)
	}
	if keys := meta.Undecoded(); len(keys) > 0 {
		t.Fatalf("another TOML reader sees further keys %v", keys)
	}
	if diff := cmp.Diff(s, &other, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("another TOML reader differs (-want +got):\n%s", diff)
	}
}

func TestEncodeDecode(t *testing.T) {
	for name, s := range map[string]*Snapshot{"two regions": twoRegions(), "large": large(20), "zero": {Format: Format}} {
		t.Run(name, func(t *testing.T) { roundTrip(t, s) })
	}
}

func TestEncodeDecodeRandom(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		s := &Snapshot{}
		fill(random, reflect.ValueOf(s).Elem())
		s.Format = Format
		roundTrip(t, s)
	}
}

// fill sets every field below v to something odd.
func fill(random *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		alphabet := []rune("ab \"\\\n\t\r\x00\x7f\u0085#=[]{},'é→\u202e\ufeff\U0001f600")
		var text []rune
		for range random.IntN(8) {
			text = append(text, alphabet[random.IntN(len(alphabet))])
		}
		v.SetString(string(text))
	case reflect.Float64:
		x := math.Float64frombits(random.Uint64())
		if math.IsNaN(x) || math.IsInf(x, 0) || random.IntN(4) == 0 {
			x = float64(random.IntN(5))
		}
		v.SetFloat(x)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(random.Uint64()) >> random.IntN(64))
	case reflect.Uint32:
		v.SetUint(uint64(random.Uint32()))
	case reflect.Bool:
		v.SetBool(random.IntN(2) == 0)
	case reflect.Slice:
		n := random.IntN(4)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(random, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range random.IntN(4) {
			key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(random, key)
			fill(random, elem)
			v.SetMapIndex(key, elem)
		}
	case reflect.Pointer:
		if random.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(random, v.Elem())
		}
	case reflect.Struct:
		if v.Type() == timeType {
			v.Set(reflect.ValueOf(time.Unix(random.Int64N(4e9), random.Int64N(2)*random.Int64N(1e9)).UTC()))
			return
		}
		for i := range v.NumField() {
			fill(random, v.Field(i))
		}
	}
}

// TestGuardIsOptional: a class that says nothing of guards has no such key, so
// older agents read the file; a 0 that was said is kept apart from nothing.
func TestGuardIsOptional(t *testing.T) {
	s := twoRegions()
	body := string(encode(t, s))
	if want := "guard = { retry_attempts = 2, retry_budget_ratio = 0.0, ttft_timeout_ms = 1500.0 }\n"; strings.Count(body, "guard") != 1 || !strings.Contains(body, want) {
		t.Errorf("want one line %q in\n%s", want, body)
	}
	got, err := Decode([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if g := got.Classes[0].Guard; g.RetryBudgetRatio == nil || *g.RetryBudgetRatio != 0 || g.RetryBudgetFloor != nil {
		t.Errorf("guard is %+v", g)
	}
	if g := got.Classes[1].Guard; g != (Guard{}) {
		t.Errorf("guard of nothing is %+v", g)
	}
	if _, err := Decode([]byte(strings.Replace(body, "ttft_timeout_ms", "ttft_timeout", 1))); err == nil || !strings.Contains(err.Error(), `unknown key "ttft_timeout" in [class.guard]`) {
		t.Errorf("error is %v", err)
	}
}

func TestEncodeRefuses(t *testing.T) {
	s := twoRegions()
	s.Solver.Gap = math.NaN()
	s.Sources[1].Weights[0].Cost.Kink = math.Inf(1)
	s.Reason = "\xff"
	s.Classes[0].Match.Headers["\xfe"] = "gold"
	s.Expires = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	_, err := Encode(s)
	for _, want := range []string{
		"expires is in the year 10000, want 0 to 9999",
		`reason is "\xff", want UTF-8`,
		"solver.gap is NaN, want a finite number",
		`class.match.headers is "\xfe", want UTF-8`,
		"source.weight.cost_ms.kink is +Inf, want a finite number",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is\n%v\nwant it to tell %q", err, want)
		}
	}
	s = twoRegions()
	s.Reason = strings.Repeat("x", MaxBytes)
	if _, err := Encode(s); err == nil || !strings.Contains(err.Error(), "want at most 67108864") {
		t.Errorf("error of a huge snapshot is %v", err)
	}
}

func TestNumbersAreShortAndFloats(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0.0", 1: "1.0", -2.5: "-2.5", 0.1: "0.1", 1e-6: "0.000001", 1e-7: "1e-07",
		1e15: "1e+15", 123456789012345: "123456789012345.0", 1. / 3: "0.3333333333333333",
		math.MaxFloat64: "1.7976931348623157e+308", math.SmallestNonzeroFloat64: "5e-324",
	} {
		e := &encoder{}
		e.float(x, "x")
		if string(e.out) != want {
			t.Errorf("%v is written %s, want %s", x, e.out, want)
		}
	}
}

// edit replaces the first old by new in the body of twoRegions.
func edit(t *testing.T, old, new string) []byte {
	t.Helper()
	body := string(encode(t, twoRegions()))
	if !strings.Contains(body, old) {
		t.Fatalf("no %q in the body", old)
	}
	return []byte(strings.Replace(body, old, new, 1))
}

func TestDecodeAccepts(t *testing.T) {
	for name, edit := range map[string][]byte{
		"comments and blanks":   edit(t, "\nfleet = \"prod\"", "\n\t# here\n  fleet\t=\"prod\" # and here"),
		"a literal string":      edit(t, `fleet = "prod"`, `fleet = 'prod'`),
		"a quoted key":          edit(t, `fleet = "prod"`, `"fleet" = "prod"`),
		"an escape":             edit(t, `fleet = "prod"`, `fleet = "\u0070\U00000072od"`),
		"an array over lines":   edit(t, `notes = ["one pool"]`, "notes = [ # here\n\t\"one pool\",\n\n  # and here\n]"),
		"a fraction of seconds": edit(t, "2026-08-01T12:00:00Z", "2026-08-01T12:00:00.000Z"),
		"an integer as float":   edit(t, "max_utilization = 1.0", "max_utilization = 1"),
		"an exponent":           edit(t, "max_utilization = 1.0", "max_utilization = 10E-1"),
		"a table inline":        edit(t, "  [class.match]\n  path", "match = {}\n\n[x]\n  path"),
		"blanks in a header":    edit(t, "[policy]", "[ policy ]"),
		"no last line end":      bytes.TrimSuffix(encode(t, twoRegions()), []byte("\n")),
		"tables below x":        edit(t, "[policy]", "[x]\na = 1\n[x.b.c]\nd = [[1, {e = 'f'}], true]\n[[x.g]]\nh = 2026-01-01\n[policy]"),
		"source lines in texts": edit(t, `notes = ["one pool"]`, `notes = ["\n[[source]]\n# minisign: "]`),
	} {
		s, err := Decode(edit)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := twoRegions()
		switch name {
		case "a table inline":
			want.Classes[0].Match = Match{}
		case "source lines in texts":
			want.Solver.Notes = []string{"\n[[source]]\n# minisign: "}
		}
		if diff := cmp.Diff(want, s, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: differs (-want +got):\n%s", name, diff)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	lineOf := func(text string) int {
		before, _, _ := strings.Cut(string(encode(t, twoRegions())), text)
		return 1 + strings.Count(before, "\n")
	}
	for _, test := range []struct{ old, new, want string }{
		{"fleet = ", "flet = ", `unknown key "flet" in the document`},
		{"fleet = ", "Fleet = ", `unknown key "Fleet" in the document`},
		{"gap = 0.0", "gap = 0.0\ngap = 0.0", `duplicate key "gap" in [solver]`},
		{"shed = \"forbid\"\n", "", `missing in [policy]: "shed"`},
		{"cost_ms = { net = 2.0,", "cost_ms = {", `cost_ms: missing in [source.weight.cost_ms]: "net"`},
		{"headers = { x-tier", "headers = { x-tier = 'b', x-tier", `headers: duplicate key "x-tier"`},
		{"[policy]", "[polcy]", `unknown table "polcy" in the document`},
		{"[policy]", "[solver]", "duplicate table [solver]"},
		{"[policy]", "[[policy]]", "wrong brackets, want [policy]"},
		{"[[input]]", "[input]", "wrong brackets, want [[input]]"},
		{"[[input]]", "[[source.weight]]", "a table below [[source]] before [[source]] itself"},
		{"[policy]", "[fleet]", `unknown table "fleet" in the document`},
		{"[policy]", "[policy", `found the end of the line, want the end of the header`},
		{"[policy]", "[policy] x", `found "x", want the end of the line`},
		{"[policy]", "[]", `found "]", want a key`},
		{"gap = 0.0", "gap = nan", `gap: found "nan", want a finite number`},
		{"gap = 0.0", "gap = inf", `gap: found "inf", want a finite number`},
		{"gap = 0.0", "gap = 1e999", `gap: 1e999 is out of range`},
		{"gap = 0.0", "gap = 00.5", `gap: found "00.5", want a finite number`},
		{"gap = 0.0", "gap = .5", `gap: found ".5", want a finite number`},
		{"gap = 0.0", "gap = 5.", `gap: found "5.", want a finite number`},
		{"gap = 0.0", "gap = 1_0.0", `gap: found "1_0.0", want a finite number`},
		{"gap = 0.0", "gap = 0x10", `gap: found "0x10", want a finite number`},
		{"gap = 0.0", "gap = 9007199254740993", "has too many digits"},
		{"gap = 0.0", "gap = \"0\"", "want a finite number"},
		{"gap = 0.0", "gap 0.0", `found "0" after key "gap", want "="`},
		{"gap = 0.0", "gap = 0.0 0.0", `found "0", want the end of the line`},
		{"gap = 0.0", "solver.gap = 0.0", `found "." after key "solver", want "="`},
		{"sequence = 42", "sequence = 42.0", `sequence: found "42.0", want an integer`},
		{"sequence = 42", "sequence = +", `sequence: found "+", want an integer`},
		{"sequence = 42", "sequence = 99999999999999999999", "sequence: 99999999999999999999 is out of range"},
		{"layout_from = [0, 3579139413]", "layout_from = [0, 4294967296]", "layout_from: 4294967296 is not in [0, 2^32)"},
		{"layout_from = [0, 3579139413]", "layout_from = [0 3579139413]", `layout_from: found "3", want "," or "]"`},
		{"layout_to = [\"a-1\"", "layout_to = [a-1", `layout_to: found "a", want a string`},
		{"layout_to = [\"a-1\", \"c-1\"]", "layout_to = 'a-1'", `layout_to: found "'", want an array`},
		{"fleet = \"prod\"", "fleet = \"prod", "fleet: a string without an end"},
		{"fleet = \"prod\"", "fleet = \"pr\\", `fleet: unknown escape "\\\n"`},
		{"fleet = \"prod\"", "fleet = \"pr\\x41\"", `fleet: unknown escape "\\x"`},
		{"fleet = \"prod\"", "fleet = \"\\uD800\"", `fleet: bad escape "\\uD800"`},
		{"fleet = \"prod\"", "fleet = \"\\U00110000\"", `fleet: bad escape "\\U00110000"`},
		{"fleet = \"prod\"", "fleet = \"\\u+041\"", `fleet: bad escape`},
		{"fleet = \"prod\"", "fleet = \"\"\"prod\"\"\"", "fleet: a string over several lines"},
		{"fleet = \"prod\"", "fleet = prod", `fleet: found "p", want a string`},
		{"created = 2026-08-01T12:00:00Z", "created = 2026-08-01", `created: found "2026-08-01", want a time like`},
		{"created = 2026-08-01T12:00:00Z", "created = 2026-08-01T2:00:00Z", "want a time like"},
		{"created = 2026-08-01T12:00:00Z", "created = 2026-08-01T12:00:00,5Z", "want a time like"},
		{"created = 2026-08-01T12:00:00Z", "created = 2026-08-01T14:00:00+02:00", "want a time like"},
		{"created = 2026-08-01T12:00:00Z", "created = 2026-08-32T12:00:00Z", "want a time like"},
		{"headers = { x-tier = \"gold\" }", "headers = { x-tier = \"gold\", }", `headers: found "}", want a key`},
		{"headers = { x-tier = \"gold\" }", "headers = { x-tier \"gold\" }", `headers: found "\"" after key "x-tier"`},
		{"headers = { x-tier = \"gold\" }", "headers = \"gold\"", `headers: found "\"", want an inline table`},
		{"headers = { x-tier = \"gold\" }", "headers = { x-tier = \"gold\" ", `want "," or "}"`},
		{"failure_domain = \"region\"", "failure_domain = \"region\"\n[x]\na = " + strings.Repeat("[", 100), "values nest deeper than 16"},
		{"failure_domain = \"region\"", "failure_domain = \"region\"\n[x]\na =", "found the end of the line, want a value"},
		{"failure_domain = \"region\"", "failure_domain = \"region\"\n[x]\na = 1\r", `found "1\r", want a value`},
		{"format = 1", "format = 1\r", `format: found "1\r", want an integer`},
		{"format = 1", "format = 1 \r", `found "\r", want the end of the line`},
		{"format = 1", "format = 1 # \r", "control character 0x0d in a comment"},
		{"notes = [", "notes = [ # \x00\n", "notes: control character 0x00 in a comment"},
		{"notes = [\"one pool\"", "notes = [\"one pool\" # \x00\n", "notes: control character 0x00 in a comment"},
		{"format = 1", "format = 1\n\x00", `found "\x00", want a key`},
		{"fleet = \"prod\"", "fleet = \"prod\x7f\"", "fleet: control character 0x7f in a string, want it escaped"},
		{"fleet = \"prod\"", "fleet = \"\\u0041\x7f\"", "fleet: control character 0x7f in a string, want it escaped"},
		{"fleet = \"prod\"", "fleet = \"\\u0041", "fleet: a string without an end"},
		{"format = 1", "format = 1 # \xff", "body is not UTF-8"},
		{"# irb", "\ufeff# irb", "want a key"},
		{"format = 1", "format = 2", "format is 2, want 1"},
		{"format = 1", "format = 2\nnews = 3", "format is 2, want 1"},
		{"format = 1", "format = 0", "format is 0, want 1"},
		{"format = 1\n", "", `missing in the document: "format"`},
		{"[[input]]", "input = []\n[[input]]", "input: want tables [[input]], not a value"},
	} {
		_, err := Decode(edit(t, test.old, test.new))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q for %q: error is\n%v\nwant %q", test.new, test.old, err, test.want)
		}
	}
	// The line is told, and all problems at once.
	_, err := Decode([]byte(strings.NewReplacer("gap", "gip", "code = \"spill\"", "code = 3").Replace(string(encode(t, twoRegions())))))
	for text, want := range map[string]string{
		"gap":              `unknown key "gip" in [solver]`,
		"[solver]":         `missing in [solver]: "gap"`,
		"code = \"spill\"": `code: found "3", want a string`,
	} {
		want := (&SyntaxError{lineOf(text), want}).Error()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is\n%v\nwant %q", err, want)
		}
	}
	if _, err := Decode([]byte(strings.Repeat("a\n", 1000))); len(strings.Split(err.Error(), "\n")) != maxProblems {
		t.Errorf("a file of nonsense gives %d problems, want %d", len(strings.Split(err.Error(), "\n")), maxProblems)
	}
	if _, err := Decode(make([]byte, MaxBytes+1)); err == nil || !strings.Contains(err.Error(), "want at most") {
		t.Errorf("error of a huge body is %v", err)
	}
}
