package body

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"strings"
	"testing"
)

var jsonSeeds = []string{
	`{}`, `[]`, ``, `{"model":"a"}`, `{"model":"a","model":"b"}`, `{"model":"a","\u006dodel":"b"}`,
	`{"messages":[{"role":"user","content":"hi \u00e9 \"x\" \\"}],"model":"org/a:b","stream":true,"max_tokens":12}`,
	`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},{"role":"assistant","content":null}]}`,
	`{"input":[{"type":"message","role":"user","content":"x"},{"type":"function_call_output","output":"1"}],"instructions":"y","previous_response_id":"r"}`,
	`{"prompt":[1,2.5e3,-0],"prompt_cache_key":"k"}`, `{"prompt":["a","b"],"tools":[{"a":[{}]}]}`, `{"prompt":[[1],[2]]}`,
	"{\"model\":\"a\x01\"}", `{"model":"\ud800"}`, `{"model":"\ud83d\ude00"}`, `{"a":tru}`, `{"a":01}`, ` { "a" : [ ] } `, "{\"a\":\"\xff\"}",
}

// FuzzScanJSON compares the scanner with encoding/json: what is valid, what the
// model is, whether it is there twice.
func FuzzScanJSON(f *testing.F) {
	for _, seed := range jsonSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		got, err := ScanJSON(b)
		if !bytes.Equal(b, before) {
			t.Fatal("the body was changed")
		}
		var syntax *SyntaxError
		if errors.As(err, &syntax) && (syntax.Offset < 0 || syntax.Offset > len(b)) {
			t.Fatalf("offset %d of %d", syntax.Offset, len(b))
		}
		if err != nil && got != (Request{}) {
			t.Fatalf("an error and %+v", got)
		}
		if got.PromptTokens < 0 || got.MaxTokens < 0 {
			t.Fatalf("%+v", got)
		}
		models, valid := modelsOf(b)
		switch {
		case err != nil && strings.Contains(err.Error(), "nested deeper"):
			// encoding/json goes deeper.
		case !valid:
			if err == nil {
				t.Fatalf("accepted what encoding/json refuses")
			}
		case len(models) > 1:
			if err == nil {
				t.Fatalf("accepted models %v", models)
			}
		case errors.Is(err, ErrDuplicateModel):
			t.Fatalf("says duplicate, models are %v", models)
		case len(models) == 1:
			name, isString := models[0].(string)
			if models[0] == nil {
				name, isString = "", true
			}
			if !isString || len(name) > maxNameBytes-8 {
				return // refused, or close to the limit
			}
			if err != nil {
				t.Fatal(err)
			}
			// encoding/json replaces what is no UTF-8.
			if clean := strings.ToValidUTF8(got.Model, "\ufffd"); clean != name && !strings.ContainsRune(name, '\ufffd') {
				t.Fatalf("model %q, encoding/json says %q", got.Model, name)
			}
		case err != nil:
			t.Fatal(err)
		}
	})
}

// modelsOf returns every value that the object gives to "model", by
// encoding/json.
func modelsOf(b []byte) (models []any, valid bool) {
	if !json.Valid(b) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if start, _ := d.Token(); start != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, false
		}
		if key == "model" {
			var v any
			if err := json.Unmarshal(value, &v); err != nil {
				return nil, false // a number beyond float64
			}
			models = append(models, v)
		}
	}
	return models, true
}

// FuzzScanForm compares the scan with a plain reading of the form.
func FuzzScanForm(f *testing.F) {
	f.Add(form(f, formPart{name: "model", value: "whisper"}, formPart{"file", "a.wav", "RIFF\r\n--limi"}), testBoundary)
	f.Add(form(f, formPart{name: "model", value: "a"}, formPart{name: "model", value: "b"}), testBoundary)
	f.Add([]byte("--x\r\nContent-Disposition: form-data; name=model\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\na=62\r\n--x--"), "x")
	f.Add([]byte("--x\r\n\r\n--x--"), "x")
	f.Fuzz(func(t *testing.T, b []byte, boundary string) {
		got, err := ScanForm(b, boundary)
		if err != nil {
			if got != (Request{}) {
				t.Fatalf("an error and %+v", got)
			}
			return
		}
		models := 0
		reader := multipart.NewReader(bytes.NewReader(b), boundary)
		for {
			part, err := reader.NextRawPart()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if part.FormName() != "model" {
				continue
			}
			models++
			if value, _ := io.ReadAll(part); string(value) != got.Model {
				t.Fatalf("model %q, the part holds %q", got.Model, value)
			}
		}
		if models > 1 || models == 0 && got.Model != "" {
			t.Fatalf("accepted %d models, says %q", models, got.Model)
		}
	})
}
