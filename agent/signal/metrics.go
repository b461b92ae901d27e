package signal

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// ErrNoSeries is the error for metrics in which no series of a known engine is.
var ErrNoSeries = errors.New("no series of a known engine")

// Scrape is what the metrics of an engine say.
type Scrape struct {
	Report Report
	// Missing are the expected series that were not there: renamed, switched
	// off, or not made yet. What they would say is Unknown in the Report.
	Missing []Missing
}

// Missing is an expected series that an engine does not have.
type Missing struct {
	Family   string // of engine software
	Quantity Quantity
}

// reader reads metrics by the table of names.
type reader struct {
	table []series
	names map[string]bool
}

func newReader() *reader {
	r := &reader{table: metricNames(), names: map[string]bool{}}
	for _, s := range r.table {
		r.names[s.name] = true
	}
	return r
}

// ParseMetrics reads the Prometheus text of an engine. Engines have written
// lines that no parser takes ("-nan", a TYPE twice) among the thousands that do
// not matter here; so only the series of the table are parsed, and only what
// is wrong in those is an error.
func ParseMetrics(text []byte) (Scrape, error) { return newReader().parse(text) }

func (r *reader) parse(text []byte) (Scrape, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	found, err := parser.TextToMetricFamilies(bytes.NewReader(r.filter(text)))
	if err != nil {
		return Scrape{Report: Nothing()}, fmt.Errorf("metrics: %w", err)
	}
	s := Scrape{Report: Nothing()}
	if len(found) == 0 {
		return s, ErrNoSeries
	}
	var sums [families][quantities]total
	present := [families]bool{}
	for _, row := range r.table {
		mf := found[row.name]
		if mf == nil {
			continue
		}
		present[row.family] = true
		if t := &sums[row.family][row.quantity]; row.use != instead || t.n == 0 {
			t.add(row, mf)
		}
	}
	for _, rows := range sums {
		s.take(rows)
	}
	for _, row := range r.table {
		if row.use == expected && present[row.family] && sums[row.family][row.quantity].n == 0 {
			s.Missing = append(s.Missing, Missing{familyNames[row.family], row.quantity})
		}
	}
	return s, nil
}

// total is a quantity summed over its series.
type total struct {
	sum float64
	n   int
	bad bool // one of them is no believable number: then the sum is none
}

func (t *total) add(row series, mf *dto.MetricFamily) {
	for _, m := range mf.Metric {
		if row.label != "" && !hasLabel(m, row.label, row.labelValue) {
			continue
		}
		x := m.GetUntyped().GetValue()
		t.sum += x
		t.n++
		t.bad = t.bad || !believable(row.quantity, x)
	}
}

func hasLabel(m *dto.Metric, name, value string) bool {
	for _, l := range m.Label {
		if l.GetName() == name {
			return l.GetValue() == value
		}
	}
	return false
}

// take puts what one family said into the report.
func (s *Scrape) take(rows [quantities]total) {
	for q, t := range rows {
		switch {
		case t.n == 0:
		case t.bad:
			s.Report.set(Quantity(q), Unknown())
		case Quantity(q) == KVUsage:
			s.Report.set(KVUsage, t.sum/float64(t.n))
		default:
			s.Report.set(Quantity(q), t.sum)
		}
	}
}

// filter returns the lines of the series in the table. Without their TYPE they
// are parsed as untyped, whatever they were declared as.
func (r *reader) filter(text []byte) []byte {
	var kept bytes.Buffer
	for len(text) > 0 {
		line := text
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			line, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		line = bytes.TrimLeft(bytes.TrimSuffix(line, []byte("\r")), " \t")
		end := bytes.IndexAny(line, "{ \t")
		if end > 0 && r.names[string(line[:end])] {
			kept.Write(line)
			kept.WriteByte('\n')
		}
	}
	return kept.Bytes()
}

// readMetrics reads at most limit bytes.
func (r *reader) readMetrics(body io.Reader, limit int64) (Scrape, error) {
	text, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return Scrape{Report: Nothing()}, err
	}
	if int64(len(text)) > limit {
		return Scrape{Report: Nothing()}, fmt.Errorf("metrics: over %d bytes", limit)
	}
	return r.parse(text)
}
