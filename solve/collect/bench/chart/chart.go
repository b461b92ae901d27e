// Package chart draws a fitted engine profile, for a terminal and as SVG.
package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"math"

	"github.com/guptarohit/asciigraph"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/irb-project/irb/solve/collect/bench"
	"github.com/irb-project/irb/solve/figure"
	"github.com/irb-project/irb/solve/profile"
)

// end is the highest utilization drawn.
func end(p *bench.Profile) float64 { return p.Points[len(p.Points)-1].Utilization }

// Terminal returns a chart of the reference request's latency in ms against
// utilization: the fitted curve, and o where it was measured.
func Terminal(p *bench.Profile) string {
	const width, height = 64, 12
	fitted := make([]float64, width)
	measured := make([]float64, width)
	for i := range fitted {
		fitted[i] = p.Fitted.ReferenceMs(end(p) * float64(i) / (width - 1))
		measured[i] = math.NaN()
	}
	for _, q := range p.Points {
		i := int(math.Round(q.Utilization / end(p) * (width - 1)))
		measured[i] = q.TTFTMs + p.OutputTokens*q.TBOTMs
	}
	return asciigraph.PlotMany([][]float64{fitted, measured},
		asciigraph.Height(height), asciigraph.Width(width),
		asciigraph.XAxisRange(0, end(p)),
		asciigraph.SeriesChars(asciigraph.DefaultCharSet, asciigraph.CreateCharSet("o")),
		asciigraph.YAxisValueFormatter(func(v float64) string { return figure.Number(v, 3) }),
		asciigraph.Caption(fmt.Sprintf("%s: ms for %s + %s tokens against utilization (line: fit, o: measured)",
			p.Name, figure.Number(p.PromptTokens, 4), figure.Number(p.OutputTokens, 4))))
}

// Colours that differ in brightness too.
var (
	fitColour      = color.RGBA{R: 31, G: 119, B: 180, A: 255}
	measuredColour = color.RGBA{R: 214, G: 39, B: 40, A: 255}
	markColour     = color.Gray{Y: 128}
)

// SVG returns two charts as an SVG document, TTFT above TBOT, both in ms
// against utilization, with the knee and max utilization marked.
func SVG(p *bench.Profile) ([]byte, error) {
	ttft := make(plotter.XYs, len(p.Points))
	tbot := make(plotter.XYs, len(p.Points))
	for i, q := range p.Points {
		ttft[i] = plotter.XY{X: q.Utilization, Y: q.TTFTMs}
		tbot[i] = plotter.XY{X: q.Utilization, Y: q.TBOTMs}
	}
	upper, err := panel(p, "TTFT, ms", p.Fitted.TTFT, ttft)
	if err != nil {
		return nil, err
	}
	upper.Title.TextStyle.Font.Size = 10
	upper.Title.Text = fmt.Sprintf("%s\n%s + %s tokens, capacity %s req/s", p.Name,
		figure.Number(p.PromptTokens, 4), figure.Number(p.OutputTokens, 4), figure.Rate(p.CapacityRPS))
	lower, err := panel(p, "TBOT, ms", p.Fitted.TBOT, tbot)
	if err != nil {
		return nil, err
	}
	lower.X.Label.Text = fmt.Sprintf("utilization (dashed: knee %s, dotted: max %s)", figure.Percent(p.Knee), figure.Percent(p.MaxUtilization))

	canvas := vgsvg.New(16*vg.Centimeter, 18*vg.Centimeter)
	tiles := draw.Tiles{Rows: 2, Cols: 1, PadY: 4 * vg.Millimeter, PadTop: 2 * vg.Millimeter, PadBottom: 2 * vg.Millimeter, PadLeft: 2 * vg.Millimeter, PadRight: 4 * vg.Millimeter}
	panels := [][]*plot.Plot{{upper}, {lower}}
	for i, row := range plot.Align(panels, tiles, draw.New(canvas)) {
		panels[i][0].Draw(row[0])
	}
	var b bytes.Buffer
	_, err = canvas.WriteTo(&b)
	return b.Bytes(), err
}

// panel draws one curve, its points, and the marks.
func panel(p *bench.Profile, name string, fitted profile.Curve, measured plotter.XYs) (*plot.Plot, error) {
	chart := plot.New()
	chart.Y.Label.Text = name
	chart.X.Min, chart.X.Max = 0, 1
	chart.Y.Min = 0
	chart.Add(plotter.NewGrid())

	fit := plotter.NewFunction(fitted.At)
	fit.Color, fit.Width, fit.Samples, fit.XMin, fit.XMax = fitColour, vg.Points(1.5), 400, 0, end(p)
	points, err := plotter.NewScatter(measured)
	if err != nil {
		return nil, err
	}
	points.Color, points.Shape, points.Radius = measuredColour, draw.CircleGlyph{}, vg.Points(3)
	top := fitted.At(end(p))
	for _, q := range measured {
		top = max(top, q.Y)
	}
	chart.Y.Max = 1.05 * top
	for _, mark := range []struct {
		at     float64
		dashes []vg.Length
	}{{p.Knee, []vg.Length{vg.Points(6), vg.Points(3)}}, {p.MaxUtilization, []vg.Length{vg.Points(1.5), vg.Points(2.5)}}} {
		line, err := plotter.NewLine(plotter.XYs{{X: mark.at, Y: 0}, {X: mark.at, Y: chart.Y.Max}})
		if err != nil {
			return nil, err
		}
		line.Color, line.Dashes = markColour, mark.dashes
		chart.Add(line)
	}
	chart.Add(fit, points)
	chart.Legend.Add("measured", points)
	chart.Legend.Add("fit", fit)
	chart.Legend.Top, chart.Legend.Left = true, true
	return chart, nil
}
