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
	{"TTFT mean ms", func(r *Result) string { return answered(r, ms(r.TTFTMs.Mean)) }},
	{"p50", func(r *Result) string { return answered(r, ms(r.TTFTMs.P50)) }},
	{"p99", func(r *Result) string { return answered(r, ms(r.TTFTMs.P99)) }},
	{"latency mean s", func(r *Result) string { return answered(r, seconds(r.LatencyMs.Mean)) }},
	{"p50", func(r *Result) string { return answered(r, seconds(r.LatencyMs.P50)) }},
	{"p99", func(r *Result) string { return answered(r, seconds(r.LatencyMs.P99)) }},
	{"goodput", func(r *Result) string { return percent(r.Goodput) }},
	{"prefix hits", func(r *Result) string { return percent(r.HitRate) }},
	{"moved", func(r *Result) string { return percent(r.MovedShare) }},
	{"swing", func(r *Result) string { return r.Oscillation.String() }},
	{"shed", func(r *Result) string { return percent(ratio(float64(r.Shed), float64(r.Offered))) }},
	{"top class lost", func(r *Result) string { return percent(r.Lost()) }},
	{"failed", func(r *Result) string { return percent(ratio(float64(r.Failed), float64(r.Offered))) }},
	{"retries", func(r *Result) string { return percent(ratio(float64(r.Retries), float64(r.Offered))) }},
}

// answered hides a latency that nothing had: 0 would be read as the best.
func answered(r *Result, figure string) string {
	if r.Answered == 0 {
		return "-"
	}
	return figure
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

// Cells returns the table of policies: its head, then a row per policy.
func Cells(results []*Result) (head []string, rows [][]string) {
	for _, c := range columns {
		head = append(head, c.name)
	}
	for _, r := range results {
		row := make([]string, len(columns))
		for i, c := range columns {
			row[i] = c.value(r)
		}
		rows = append(rows, row)
	}
	return head, rows
}

// Table prints the policies side by side, then the settings that were chosen.
func Table(w io.Writer, results []*Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head, rows := Cells(results)
	for _, row := range append([][]string{head}, rows...) {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		if r.Note == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", r.Policy, r.Note); err != nil {
			return err
		}
	}
	return nil
}

// Markdown prints the same table for a README.
func Markdown(w io.Writer, results []*Result) error {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	head, rows := Cells(results)
	line(head)
	b.WriteString("|---|" + strings.Repeat("---:|", len(head)-1) + "\n")
	for _, row := range rows {
		line(row)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
