package body

import (
	"bytes"
	"errors"
	"mime/multipart"
	"net/textproto"
	"strings"
	"testing"
)

// formPart is a field, or a file if it has a file name.
type formPart struct{ name, file, value string }

const testBoundary = "limit"

func form(t testing.TB, parts ...formPart) []byte {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if err := w.SetBoundary(testBoundary); err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		disposition := multipart.FileContentDisposition(p.name, p.file)
		if p.file == "" {
			disposition = `form-data; name="` + p.name + `"`
		}
		to, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {disposition}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.Write([]byte(p.value)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestScanForm(t *testing.T) {
	audio := strings.Repeat("\x00\xffaudio\r\n--limi", 100000)
	field := func(name, value string) formPart { return formPart{name: name, value: value} }
	file := func(value string) formPart { return formPart{"file", "a.wav", value} }
	scan := func(parts ...formPart) Request {
		t.Helper()
		r, err := ScanForm(form(t, parts...), testBoundary)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := scan(field("model", "whisper"), file(audio), field("stream", "true"), field("prompt", "12345678"))
	if first.Model != "whisper" || !first.Stream || first.PromptTokens != 2 || first.Affinity.Source != SourceForm {
		t.Errorf("%+v", first)
	}
	if again := scan(field("prompt", "12345678"), file(audio), field("model", "whisper")); again.Affinity != first.Affinity {
		t.Errorf("the same form in another order: %+v, %+v", again.Affinity, first.Affinity)
	}
	for name, r := range map[string]Request{
		"model":  scan(field("model", "w"), file(audio), field("prompt", "12345678")),
		"prompt": scan(field("model", "whisper"), file(audio), field("prompt", "1234567")),
		"file":   scan(field("model", "whisper"), file("a"+audio), field("prompt", "12345678")),
	} {
		if r.Affinity == first.Affinity {
			t.Errorf("another %s gives the same key", name)
		}
	}
	if r := scan(field("model", "m"), field("n", "1")); r.Affinity != (Affinity{}) || r.Model != "m" {
		t.Errorf("a form with nothing to tell it by: %+v", r)
	}
}

func TestScanFormRefuses(t *testing.T) {
	field := func(name, value string) formPart { return formPart{name: name, value: value} }
	for _, parts := range [][]formPart{
		{field("model", "a"), field("model", "a")},
		{field("model", "a"), {"model", "model.txt", "b"}},
	} {
		if _, err := ScanForm(form(t, parts...), testBoundary); !errors.Is(err, ErrDuplicateModel) {
			t.Errorf("%v: %v, want %v", parts, err, ErrDuplicateModel)
		}
	}
	whole := form(t, field("model", "a"), formPart{"file", "f", "x"})
	for name, tt := range map[string]struct {
		body           []byte
		boundary, want string
	}{
		"no boundary":    {whole, "", "body: byte 0: the content type names no boundary"},
		"other boundary": {whole, "other", "form: the closing boundary is missing"},
		"cut":            {whole[:len(whole)-20], testBoundary, "form: the closing boundary is missing"},
		"empty":          {nil, testBoundary, "form: the closing boundary is missing"},
		"end in a value": {[]byte("--limit\r\nContent-Disposition: form-data; name=x\r\n\r\n--limit--?"), testBoundary, "form: multipart: NextPart: EOF"},
		"long model":     {form(t, field("model", strings.Repeat("m", maxNameBytes+1))), testBoundary, "form: model is longer than 1024 bytes"},
	} {
		_, err := ScanForm(tt.body, tt.boundary)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

func BenchmarkScanForm(b *testing.B) {
	body := form(b, formPart{"file", "a.wav", strings.Repeat("\x00\xffaudio", 1<<17)}, formPart{name: "model", value: "whisper"})
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ScanForm(body, testBoundary); err != nil {
			b.Fatal(err)
		}
	}
}
