package report

import (
	"fmt"
	"io"
)

// PeriodsMarkdown prints what plans expected beside what happened, the mean of
// so many periods a row.
func PeriodsMarkdown(w io.Writer, periods []Period, group int) error {
	fmt.Fprintln(w, "| from s | plans | planned req/s | offered | latency by plan ms | seen | moved by plan | moved | recomputed by plan ms/s | recomputed |")
	fmt.Fprintln(w, "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	for i := 0; i < len(periods); i += group {
		list := periods[i:min(i+group, len(periods))]
		var m Period
		plans := 0
		for _, p := range list {
			if p.Failed == "" {
				plans++
			}
			m.PlannedRPS += p.PlannedRPS
			m.OfferedRPS += p.OfferedRPS
			m.LatencyMs += p.LatencyMs
			m.SeenMs += p.SeenMs
			m.MovedShare += p.MovedShare
			m.Moved += p.Moved
			m.ChurnMsPerS += p.ChurnMsPerS
			m.RecomputeMsPerS += p.RecomputeMsPerS
		}
		n, made := float64(len(list)), float64(max(1, plans))
		if _, err := fmt.Fprintf(w, "| %.0f | %d of %d | %.1f | %.1f | %.0f | %.0f | %s | %s | %.1f | %.1f |\n",
			list[0].AtS, plans, len(list), m.PlannedRPS/made, m.OfferedRPS/n, m.LatencyMs/made, m.SeenMs/n,
			percent(m.MovedShare/n), percent(m.Moved/n), m.ChurnMsPerS/n, m.RecomputeMsPerS/n); err != nil {
			return err
		}
	}
	return nil
}
