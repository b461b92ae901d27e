package body

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
)

func mustScan(t testing.TB, body string) Request {
	t.Helper()
	r, err := ScanJSON([]byte(body))
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return r
}

func TestModel(t *testing.T) {
	long := strings.Repeat("m", maxNameBytes)
	tests := []struct{ body, want string }{
		{`{}`, ""},
		{`{"model":"a"}`, "a"},
		{" \n{ \"model\" :\t\"org/a:lora-1\" } \r\n", "org/a:lora-1"},
		{`{"messages":[{"role":"user","content":"hi","model":"no"}],"model":"a"}`, "a"},
		{`{"metadata":{"model":"no"},"model":"a","tools":[{"model":"no"}]}`, "a"},
		{`{"\u006dodel":"a"}`, "a"},
		{`{"\u006D\u006f\u0064\u0065\u006c":"\u0061\/b\ud83d\ude00"}`, "a/b😀"},
		{`{"model":null}`, ""},
		{`{"Model":"no","model ":"no"}`, ""},
		{`{"prompt":"\"model\":\"no\"","model":"a"}`, "a"},
		{`{"model":"` + long + `"}`, long},
	}
	for _, tt := range tests {
		if got := mustScan(t, tt.body).Model; got != tt.want {
			t.Errorf("%s: model %q, want %q", tt.body, got, tt.want)
		}
	}
}

func TestDuplicateModel(t *testing.T) {
	for _, body := range []string{
		`{"model":"a","model":"a"}`,
		`{"model":"a","messages":[],"\u006dodel":"b"}`,
		`{"model":null,"model":"b"}`,
	} {
		if _, err := ScanJSON([]byte(body)); !errors.Is(err, ErrDuplicateModel) {
			t.Errorf("%s: %v, want %v", body, err, ErrDuplicateModel)
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	deep := strings.Repeat(`[`, maxDepth) + strings.Repeat(`]`, maxDepth)
	tests := []struct{ body, want string }{
		{``, "body: byte 0: the body ends, want an object"},
		{`[]`, `body: byte 0: found '[', want an object`},
		{`"model"`, `body: byte 0: found '"', want an object`},
		{`{`, "body: byte 1: the body ends, want a name in quotes"},
		{`{"a":1,}`, `body: byte 7: found '}', want a name in quotes`},
		{`{"a" 1}`, `body: byte 5: found '1', want a colon`},
		{`{"a":1 "b":2}`, `body: byte 7: found '"', want a comma or '}'`},
		{`{"a":[1 2]}`, `body: byte 8: found '2', want a comma or ']'`},
		{`{"a":[1,]}`, `body: byte 8: found ']', want a value`},
		{`{"a":01}`, `body: byte 6: found '1', want a comma or '}'`},
		{`{"a":-}`, `body: byte 6: found '}', want a value`},
		{`{"a":1.}`, `body: byte 7: found '}', want a digit`},
		{`{"a":1e+}`, `body: byte 8: found '}', want a digit`},
		{`{"a":NaN}`, `body: byte 5: found 'N', want a value`},
		{`{"a":nul}`, `body: byte 5: found 'n', want null`},
		{`{"a":"b}`, "body: byte 8: the body ends inside a string"},
		{"{\"a\":\"b\nc\"}", `body: byte 7: control character '\n' in a string`},
		{`{"a":"\x"}`, "body: byte 6: no such escape"},
		{`{"a":"\u12g4"}`, "body: byte 6: no such escape"},
		{`{"a":"\u12`, "body: byte 6: no such escape"},
		{`{} x`, `body: byte 3: found 'x', want nothing after the object`},
		{"{}\x00", `body: byte 2: found '\x00', want nothing after the object`},
		{"\xef\xbb\xbf{}", `body: byte 0: found 'ï', want an object`},
		{`{"model":7}`, `body: byte 9: "model" is no string of at most 1024 bytes`},
		{`{"model":"` + strings.Repeat("m", maxNameBytes+1) + `"}`, `body: byte 9: "model" is no string of at most 1024 bytes`},
		{`{"a":` + deep + `}`, fmt.Sprintf("body: byte %d: nested deeper than %d", 5+maxDepth, maxDepth)},
		{`{"messages":[{"role":"user","content":` + deep + `}]}`, fmt.Sprintf("body: byte %d: nested deeper than %d", 38+maxDepth-2, maxDepth)},
	}
	for _, tt := range tests {
		_, err := ScanJSON([]byte(tt.body))
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || err.Error() != tt.want {
			t.Errorf("%.40s: %v, want %s", tt.body, err, tt.want)
		}
	}
}

func TestPlainFields(t *testing.T) {
	tests := []struct {
		body string
		want Request // but for affinity and tokens of the prompt
	}{
		{`{"stream":true,"max_tokens":7}`, Request{Stream: true, MaxTokens: 7}},
		{`{"stream":false,"max_completion_tokens":9,"max_tokens":7}`, Request{MaxTokens: 9}},
		{`{"stream":null,"max_output_tokens":5}`, Request{MaxTokens: 5}},
		{`{"max_tokens":-1}`, Request{}},
		{`{"max_tokens":1e3,"stream":"true"}`, Request{}},
		{`{"max_tokens":99999999999999999999999}`, Request{}},
		{`{"tools":[{"type":"function"}]}`, Request{Tools: true}},
		{`{"tools":[ ]}`, Request{}},
		{`{"tools":null,"functions":[{}]}`, Request{Tools: true}},
		{`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}]}`, Request{Vision: true}},
		{`{"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://x/y.png"}]}]}`, Request{Vision: true}},
		{`{"messages":[{"role":"user","content":"a"},{"role":"user","content":[{"type":"image","source":{"data":"abc"}}]}]}`, Request{Vision: true}},
		{`{"messages":[{"role":"user","content":"type image_url"}]}`, Request{}},
		{`{"messages":[{"role":"assistant","content":"a"}]}`, Request{UnderWay: true}},
		{`{"messages":[{"content":"a","\u0072ole":"\u0061ssistant"}]}`, Request{UnderWay: true}},
		{`{"messages":[{"role":"tool","content":"a"}]}`, Request{UnderWay: true}},
		{`{"input":[{"type":"function_call_output","output":"a"}]}`, Request{UnderWay: true}},
		{`{"input":[{"type":"message","role":"user","content":"a"}]}`, Request{}},
		{`{"messages":[{"role":"system","content":"a"},{"role":"user","content":"assistant"}]}`, Request{}},
		{`{"previous_response_id":"resp_1"}`, Request{UnderWay: true, Stateful: true, Previous: xxhash.Sum64String("resp_1")}},
		{`{"previous_response_id":null}`, Request{}},
		{`{"previous_response_id":""}`, Request{}},
	}
	for _, tt := range tests {
		got := mustScan(t, tt.body)
		got.Affinity, got.PromptTokens = Affinity{}, 0
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.body, got, tt.want)
		}
	}
}

func TestAffinityPrecedence(t *testing.T) {
	const chat = `"model":"m","messages":[{"role":"user","content":"hi"}]`
	digest := xxhash.Sum64String
	tests := []struct {
		body string
		want Affinity
	}{
		{`{` + chat + `,"previous_response_id":"r","prompt_cache_key":"k"}`, Affinity{SourceCacheKey, digest("k")}},
		{`{` + chat + `,"previous_response_id":"r"}`, Affinity{SourceResponse, digest("r")}},
		{`{"prompt_cache_key":"\u043a\u043b\u044e\u0447"}`, Affinity{SourceCacheKey, digest("ключ")}},
		{`{"prompt_cache_key":"","model":"m"}`, Affinity{}},
		{`{"prompt_cache_key":5,"model":"m","tools":[{}]}`, Affinity{}},
		{`{"model":"m","messages":[]}`, Affinity{}},
		{`{"model":"m","prompt":""}`, Affinity{}},
		{`{"model":"m","messages":[{"role":"system","content":""}]}`, Affinity{}},
	}
	for _, tt := range tests {
		if got := mustScan(t, tt.body).Affinity; got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.body, got, tt.want)
		}
	}
}

// Bodies of one group are turns of one conversation, or one that is written
// otherwise; every group is another conversation.
func TestConversations(t *testing.T) {
	system := `{"role":"system","content":"You help."}`
	long := strings.Repeat("x", maxItemBytes)
	groups := map[string][]string{
		"chat": {
			`{"model":"m","messages":[` + system + `,{"role":"user","content":"hi"}]}`,
			`{"messages":[` + system + `,{"role":"user","content":"hi"}],"model":"m","stream":true,"temperature":0.1}`,
			`{"model":"m","messages":[` + system + `,{"role":"user","content":"hi"},{"role":"assistant","content":"yes?"},{"role":"user","content":"more"}]}`,
			`{"model":"m","messages":[` + system + `,{"content":"hi","role":"user"},{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]},{"role":"system","content":"Remember."}]}`,
			`{"model":"m","messages":[` + system + `,{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}],"user":"u","metadata":{"a":"b"}}`,
			`{"model":"m","messages":[{"role":"developer","content":"You help."},{"role":"user","name":"n","content":[{"text":"hi","type":"text"}]}]}`,
		},
		"responses": {
			`{"model":"m","instructions":"You aid.","input":"hi"}`,
			`{"model":"m","input":[{"role":"user","content":"hi"}],"instructions":"You aid."}`,
			`{"model":"m","instructions":"You aid.","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"function_call","name":"f"},{"type":"function_call_output","output":"1"}]}`,
			`{"model":"m","messages":[{"role":"system","content":"You aid."},{"role":"user","content":"hi"}]}`,
		},
		"other user item":    {`{"model":"m","messages":[` + system + `,{"role":"user","content":"hi!"}]}`},
		"other system text":  {`{"model":"m","messages":[{"role":"system","content":"You help!"},{"role":"user","content":"hi"}]}`},
		"other model":        {`{"model":"n","messages":[` + system + `,{"role":"user","content":"hi"}]}`},
		"with tools":         {`{"model":"m","tools":[{"a":1}],"messages":[` + system + `,{"role":"user","content":"hi"}]}`},
		"other tools":        {`{"model":"m","tools":[{"a":2}],"messages":[` + system + `,{"role":"user","content":"hi"}]}`},
		"no system":          {`{"model":"m","messages":[{"role":"user","content":"hi"}]}`, `{"model":"m","input":"hi"}`, `{"model":"m","input":["hi","ho"]}`, `{"model":"m","messages":[{"role":"assistant","content":"Hello!"},{"role":"user","content":"hi"}]}`},
		"parts are no text":  {`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"h"},{"type":"text","text":"i"}]}]}`},
		"image":              {`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"low"}}]}]}`, `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"high"}}]},{"role":"assistant","content":"a"}]}`},
		"other image":        {`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAB","detail":"low"}}]}]}`},
		"messages API":       {`{"model":"m","system":[{"type":"text","text":"You help?"}],"messages":[{"role":"user","content":"hi"}]}`, `{"model":"m","system":[{"type":"text","text":"You help?","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"a"}]}`},
		"system alone":       {`{"model":"m","messages":[` + system + `]}`, `{"model":"m","messages":[` + system + `,{"role":"assistant","content":"a"}]}`},
		"long":               {`{"model":"m","input":"` + long + `a"}`, `{"model":"m","input":"` + long + `b"}`},
		"raw":                {`{"model":"m","prompt":"hi"}`, `{"prompt":["hi","ho"],"model":"m"}`},
		"raw, long":          {`{"model":"m","prompt":"` + long[:maxPromptBytes] + `"}`, `{"model":"m","prompt":"` + long[:maxPromptBytes] + ` and so on"}`},
		"raw, shorter":       {`{"model":"m","prompt":"` + long[:maxPromptBytes-1] + `"}`},
		"raw, tokens":        {`{"model":"m","prompt":[1,2,3]}`},
		"raw, other tokens":  {`{"model":"m","prompt":[1,2,4]}`},
		"raw, lists":         {`{"model":"m","prompt":[[1,2,3],[4]]}`},
		"embedding":          {`{"model":"m","input":[1,2,3]}`},
		"other embedding":    {`{"model":"m","input":[1,2,4]}`},
		"unknown user shape": {`{"model":"m","messages":[{"role":"user","content":{"x":"y"}}]}`},
	}
	of := map[uint64]string{}
	for name, bodies := range groups {
		first := mustScan(t, bodies[0]).Affinity
		if first.Material == 0 || first.Source == SourceNone {
			t.Errorf("%s: no affinity", name)
		}
		if other, taken := of[first.Material]; taken {
			t.Errorf("%s and %s have one key", name, other)
		}
		of[first.Material] = name
		for i, body := range bodies[1:] {
			if got := mustScan(t, body).Affinity; got != first {
				t.Errorf("%s: body %d has %+v, the first %+v", name, i+1, got, first)
			}
		}
	}
}

// Many conversations under one system prompt with the same tools: each has a key
// of its own in all of its turns.
func TestConversationsUnderOneSystemPrompt(t *testing.T) {
	const conversations, turns = 500, 4
	system := strings.Repeat("You are the assistant of a shop. ", 300)
	count := map[uint64]int{}
	for i := range conversations {
		messages := fmt.Sprintf(`{"role":"system","content":"%s"},{"role":"user","content":"Where is order %d?"}`, system, i)
		for turn := range turns {
			r := mustScan(t, `{"model":"m","tools":[{"type":"function"}],"messages":[`+messages+`]}`)
			if r.UnderWay != (turn > 0) {
				t.Fatalf("turn %d: under way is %v", turn, r.UnderWay)
			}
			count[r.Affinity.Material]++
			messages += `,{"role":"assistant","content":"Let me see."},{"role":"user","content":"And now?"}`
		}
	}
	if len(count) != conversations {
		t.Errorf("%d keys, want %d", len(count), conversations)
	}
	for key, n := range count {
		if n != turns {
			t.Errorf("key %x has %d requests, want %d", key, n, turns)
		}
	}
}

func TestPromptTokens(t *testing.T) {
	text := strings.Repeat("abcd", 1000)
	media := strings.Repeat("AAAA", 100000)
	tests := []struct {
		body   string
		lo, hi int64
	}{
		{`{"model":"m","messages":[{"role":"user","content":"` + text + `"}]}`, 1000, 1020},
		{`{"model":"m","prompt":"` + strings.Repeat(`\u4e2d`, 1000) + `"}`, 750, 770},
		{`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"` + text + `"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + media + `"}}]}]}`, 1000, 1050},
		{`{"model":"m","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"` + media + `","format":"wav"}}]}]}`, 20, 50},
		{`{"model":"m","prompt":[` + strings.Repeat("12345,", 999) + `12345]}`, 1000, 1010},
		{`{"model":"m","prompt":[[1,2,3],[4, 5]]}`, 5, 12},
		{`{"model":"m","input":[101, 102]}`, 2, 8},
	}
	for _, tt := range tests {
		if got := mustScan(t, tt.body).PromptTokens; got < tt.lo || got > tt.hi {
			t.Errorf("%.80s: %d tokens, want %d to %d", tt.body, got, tt.lo, tt.hi)
		}
	}
	r := mustScan(t, `{"model":"m","prompt":[1,2,3],"max_tokens":100}`)
	if got, want := r.ContextTokens(), r.PromptTokens+100; got != want {
		t.Errorf("context of %d tokens, want %d", got, want)
	}
}

func TestCapabilities(t *testing.T) {
	for _, tt := range []struct {
		r    Request
		want string
	}{{Request{}, "[]"}, {Request{Tools: true}, "[tools]"}, {Request{Vision: true}, "[vision]"}, {Request{Tools: true, Vision: true}, "[tools vision]"}} {
		if got := fmt.Sprint(tt.r.Capabilities()); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

// The allocations of a scan are few and do not grow with the body.
func TestScanAllocatesLittle(t *testing.T) {
	for _, turns := range []int{1, 1000} {
		body := chatBody(turns, 2000)
		if allocs := testing.AllocsPerRun(10, func() {
			if _, err := ScanJSON(body); err != nil {
				t.Fatal(err)
			}
		}); allocs > 2 {
			t.Errorf("%d bytes: %v allocations, want at most 2", len(body), allocs)
		}
	}
}

func TestPlainBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 20000 {
		b := make([]byte, r.IntN(40))
		for i := range b {
			b[i] = byte(r.Uint32())
			if r.IntN(8) > 0 && (b[i] < ' ' || b[i] == '"' || b[i] == '\\') {
				b[i] |= 0x80
			}
		}
		want := 0
		for want < len(b) && b[want] >= ' ' && b[want] != '"' && b[want] != '\\' {
			want++
		}
		if got := plainBytes(b); got != want {
			t.Fatalf("%q: %d, want %d", b, got, want)
		}
	}
}

// chatBody is a conversation of so many turns of so many bytes, with the
// escapes that text has.
func chatBody(turns, size int) []byte {
	var b strings.Builder
	b.WriteString(`{"messages":[{"role":"system","content":"You help."}`)
	line := `The quick brown fox jumps over the \"lazy\" dog, and 57 more words.\n`
	text := strings.Repeat(line, size/len(line)+1)
	for i := range turns {
		fmt.Fprintf(&b, `,{"role":"%s","content":"%d %s"}`, []string{"user", "assistant"}[i%2], i, text)
	}
	b.WriteString(`],"model":"org/model","stream":true}`)
	return []byte(b.String())
}

func BenchmarkScanJSON(b *testing.B) {
	for _, bench := range []struct {
		name string
		body []byte
	}{
		{"4KB", chatBody(4, 1000)},
		{"1MB", chatBody(100, 10000)},
		{"structure", []byte(`{"model":"m","tools":[` + strings.TrimSuffix(strings.Repeat(`{"type":"function","function":{"name":"f","parameters":{"a":[1,2,3]}}},`, 1000), ",") + `]}`)},
		{"tokens", []byte(`{"model":"m","prompt":[` + strings.Repeat("12345, ", 10000) + `1]}`)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(bench.body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ScanJSON(bench.body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
