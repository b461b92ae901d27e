package standin

import (
	"net/http/httptest"
	"testing"
)

func FuzzReadRequest(f *testing.F) {
	for _, body := range []string{
		`{"model":"m","messages":[{"role":"user","content":"hello"}],"stream":true,"stream_options":{"include_usage":true}}`,
		`{"messages":[{"role":"system","content":[{"type":"text","text":"a"},{"type":"image_url"}]}],"max_completion_tokens":3}`,
		`{"prompt":"hello","max_tokens":1}`, `{"prompt":[1,2,3]}`, `{"prompt":["a","b"]}`, `{"max_tokens":-1}`, `[]`, `{`, ``,
	} {
		f.Add(body, true)
		f.Add(body, false)
	}
	e, err := New(Config{Name: "a-1", Profile: sharing(), CapacityRPS: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(e.Close)
	f.Fuzz(func(t *testing.T, body string, chat bool) {
		path := map[bool]string{true: "/v1/chat/completions", false: "/v1/completions"}[chat]
		q, err := e.readRequest(httptest.NewRecorder(), request(path, body))
		if err == nil && (q.outputTokens < 1 || q.promptTokens < 1 || q.chat != chat) {
			t.Errorf("%q: accepted with %d output and %v prompt tokens", body, q.outputTokens, q.promptTokens)
		}
	})
}

// Turns of one conversation have one key; another opening is another one.
func TestConversationKey(t *testing.T) {
	e := start(t, nil)
	key := func(path, body string) uint64 {
		t.Helper()
		q, err := e.readRequest(httptest.NewRecorder(), request(path, body))
		if err != nil {
			t.Fatal(err)
		}
		return q.key
	}
	const chatPath = "/v1/chat/completions"
	first := key(chatPath, `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}]}`)
	for body, same := range map[string]bool{
		`{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},{"role":"assistant","content":"a"},{"role":"user","content":"v"}]}`: true,
		`{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"v"}]}`:                                                                  false,
		`{"model":"m","messages":[{"role":"system","content":"t"},{"role":"user","content":"u"}]}`:                                                                  false,
		`{"model":"n","messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}]}`:                                                                  false,
	} {
		if got := key(chatPath, body) == first; got != same {
			t.Errorf("%s: same key is %v, want %v", body, got, same)
		}
	}
}
