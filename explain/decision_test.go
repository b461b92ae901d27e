package explain

import (
	"bytes"
	"strings"
	"testing"

	"github.com/irb-project/irb/agent/snapshot"
)

const decisionLine = `{"time":"2026-08-01T12:00:00Z","request_id":"r-1","class":"chat","key":"ab","key_source":"header x-session-id","snapshot":7,
"tried":[{"engine":"b-1","endpoint":"http://10.0.0.2:8000","rank":1,"failed":"timeout"},{"engine":"c-1","endpoint":"http://10.0.0.3:8000","rank":2}],
"skipped":[{"engine":"a-1","rank":0,"reason":"penalty"}],"outcome":"served","status":200,"took_ms":812.5}`

func decisionSnapshot() *snapshot.Snapshot {
	return &snapshot.Snapshot{Sequence: 7, Sources: []snapshot.Source{{
		Cluster: "us-east", Class: "chat",
		Weights:   []snapshot.Weight{{Engine: "a-1", Fraction: 0.75, Text: "a-1 is nearest."}, {Engine: "b-1", Fraction: 0.25, Text: "b-1 takes the rest."}},
		Fallbacks: []snapshot.Fallback{{Engine: "c-1", Text: "next by marginal cost"}},
	}}}
}

func TestDecision(t *testing.T) {
	s := decisionSnapshot()
	d, err := ReadDecision([]byte(decisionLine), s, "us-east")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := d.Report().WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`request "r-1" at 2026-08-01T12:00:00Z: class "chat" of us-east, key from "header x-session-id"` + "\n",
		"   0  a-1     75.0 %    passed over: penalty\n",
		"   1  b-1     25.0 %    tried at http://10.0.0.2:8000, failed: timeout\n",
		"   2  c-1     fallback  went to http://10.0.0.3:8000\n",
		"outcome served, status 200, after 812.5 ms\n",
		"a-1: a-1 is nearest.\n",
		"c-1: fallback: next by marginal cost\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the explanation lacks %q:\n%s", want, &out)
		}
	}
	s.Sequence = 8
	if d, err = ReadDecision([]byte(decisionLine), s, "us-east"); err != nil || !strings.Contains(d.Note, "served by snapshot 7; the reasons below are those of snapshot 8") {
		t.Errorf("note is %q, %v", d.Note, err)
	}
	for line, want := range map[string]string{"": "no decision", "{}": "no request_id", decisionLine[:40]: "no decision"} {
		if _, err := ReadDecision([]byte(line), s, "us-east"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want %q", line, err, want)
		}
	}
	if _, err := ReadDecision([]byte(decisionLine), s, "mars"); err == nil {
		t.Error("a cluster that is not in the snapshot is accepted")
	}
}

func FuzzReadDecision(f *testing.F) {
	f.Add([]byte(decisionLine))
	f.Add([]byte(`{"request_id":"r","outcome":"shed","class":"chat"}`))
	f.Add([]byte(`[1]`))
	s := decisionSnapshot()
	f.Fuzz(func(t *testing.T, line []byte) {
		if d, err := ReadDecision(line, s, "us-east"); err == nil {
			d.Report()
		}
	})
}
