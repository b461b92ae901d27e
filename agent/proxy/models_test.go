package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"regexp"
	"testing"

	"github.com/irb-project/irb/agent/snapshot"
)

// TestModels: where classes are told apart by model, the agent itself says which
// models there are; where a class takes the request, its engines do.
func TestModels(t *testing.T) {
	e := engine(t, func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("of the engine")) })
	s := fleet(named("a", e))
	s.Classes[0].Match.Models = []string{"org/large", "org/small"}
	r := start(t, s, "")
	get := func(path string) *http.Response {
		t.Helper()
		resp, err := r.do(context.Background(), "GET", path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	var list struct {
		Object string
		Data   []struct {
			ID, Object string
			Created    int64
			OwnedBy    string `json:"owned_by"`
		}
	}
	resp := get("/v1/models")
	if err := json.Unmarshal([]byte(read(t, resp)), &list); err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%v, %v", resp, err)
	}
	var ids []string
	for _, m := range list.Data {
		ids = append(ids, m.ID)
		if m.Object != "model" || m.OwnedBy != s.Fleet || m.Created != s.Created.Unix() {
			t.Errorf("%+v", m)
		}
	}
	if list.Object != "list" || !reflect.DeepEqual(ids, s.Classes[0].Match.Models) {
		t.Errorf("%+v", list)
	}
	expect(t, get("/v1/models/org/large"), 200, `"id":"org/large"`)
	expect(t, get("/v1/models/org/none"), 404, "model_not_found")
	expect(t, get("/v1/modelsx"), 404, "model_not_found")
	if resp, err := r.do(context.Background(), "HEAD", "/v1/models", nil); err != nil || resp.StatusCode != 200 || resp.ContentLength <= 0 {
		t.Errorf("%v %v", resp, err)
	}
	if resp, err := r.do(context.Background(), "DELETE", "/v1/models/org/large", nil); err != nil || resp.StatusCode != 404 {
		t.Errorf("%v %v", resp, err)
	}

	s = fleet(named("a", e))
	s.Classes[0].Match, s.Classes[0].Model = snapshot.Match{}, ""
	s.Sequence++
	r.publish(s)
	expect(t, get("/v1/models"), 200, "of the engine")
}

// TestSeriesOfWhatIsGone: the metrics do not grow with every class and engine
// that ever was.
func TestSeriesOfWhatIsGone(t *testing.T) {
	r := start(t, nil, "")
	for i := range 3 {
		s := fleet(named(fmt.Sprintf("engine-%d", i), engine(t, answerJSON("a"))))
		s.Sequence = int64(i)
		s.Classes[0].Name = fmt.Sprintf("class-%d", i)
		s.Sources[0].Class = s.Classes[0].Name
		r.publish(s)
		expect(t, r.post(chatBody), 200, `"a"`)
	}
	w := httptest.NewRecorder()
	r.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, old := range []string{"class-0", "class-1", "engine-0", "engine-1"} {
		if line := regexp.MustCompile(".*" + old + ".*").FindString(w.Body.String()); line != "" {
			t.Errorf("still there: %s", line)
		}
	}
}

func TestOutside(t *testing.T) {
	s := &snapshot.Snapshot{Engines: []snapshot.Engine{
		{Name: "in", Endpoints: []string{"http://10.0.0.1:8000", "http://name.test:8000", "https://[fd00::1]"}},
		{Name: "out", Endpoints: []string{"http://10.0.0.2:8000", "http://192.0.2.1:8000/v1"}},
		{Name: "guarded", Endpoints: []string{"http://127.0.0.1"}},
	}}
	allowed := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("0.0.0.0/1")}
	want := []string{`engine "out": http://192.0.2.1:8000/v1`, `engine "guarded": http://127.0.0.1`}
	if got := Outside(s, allowed); !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
