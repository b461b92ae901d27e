// Package page shows what came of a simulation as one HTML file that stands for
// itself: the table of policies, and curves over time as drawings inside it. It
// has no scripts and loads nothing.
package page

import (
	"bytes"
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/irb-project/irb/solve/simulate/report"
)

//go:embed page.html
var pageHTML string

// figure is a chart with what it shows in words.
type figure struct {
	Title, Note string
	SVG         template.HTML
}

// curve is one line of a chart.
type curve struct {
	name  string
	bins  []report.Bin
	value func(b *report.Bin) float64
}

// Write writes the page.
func Write(w io.Writer, title string, results []*report.Result) error {
	t, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return err
	}
	var figures []figure
	for _, c := range overTime {
		curves := make([]curve, len(results))
		for i, r := range results {
			curves[i] = curve{r.Policy, r.Bins, c.value}
		}
		f, err := chart(c.title, c.unit, curves)
		if err != nil {
			return err
		}
		figures = append(figures, f)
	}
	for _, r := range results {
		f, err := chart("Share of each engine, "+r.Policy, "% of attempts", shares(r))
		if err != nil {
			return err
		}
		f.Note = "Oscillation: " + r.Oscillation.String()
		figures = append(figures, f)
	}
	head, rows := report.Cells(results)
	return t.Execute(w, struct {
		Title   string
		Head    []string
		Rows    [][]string
		Figures []figure
	}{title, head, rows, figures})
}

// overTime are the charts that compare policies.
var overTime = []struct {
	title, unit string
	value       func(b *report.Bin) float64
}{
	{"Mean time to first token", "s", func(b *report.Bin) float64 { return b.TTFTMs / 1000 }},
	{"Mean latency", "s", func(b *report.Bin) float64 { return b.LatencyMs / 1000 }},
	{"Not answered", "% of offered", func(b *report.Bin) float64 { return percent(b.Shed+b.Failed, b.Offered) }},
}

// shares are the curves of the engines of one policy.
func shares(r *report.Result) []curve {
	curves := make([]curve, len(r.Engines))
	for e, name := range r.Engines {
		curves[e] = curve{name, r.Bins, func(b *report.Bin) float64 {
			all := 0
			for _, n := range b.Sent {
				all += n
			}
			return percent(b.Sent[e], all)
		}}
	}
	return curves
}

func percent(part, whole int) float64 { return 100 * float64(part) / float64(max(1, whole)) }

// maxPoints bounds the points of a curve, each the mean of several bins.
const maxPoints = 360

// chart draws curves against minutes.
func chart(title, unit string, curves []curve) (figure, error) {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "min", unit
	p.Legend.Top, p.Legend.Left = true, true // names end where no line begins
	p.Add(plotter.NewGrid())
	for i, c := range curves {
		line, err := plotter.NewLine(points(c))
		if err != nil {
			return figure{}, fmt.Errorf("%s: %w", title, err)
		}
		// Colour and dashes, so that eight of them can be told apart.
		line.Color, line.Dashes = plotutil.Color(i), plotutil.Dashes(i/4)
		line.Width = vg.Points(1.2)
		p.Add(line)
		p.Legend.Add(c.name, line)
	}
	p.Y.Min, p.Y.Max = 0, max(1, 1.25*p.Y.Max)
	canvas := vgsvg.New(24*vg.Centimeter, 9*vg.Centimeter)
	p.Draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return figure{}, fmt.Errorf("%s: %w", title, err)
	}
	// Without the XML declaration, so that it can stand in a page.
	svg := b.Bytes()[bytes.Index(b.Bytes(), []byte("<svg")):]
	return figure{Title: title, SVG: template.HTML(svg)}, nil
}

func points(c curve) plotter.XYs {
	step := max(1, (len(c.bins)+maxPoints-1)/maxPoints)
	var xy plotter.XYs
	for i := 0; i < len(c.bins); i += step {
		group := c.bins[i:min(i+step, len(c.bins))]
		sum := 0.0
		for j := range group {
			sum += c.value(&group[j])
		}
		xy = append(xy, plotter.XY{X: float64(i) * report.BinS / 60, Y: sum / float64(len(group))})
	}
	return xy
}
