package report

import "github.com/irb-project/irb/solve/figure"

// Table has a row of titles and rows of cells, one per column.
type Table struct {
	Columns []Column
	Rows    [][]Cell
}

// Column is a column of a table.
type Column struct {
	Title string
	Kind  Kind
}

// Kind says what the cells of a column are.
type Kind uint8

// The kinds. Sources and engines are text by which rows can be found.
const (
	Number Kind = iota
	Text
	Source // "cluster/class"
	Engine
)

// Cell is what stands in a table: a text and, for a number, the number itself.
type Cell struct {
	Text  string
	Value float64
	Exact bool // Value is set
}

// NewTable returns a table with columns and no rows.
func NewTable(columns ...Column) *Table { return &Table{Columns: columns} }

// Numbers are columns of numbers.
func Numbers(titles ...string) []Column { return columns(Number, titles) }

// Texts are columns of text.
func Texts(titles ...string) []Column { return columns(Text, titles) }

func columns(kind Kind, titles []string) []Column {
	list := make([]Column, len(titles))
	for i, title := range titles {
		list[i] = Column{title, kind}
	}
	return list
}

// Add adds a row.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, cells) }

// Word is a cell of text.
func Word(text string) Cell { return Cell{Text: text} }

// As is a cell with a number in the given form.
func As(v float64, text string) Cell { return Cell{Text: text, Value: v, Exact: true} }

// Ms is a cell of milliseconds.
func Ms(v float64) Cell { return As(v, figure.Ms(v)) }

// SignedMs is a cell of a difference of milliseconds.
func SignedMs(v float64) Cell { return As(v, figure.SignedMs(v)) }

// Rate is a cell of requests per second.
func Rate(v float64) Cell { return As(v, figure.Rate(v)) }

// Percent is a cell of a fraction.
func Percent(v float64) Cell { return As(v, figure.Percent(v)) }
