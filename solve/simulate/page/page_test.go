package page

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/irb-project/irb/solve/simulate/report"
)

// The page is whole, loads nothing, and shows each policy and engine.
func TestWrite(t *testing.T) {
	r := &report.Result{Policy: `a "<b>" & c`, Engines: []string{"e-1", "e-2"}}
	for i := range 1000 {
		r.Bins = append(r.Bins, report.Bin{Offered: 10, Failed: 1, TTFTMs: float64(i), Sent: []int{i % 7, 3}})
	}
	var b strings.Builder
	if err := Write(&b, "what <came>", []*report.Result{r, {Policy: "d", Engines: r.Engines, Bins: r.Bins}}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{"what &lt;came&gt;", "a &#34;&lt;b&gt;&#34; &amp; c", "e-1", "e-2", "Mean latency", "Share of each engine, d", "Oscillation: none"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, bad := range []string{"<script", "<b>", "src=", "href=\"http", "url("} {
		if strings.Contains(page, bad) {
			t.Errorf("has %q", bad)
		}
	}
	if n := strings.Count(page, "<svg"); n != 5 {
		t.Errorf("%d drawings, want 5", n)
	}
	for _, svg := range strings.Split(page, "<svg")[1:] {
		text, _, _ := strings.Cut("<svg"+svg, "</svg>")
		d := xml.NewDecoder(strings.NewReader(text + "</svg>"))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("a drawing is no XML: %v", err)
			}
		}
	}
}
