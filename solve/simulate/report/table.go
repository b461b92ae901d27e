package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// columns are those of the table of policies.
var columns = []struct {
	name  string
	value func(r *Result) string
}{
	{"policy", func(r *Result) string { return r.Policy }},
	{"TTFT mean ms", func(r *Result) string { return ms(r.TTFTMs.Mean) }},
	{"p50", func(r *Result) string { return ms(r.TTFTMs.P50) }},
	{"p99", func(r *Result) string { return ms(r.TTFTMs.P99) }},
	{"latency mean s", func(r *Result) string { return seconds(r.LatencyMs.Mean) }},
	{"p50", func(r *Result) string { return seconds(r.LatencyMs.P50) }},
	{"p99", func(r *Result) string { return seconds(r.LatencyMs.P99) }},
	{"goodput", func(r *Result) string { return percent(r.Goodput) }},
	{"prefix hits", func(r *Result) string { return percent(r.HitRate) }},
	{"moved", func(r *Result) string { return percent(r.MovedShare) }},
	{"swing", func(r *Result) string { return r.Oscillation.String() }},
	{"shed", func(r *Result) string { return percent(ratio(float64(r.Shed), float64(r.Offered))) }},
	{"top class lost", func(r *Result) string { return percent(r.Lost()) }},
	{"failed", func(r *Result) string { return percent(ratio(float64(r.Failed), float64(r.Offered))) }},
	{"retries", func(r *Result) string { return percent(ratio(float64(r.Retries), float64(r.Offered))) }},
}

func ms(x float64) string      { return fmt.Sprintf("%.0f", x) }
func seconds(x float64) string { return fmt.Sprintf("%.2f", x/1000) }
func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// String tells swing and period: "12.3 % in 140 s".
func (o Oscillation) String() string {
	if o.PeriodS == 0 {
		return "none"
	}
	return fmt.Sprintf("%s in %.0f s", percent(o.Swing), o.PeriodS)
}

// Table prints the policies side by side.
func Table(w io.Writer, results []*Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, c := range columns {
		if i > 0 {
			fmt.Fprint(t, "\t")
		}
		fmt.Fprint(t, c.name)
	}
	fmt.Fprintln(t)
	for _, r := range results {
		for i, c := range columns {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, c.value(r))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// Markdown prints the same table for a README.
func Markdown(w io.Writer, results []*Result) error {
	var b strings.Builder
	row := func(cell func(i int) string) {
		for i := range columns {
			b.WriteString("| " + cell(i) + " ")
		}
		b.WriteString("|\n")
	}
	row(func(i int) string { return columns[i].name })
	row(func(i int) string {
		if i == 0 {
			return "---"
		}
		return "---:"
	})
	for _, r := range results {
		row(func(i int) string { return columns[i].value(r) })
	}
	_, err := io.WriteString(w, b.String())
	return err
}
