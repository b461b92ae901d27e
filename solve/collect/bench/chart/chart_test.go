package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/irb-project/irb/solve/collect/bench"
)

const sweep = `concurrency,ttft_ms,tpot_ms,isl,osl
1,100,10,100,11
4,120,12,100,11
8,180,18,100,11
16,340,34,100,11
`

func fitted(t *testing.T) *bench.Profile {
	t.Helper()
	results, err := bench.Read([]bench.File{{Name: "x.csv", Data: []byte(sweep)}}, bench.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := bench.Fit(results.Runs, bench.FitOptions{Name: `a<b&"c"`})[0]
	if p.Refusal != "" || len(p.Points) != 4 {
		t.Fatalf("got %+v, want a profile of 4 points", p)
	}
	return p
}

func TestTerminal(t *testing.T) {
	p := fitted(t)
	text := Terminal(p)
	if !strings.Contains(text, `a<b&"c": ms for 100 + 11 tokens against utilization (line: fit, o: measured)`) {
		t.Errorf("no caption in\n%s", text)
	}
	lines := strings.Split(text, "\n")
	// 100 + 11 x 10 ms without load, 340 + 11 x 34 at the top.
	if !strings.HasPrefix(strings.TrimSpace(lines[0]), "714 ") || !strings.HasPrefix(strings.TrimSpace(lines[12]), "210 ┼o") {
		t.Errorf("want 714 ms at the top and a point at 210 ms at the bottom:\n%s", text)
	}
	if !strings.HasSuffix(strings.TrimRight(lines[0], " "), "o") {
		t.Errorf("want the last point at the top right:\n%s", text)
	}
}

func TestSVG(t *testing.T) {
	p := fitted(t)
	svg, err := SVG(p)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	points := 0
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not XML: %v\n%s", err, svg)
		}
		switch x := token.(type) {
		case xml.CharData:
			text.Write(x)
		case xml.StartElement:
			for _, a := range x.Attr {
				if a.Name.Local == "style" && strings.Contains(a.Value, "fill:#D62728") {
					points++
				}
			}
		}
	}
	for _, want := range []string{`a<b&"c"`, "100 + 11 tokens, capacity 23.5294 req/s", "TTFT, ms", "TBOT, ms", "knee ", "max "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in the text %q", want, text.String())
		}
	}
	if points != 2*(4+1) { // two charts of four points and one in the legend
		t.Errorf("%d points, want 10", points)
	}
	again, err := SVG(p)
	if err != nil || !bytes.Equal(svg, again) {
		t.Errorf("the same profile gives another picture (%v)", err)
	}
}
