package collect

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	prom "github.com/prometheus/common/model"
)

// exposition is what an agent's metrics say, by name and labels.
type exposition map[string]point

// point is one series of one scrape.
type point struct {
	name    string
	labels  map[string]string
	value   float64
	counter bool
}

// parseExposition reads the counters and gauges of an agent whose names begin
// with irb_. What is no finite number is left out: it is unknown. Of a series
// that is there twice the larger one is taken.
func parseExposition(r io.Reader) (exposition, error) {
	parser := expfmt.NewTextParser(prom.UTF8Validation)
	families, err := parser.TextToMetricFamilies(r)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	found := exposition{}
	for name, family := range families {
		if !strings.HasPrefix(name, "irb_") {
			continue
		}
		for _, m := range family.GetMetric() {
			x := point{name: name, labels: map[string]string{}}
			switch family.GetType() {
			case dto.MetricType_COUNTER:
				x.value, x.counter = m.GetCounter().GetValue(), true
			case dto.MetricType_GAUGE:
				x.value = m.GetGauge().GetValue()
			default:
				continue
			}
			if math.IsNaN(x.value) || math.IsInf(x.value, 0) || x.value < 0 {
				continue
			}
			var key strings.Builder
			key.WriteString(name)
			for _, l := range sortedLabels(m) {
				x.labels[l.GetName()] = l.GetValue()
				fmt.Fprintf(&key, "\x00%s\x00%s", l.GetName(), l.GetValue())
			}
			if last, twice := found[key.String()]; !twice || x.value > last.value {
				found[key.String()] = x
			}
		}
	}
	return found, nil
}

func sortedLabels(m *dto.Metric) []*dto.LabelPair {
	return slices.SortedFunc(slices.Values(m.GetLabel()), func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
}
