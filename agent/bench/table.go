package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// row is one proxy with its rounds, latencies as added to those without proxy.
type row struct {
	name   string
	rounds []result
}

// columns are what is told of each proxy: a title, the value of a round and
// how it is written.
var columns = []struct {
	title  string
	value  func(result) float64
	format string
}{
	{"added p50 ms", func(r result) float64 { return ms(r.openP50) }, "%.3f"},
	{"added p99 ms", func(r result) float64 { return ms(r.openP99) }, "%.3f"},
	{"req/s", func(r result) float64 { return r.closedRPS }, "%.0f"},
	{"CPU us/req", func(r result) float64 { return 1000 * ms(r.cpuPerRequest) }, "%.1f"},
	{"CPU us/chunk", func(r result) float64 { return 1000 * ms(r.cpuPerChunk) }, "%.1f"},
	{"token p50 ms", func(r result) float64 { return ms(r.tokenP50) }, "%.3f"},
	{"token p99 ms", func(r result) float64 { return ms(r.tokenP99) }, "%.3f"},
	{"peak MiB", func(r result) float64 { return float64(r.peakBytes) / (1 << 20) }, "%.0f"},
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// median returns the middle value of one column over the rounds, the mean of
// the middle two if there are as many above as below.
func (w row) median(value func(result) float64) float64 {
	values := make([]float64, len(w.rounds))
	for i, r := range w.rounds {
		values[i] = value(r)
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// printTable prints medians, then those of the first row as multiples of each
// other row's. direct holds the latencies themselves.
func printTable(out io.Writer, direct row, rows []row) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	header := ""
	for _, c := range columns {
		header += c.title + "\t"
	}
	fmt.Fprintln(t, "\t"+header)
	line := func(name string, cell func(i int) string) {
		fmt.Fprint(t, name, "\t")
		for i := range columns {
			fmt.Fprint(t, cell(i), "\t")
		}
		fmt.Fprintln(t)
	}
	line("no proxy (total)", func(i int) string {
		v := direct.median(columns[i].value)
		if v == 0 {
			return "-"
		}
		return fmt.Sprintf(columns[i].format, v)
	})
	for _, w := range rows {
		line(w.name, func(i int) string { return fmt.Sprintf(columns[i].format, w.median(columns[i].value)) })
	}
	for _, w := range rows[min(1, len(rows)):] {
		line(rows[0].name+" / "+w.name, func(i int) string {
			return ratio(rows[0].median(columns[i].value), w.median(columns[i].value))
		})
	}
	return t.Flush()
}

// ratio writes a/b where it means something: added latencies near the noise of
// the machine can come out as zero or less.
func ratio(a, b float64) string {
	if a <= 0 || b <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", a/b)
}
