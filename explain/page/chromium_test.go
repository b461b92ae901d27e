package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/explain"
)

func TestInChromium(t *testing.T) {
	b := newBrowser(t)
	x := whole(t, followTheSun(t))
	html := written(t, x)
	b.open(t, html, 1280)
	t.Run("every figure has a drawing", func(t *testing.T) { judgeFigures(t, b) })
	t.Run("numbers", func(t *testing.T) { judgeNumbers(t, b, x) })
	t.Run("keyboard", func(t *testing.T) { judgeKeyboard(t, b) })
	t.Run("filters", func(t *testing.T) { judgeFilters(t, b) })
	t.Run("dark", func(t *testing.T) { judgeDark(t, b) })
	t.Run("print", func(t *testing.T) { judgePrint(t, b) })
	t.Run("phone", func(t *testing.T) {
		b.open(t, html, 360)
		judgeFigures(t, b)
		if width := eval[float64](t, b, "document.documentElement.scrollWidth"); width > 360 {
			t.Errorf("the page is %v px wide on a phone of 360", width)
		}
	})
	t.Run("hostile names", func(t *testing.T) { judgeHostile(t, b, x.Snapshot) })
	t.Run("diff", func(t *testing.T) { judgeDiff(t, b, x.Snapshot) })
	b.quiet(t)
}

func judgeFigures(t *testing.T, b *browser) {
	const drawn = `(irb.drawAll(), [...document.querySelectorAll('figure.chart')].filter(f => !f.querySelector('svg path') || !irb.charts.get(f).readings.length).map(f => f.dataset.kind + ' ' + f.dataset.source + f.dataset.engine))`
	for _, name := range eval[[]string](t, b, drawn) {
		t.Errorf("the figure %s is empty", name)
	}
	if n := eval[int](t, b, "irb.charts.size"); n != 2+4+4+2*6 { // flows, engines, answers, sources
		t.Errorf("there are %d charts, want 22", n)
	}
}

// judgeNumbers compares what charts and tables show with the snapshot.
func judgeNumbers(t *testing.T, b *browser, x Explanation) {
	near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-9*max(1, math.Abs(want)) }
	const chart = `[...irb.charts].find(([f]) => f.dataset.kind === %q && f.dataset.source === %q && f.dataset.engine === %q)[1].chart.getOption()`
	sent := eval[map[string]float64](t, b, fmt.Sprintf(`Object.fromEntries(`+chart+`.series[0].links.map(l => [l.source + ' ' + l.target, l.value]))`, "flows", "", ""))
	share := eval[[]float64](t, b, fmt.Sprintf(chart+`.series[0].data.map(d => d.value[2])`, "heat", "", ""))
	cell, flows := 0, 0
	for i := range x.Snapshot.Sources {
		s := &x.Snapshot.Sources[i]
		weights := make(map[string]snapshot.Weight)
		for _, w := range s.Weights {
			weights[w.Engine] = w
			flows++
			if got := sent["s"+s.Cluster+"/"+s.Class+" e"+w.Engine]; !near(got, w.RPS) {
				t.Errorf("the flow of %s/%s to %s is %v, want %v", s.Cluster, s.Class, w.Engine, got, w.RPS)
			}
		}
		for _, e := range x.Snapshot.Engines {
			if !near(share[cell], weights[e.Name].Fraction) {
				t.Errorf("the heat map has %v of %s/%s on %s, want %v", share[cell], s.Cluster, s.Class, e.Name, weights[e.Name].Fraction)
			}
			cell++
		}
		costs := eval[[][]float64](t, b, fmt.Sprintf(chart+`.series.map(s => s.data)`, "costs", s.Cluster+"/"+s.Class, ""))
		for j, w := range s.Weights {
			total := 0.0
			for _, part := range costs {
				total += part[j]
			}
			if !near(total, w.Cost.Total) {
				t.Errorf("the parts of %s/%s on %s sum to %v, want %v", s.Cluster, s.Class, w.Engine, total, w.Cost.Total)
			}
		}
	}
	if len(sent) != flows || cell != len(share) {
		t.Errorf("there are %d flows and %d cells, want %d and %d", len(sent), len(share), flows, cell)
	}
	for _, e := range x.Snapshot.Engines {
		row := eval[[]float64](t, b, fmt.Sprintf(`[...document.querySelectorAll('#engines tr[data-engine=%q] data')].map(d => Number(d.value))`, e.Name))
		want := []float64{e.PlannedRPS, e.PlannedRefRPS / e.LimitRPS, e.Utilization, e.LatencyMs, e.PriceMs}
		for i := range want {
			if i >= len(row) || !near(row[i], want[i]) {
				t.Errorf("the row of %s is %v, want %v", e.Name, row, want)
				break
			}
		}
		point := eval[[]float64](t, b, fmt.Sprintf(chart+`.series[1].data[0]`, "curve", "", e.Name))
		if !near(point[0], e.PlannedRefRPS) || !near(point[1], e.LatencyMs) {
			t.Errorf("the plan of %s is at %v, want %v, %v", e.Name, point, e.PlannedRefRPS, e.LatencyMs)
		}
	}
}

// judgeKeyboard goes through the page with Tab and reads a figure with arrows.
func judgeKeyboard(t *testing.T, b *browser) {
	figures := eval[int](t, b, "document.querySelectorAll('figure.chart').length")
	eval[bool](t, b, "document.activeElement.blur(), window.reached = new Set(), true")
	for range 4 * figures {
		b.run(t, chromedp.KeyEvent(kb.Tab))
		if eval[int](t, b, "(document.activeElement.matches('figure.chart') && reached.add(document.activeElement), reached.size)") == figures {
			break
		}
	}
	if n := eval[int](t, b, "reached.size"); n != figures {
		t.Errorf("Tab reaches %d of %d figures", n, figures)
	}
	eval[bool](t, b, "document.querySelector('figure[data-kind=losses]').focus(), true")
	const reading = "document.activeElement.querySelector('.reading').textContent"
	b.run(t, chromedp.KeyEvent(kb.End), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
	if got := eval[string](t, b, reading); !strings.HasPrefix(got, "without eu-h200: 9.54 req/s not served until a new plan, then 9.54; mean latency +273.9 ms") {
		t.Errorf("the second loss reads %q", got)
	}
	b.run(t, chromedp.KeyEvent(kb.ArrowLeft))
	if got := eval[string](t, b, reading); !strings.HasPrefix(got, "without us-h100: ") {
		t.Errorf("the first loss reads %q", got)
	}
}

func choose(t *testing.T, b *browser, kind, value string) {
	t.Helper()
	eval[bool](t, b, fmt.Sprintf(`(s => (s.value = %q, s.dispatchEvent(new Event('change')), true))(document.getElementById('filter-%s'))`, value, kind))
}

func judgeFilters(t *testing.T, b *browser) {
	visible := func(selector string) int {
		return eval[int](t, b, fmt.Sprintf("[...document.querySelectorAll(%q)].filter(e => e.offsetParent).length", selector))
	}
	const rows = "[...irb.charts].find(([f]) => f.dataset.kind === 'heat')[1].chart.getOption().yAxis[0].data"
	choose(t, b, "source", "West Europe/chat-eu")
	if n := visible("article"); n != 1 {
		t.Errorf("%d sources are left of one", n)
	}
	if got := eval[[]string](t, b, rows); len(got) != 1 || got[0] != "West Europe/chat-eu" {
		t.Errorf("the heat map has %q", got)
	}
	if n := visible("#engines figure"); n != 1 { // only eu-h200 may serve it
		t.Errorf("%d engines are left, want 1", n)
	}
	choose(t, b, "source", "East US 2/chat") // the loss of eu-h200 moves nothing of it
	if n := visible("figure[data-kind=moves]"); n != 0 {
		t.Error("a figure without values is shown")
	}
	choose(t, b, "source", "")
	if n := visible("figure[data-kind=moves]"); n != 1 {
		t.Error("a figure that has values again is hidden")
	}
	choose(t, b, "engine", "au-h100")
	if got := eval[[]string](t, b, rows); len(got) != 4 { // not those of class chat-eu
		t.Errorf("of au-h100 the heat map has %q", got)
	}
	if n := visible("#value tbody tr"); n != 1 {
		t.Errorf("%d engines are left in the value of capacity, want 1", n)
	}
	choose(t, b, "engine", "")
	if n := visible("article"); n != 6 {
		t.Errorf("%d sources are there without filters, want 6", n)
	}
}

func emulate(t *testing.T, b *browser, media, scheme string) {
	t.Helper()
	params := emulation.SetEmulatedMediaParams{Media: media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, params); err != nil {
		t.Fatal(err)
	}
}

func judgeDark(t *testing.T, b *browser) {
	const colours = "[getComputedStyle(document.body).backgroundColor, document.querySelector('figure[data-kind=heat] text').getAttribute('fill')].join(' ')"
	if light := eval[string](t, b, colours); light != "rgb(245, 246, 248) #1b1f24" {
		t.Errorf("in the light page and chart are %s", light)
	}
	emulate(t, b, "", "dark")
	defer emulate(t, b, "", "light")
	// The page hears of it in its own time.
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](colours+" === 'rgb(15, 18, 22) #e6e9ed'")); err != nil {
		t.Errorf("in the dark page and chart are %s: %v", eval[string](t, b, colours), err)
	}
}

// judgePrint prints to paper: all of it, and light even where the screen is dark.
func judgePrint(t *testing.T, b *browser) {
	emulate(t, b, "", "dark")
	defer emulate(t, b, "", "light")
	eval[bool](t, b, `(window.printed = '', addEventListener('beforeprint', () => {
		printed = [document.querySelector('figure[data-kind=heat] text').getAttribute('fill'), document.querySelectorAll('details:not([open])').length].join(' ');
	}), true)`)
	pdf, err := chromedp.Run(b.ctx, chromedp.PrintToPDF())
	if err != nil {
		t.Fatal(err)
	}
	if printed := eval[string](t, b, "printed"); !bytes.HasPrefix(pdf, []byte("%PDF")) || printed != "#1b1f24 0" {
		t.Errorf("the print begins with %.10q; text of charts, closed parts: %q, want them dark and none", pdf, printed)
	}
	emulate(t, b, "print", "dark")
	if got := eval[string](t, b, "getComputedStyle(document.body).color + ' ' + getComputedStyle(document.getElementById('filters')).display"); got != "rgb(27, 31, 36) none" {
		t.Errorf("in print text is %s, want it dark and no filters", got)
	}
}

const hostile = `</script><img src=x onerror="window.owned=1">{{.}}<b>&amp;'`

// judgeHostile gives every text of a snapshot a name that would be markup.
func judgeHostile(t *testing.T, b *browser, s *snapshot.Snapshot) {
	encoded, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var evil snapshot.Snapshot
	if err := json.Unmarshal(encoded, &evil); err != nil {
		t.Fatal(err)
	}
	rename := func(names ...*string) {
		for _, name := range names {
			*name += hostile
		}
	}
	rename(&evil.Fleet, &evil.Author, &evil.Reason, &evil.Solver.Coverage, &evil.Solver.Method)
	evil.Solver.Notes = append(evil.Solver.Notes, hostile)
	for i := range evil.Inputs {
		rename(&evil.Inputs[i].File)
	}
	for i := range evil.Engines {
		rename(&evil.Engines[i].Name, &evil.Engines[i].Region)
	}
	for i := range evil.Sources {
		s := &evil.Sources[i]
		rename(&s.Cluster, &s.Class)
		for j := range s.Weights {
			rename(&s.Weights[j].Engine, &s.Weights[j].Text)
		}
		for j := range s.Alternatives {
			rename(&s.Alternatives[j].Engine, &s.Alternatives[j].Text)
		}
		for j := range s.Fallbacks {
			rename(&s.Fallbacks[j].Engine, &s.Fallbacks[j].Text)
		}
		for j := range s.LayoutTo {
			rename(&s.LayoutTo[j])
		}
	}
	b.open(t, written(t, Explanation{Snapshot: &evil, Notes: []string{hostile}}), 1280)
	eval[bool](t, b, `(irb.drawAll(), [...irb.charts].forEach(([f]) => { f.focus(); for (let i = 0; i < 3; i++) f.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'})); }), true)`)
	choose(t, b, "engine", evil.Engines[0].Name)
	if got := eval[string](t, b, `[document.querySelectorAll('img, b, main script').length, typeof window.owned, document.getElementById('filter-engine').value].join(' ')`); got != "0 undefined "+evil.Engines[0].Name {
		t.Errorf("images and scripts, owned, filter: %q", got)
	}
	if !eval[bool](t, b, fmt.Sprintf("document.querySelector('h1').textContent.endsWith(%q)", hostile)) {
		t.Error("the name of the fleet is not shown as it is")
	}
}

func judgeDiff(t *testing.T, b *browser, old *snapshot.Snapshot) {
	fleet := followTheSun(t)
	for i := range fleet.Demand {
		if fleet.Demand[i].Cluster == "West Europe" {
			fleet.Demand[i].RPS *= 0.8
		}
	}
	d := explain.Compare(old, snapshotOf(t, fleet))
	d.Attribution = &explain.Attribution{Groups: []explain.GroupPart{{Group: hostile, ObjectiveMsRPS: -5}}, ObjectiveMsRPS: -5}
	var html bytes.Buffer
	if err := WriteDiff(&html, d, "ok: "+hostile); err != nil {
		t.Fatal(err)
	}
	b.open(t, html.Bytes(), 360)
	if got := eval[string](t, b, `(irb.drawAll(), [document.querySelectorAll('figure.chart svg path').length > 0, document.querySelectorAll('img').length, document.documentElement.scrollWidth, irb.charts.size].join(' '))`); got != "true 0 360 3" {
		t.Errorf("drawn, images, width, charts: %s", got)
	}
	moved := eval[[]float64](t, b, `[...irb.charts].find(([f]) => f.dataset.kind === 'change')[1].chart.getOption().series[0].data`)
	var want []float64
	for _, s := range d.Sources {
		for _, m := range s.Moves {
			want = append(want, m.ThenRPS-m.NowRPS)
		}
	}
	if len(moved) != len(want) || len(want) == 0 {
		t.Fatalf("the chart has %d moves, want %d", len(moved), len(want))
	}
	sum, all := 0.0, 0.0
	for i := range want {
		sum, all = sum+moved[i], all+want[i]
		if i > 0 && math.Abs(moved[i]) > math.Abs(moved[i-1])+1e-9 {
			t.Errorf("the moves are not in order: %v", moved)
		}
	}
	if math.Abs(sum-all) > 1e-9 {
		t.Errorf("the moves sum to %v, want %v", sum, all)
	}
}
