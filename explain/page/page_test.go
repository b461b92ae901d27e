package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/explain"
	"github.com/irb-project/irb/explain/report"
	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/input"
	"github.com/irb-project/irb/solve/model"
)

func followTheSun(t *testing.T) *model.Fleet {
	t.Helper()
	fleet, err := input.Read(input.Paths{Folder: "../../examples/follow-the-sun"})
	if err != nil {
		t.Fatal(err)
	}
	return fleet
}

func snapshotOf(t *testing.T, fleet *model.Fleet) *snapshot.Snapshot {
	t.Helper()
	plan, err := solve.Solve(context.Background(), fleet, solve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	contingencies, err := plan.Contingencies(context.Background(), 10)
	if err != nil {
		t.Fatal(err)
	}
	s, err := plan.Snapshot(solve.Head{Now: time.Unix(1, 0), ExpiresIn: time.Hour, Author: "ops", Reason: "test"}, contingencies)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// whole is an explanation with every kind of answer.
func whole(t *testing.T, fleet *model.Fleet) Explanation {
	t.Helper()
	ctx, opts := context.Background(), solve.Options{}
	x := Explanation{Snapshot: snapshotOf(t, fleet)}
	add := func(name string, found interface{ Report() *report.Report }, err error) {
		if err != nil {
			t.Fatal(err)
		}
		x.Answers = append(x.Answers, Answer{Name: name, Found: found})
	}
	change, err := explain.ParseChange("down eu-h200")
	if err != nil {
		t.Fatal(err)
	}
	whatIf, err := explain.AskWhatIf(ctx, fleet, opts, []explain.Change{change})
	add("what_if", whatIf, err)
	losses, err := explain.LoseEach(ctx, fleet, opts, x.Snapshot)
	add("n_1", losses, err)
	values, err := explain.ValueCapacity(ctx, fleet, opts, "+10%")
	add("value", values, err)
	knobs, err := explain.Sensitivity(ctx, fleet, opts)
	add("sensitivity", knobs, err)
	breakEvens, err := explain.FindBreakEvens(ctx, fleet, opts, "West Europe", "chat", "asia-b200")
	add("break_even", breakEvens, err)
	return x
}

func written(t *testing.T, x Explanation) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteExplanation(&b, x); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The library is the file that its authors published: dist/echarts.min.js of
// ECharts 6.1.0.
func TestLibraryIsAsPublished(t *testing.T) {
	const want = "b66b25aeb4df84e33199dc21694014d336d222cbd9deb0e5a7c14bd6aa0d0fd0"
	if sum := sha256.Sum256([]byte(echartsJS)); hex.EncodeToString(sum[:]) != want {
		t.Errorf("echarts.min.js has the digest %x, want %s", sum, want)
	}
	if !strings.Contains(echartsJS, `t.version="6.1.0"`) {
		t.Error("echarts.min.js is not version 6.1.0, as the page says")
	}
}

func TestPageLoadsNothing(t *testing.T) {
	html := written(t, whole(t, followTheSun(t)))
	if most := 5 << 18; len(html) > most {
		t.Errorf("the page has %d bytes, want at most %d", len(html), most)
	}
	rest := bytes.Replace(html, []byte(echartsJS), nil, 1)
	if len(rest) == len(html) {
		t.Fatal("the library is not in the page as it is")
	}
	for _, m := range regexp.MustCompile(`(?i)(src|href|action)\s*=\s*["']?([^"'\s>]*)|url\(|@import|<(link|img|iframe|object|embed)\b`).FindAllSubmatch(rest, -1) {
		if !bytes.HasPrefix(m[2], []byte("#")) {
			t.Errorf("the page refers to something: %q", m[0])
		}
	}
}

// The page's JSON is what --format json prints, and is not cut short by a name.
func TestPageCarriesTheJSON(t *testing.T) {
	x := whole(t, followTheSun(t))
	x.Snapshot.Reason = `</script><script>alert(1)</script>`
	html := written(t, x)
	_, after, _ := bytes.Cut(html, []byte(`id="data">`))
	text, _, _ := bytes.Cut(after, []byte("</script>"))
	var got struct {
		Snapshot any
		Answers  map[string]any
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	if err := explain.JSON(&printed, x.Snapshot); err != nil {
		t.Fatal(err)
	}
	var want any
	if err := json.Unmarshal(printed.Bytes(), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Snapshot, want) {
		t.Error("the snapshot in the page is not that of --format json")
	}
	for _, a := range x.Answers {
		encoded, err := json.Marshal(a.Found)
		if err != nil {
			t.Fatal(err)
		}
		var want any
		if err := json.Unmarshal(encoded, &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Answers[a.Name], want) {
			t.Errorf("the answer %s in the page is not that of --format json", a.Name)
		}
	}
}

// The page alone answers what an engineer asks of follow-the-sun.
func TestFindings(t *testing.T) {
	var text strings.Builder
	for _, f := range findings(whole(t, followTheSun(t))) {
		text.WriteString(f.Text + "\n")
	}
	for question, want := range map[string]string{
		"the bottleneck":             "asia-b200 is full (13.9068 of 13.9068 reference req/s); room for one more request there would save 1566 ms",
		"10 % more capacity":         "1.5452 req/s more at asia-b200 saves at most 11995 ms x req/s; re-solved: 11204, 284.7 ms of the mean latency",
		"traffic across an ocean":    "West Europe/chat sends 8.36784 req/s to asia-b200, 161 ms away, though eu-h200 is 1 ms away: asia-b200 takes 8.36784 req/s of West Europe/chat because eu-h200, the fastest without load, is at its limit",
		"Europe's largest engine":    "without eu-h200: 9.54 req/s cannot be served even by a new plan (West Europe/chat-eu 9.09, East US 2/chat-eu 0.45)",
		"and until there is a plan":  "9.54 req/s have no engine left",
		"what agents do to the rest": "until a new plan agents fill asia-b200 to 104.6 % of its limit",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("of %s the page does not say %q:\n%s", question, want, &text)
		}
	}
}

func TestCurveOf(t *testing.T) {
	table := curveOf(&snapshot.Engine{
		CapacityRPS: 10, LimitRPS: 9, PlannedRefRPS: 5, LatencyMs: 120,
		Profile: snapshot.Profile{OutputTokens: 10, TTFTV: []float64{0, 0.5, 1}, TTFTMs: []float64{100, 110, 200}, TBOTV: []float64{0}, TBOTMs: []float64{1}},
	})
	// TTFT + 10 TBOT at utilization 0.5 and 1.
	if i := slices.Index(table.Points, [2]float64{5, 120}); i < 0 || table.Points[0] != [2]float64{0, 110} || table.Points[len(table.Points)-1] != [2]float64{10, 210} {
		t.Errorf("curve is %v", table.Points)
	}
	if table.Plan != [2]float64{5, 120} || table.LimitRPS != 9 {
		t.Errorf("plan is %v, limit %v", table.Plan, table.LimitRPS)
	}
	ps := curveOf(&snapshot.Engine{
		CapacityRPS: 10, Utilization: 0.98,
		Profile: snapshot.Profile{OutputTokens: 10, TTFTV: []float64{0}, TTFTMs: []float64{100}, TBOTV: []float64{0}, TBOTMs: []float64{1}, Queueing: "ps"},
	})
	last := ps.Points[len(ps.Points)-1]
	if last[0] != 9.8 || math.Abs(last[1]-110/0.02) > 1e-6 { // T(0)/(1-v)
		t.Errorf("processor sharing ends at %v", last)
	}
}
