// Package page shows explanations as one HTML file that stands for itself: it
// loads nothing, carries its numbers as JSON and every chart beside a table.
//
// Tables and sentences are written here, so that the page can be read without
// scripts; page.js draws the charts from the JSON with Apache ECharts (in the
// folder echarts, as it was published) and filters. A content security policy
// lets only these two scripts run, by their digests, and lets nothing load.
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the parts of the page
	"encoding/base64"
	"encoding/json"
	"html/template"
	"io"
	"strconv"

	"github.com/irb-project/irb/explain/report"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string
	//go:embed echarts/echarts.min.js
	echartsJS string
)

// document is a page as the template takes it.
type document struct {
	Title    string
	Facts    []string  // lines under the title
	Findings []finding // what a reader should know first
	Sources  []string  // to filter by
	Engines  []string
	Sections []section

	Data template.JS // what page.js draws from

	CSS               template.CSS
	Library, Script   template.JS
	LibrarySum, JSSum string
}

// finding is a sentence and what it is about.
type finding struct{ About, Text string }

// section is a part of the page that the contents list.
type section struct {
	ID     string
	Title  string
	Blocks []block
}

// block is one of: a figure, a part of a report, an article about a source.
type block struct {
	Figure  *fig
	Heading string
	Line    string
	Note    string
	Items   []string
	Table   *table
	Article *article
}

// fig is a chart that page.js draws: kind says which, the rest what of.
type fig struct {
	Kind   string
	Title  string // of the figure; with what it says, as far as it is not a matter of the data
	Source string
	Engine string
	Unit   string // how to read it
}

// article is about one source.
type article struct {
	Source  string
	Engines string // JSON: those that it uses, could use or falls back to
	Title   string
	Open    bool // else a reader opens it
	Blocks  []block
}

// table is a report's table with what its rows can be filtered by.
type table struct {
	Columns []report.Column
	Rows    []row
}

type row struct {
	Source, Engine string
	Cells          []cell
}

type cell struct {
	report.Cell
	Kind   report.Kind
	Number string // the exact number, "" for text
}

// blocks takes a report apart.
func blocks(r *report.Report) []block {
	var list []block
	for _, part := range r.Parts {
		switch p := part.(type) {
		case report.Heading:
			list = append(list, block{Heading: string(p)})
		case report.Line:
			list = append(list, block{Line: string(p)})
		case report.Note:
			list = append(list, block{Note: string(p)})
		case report.Item:
			if n := len(list); n == 0 || list[n-1].Items == nil {
				list = append(list, block{})
			}
			last := &list[len(list)-1]
			last.Items = append(last.Items, string(p))
		case *report.Table:
			list = append(list, block{Table: tableOf(p)})
		}
	}
	return list
}

func tableOf(t *report.Table) *table {
	out := &table{Columns: t.Columns}
	for _, cells := range t.Rows {
		var r row
		for i, c := range cells {
			kind := t.Columns[i].Kind
			x := cell{Cell: c, Kind: kind}
			if c.Exact {
				x.Number = strconv.FormatFloat(c.Value, 'g', -1, 64)
			}
			switch kind {
			case report.Source:
				r.Source = c.Text
			case report.Engine:
				r.Engine = c.Text
			}
			r.Cells = append(r.Cells, x)
		}
		out.Rows = append(out.Rows, r)
	}
	return out
}

// write puts the page together.
func (d *document) write(w io.Writer, data any) error {
	encoded, err := json.Marshal(data) // with <, > and & escaped
	if err != nil {
		return err
	}
	d.Data = template.JS(encoded)
	d.CSS, d.Library, d.Script = template.CSS(pageCSS), template.JS(echartsJS), template.JS(pageJS)
	d.LibrarySum, d.JSSum = digest(echartsJS), digest(pageJS)
	t, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, d); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// digest names a script for the content security policy.
func digest(script string) string {
	sum := sha256.Sum256([]byte(script))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
