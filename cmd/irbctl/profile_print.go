package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/irb-project/irb/solve/collect/bench"
	"github.com/irb-project/irb/solve/collect/bench/chart"
	"github.com/irb-project/irb/solve/figure"
)

// printProfiles prints the table of all configurations; of a single one, its
// notes and its chart too.
func printProfiles(w io.Writer, report *profileReport) {
	for _, s := range report.Sources {
		fmt.Fprintf(w, "%s: %s", s.File, s.Format)
		if len(s.By) > 0 {
			fmt.Fprintf(w, "; configurations by %s", strings.Join(s.By, ", "))
		}
		if len(s.Ignored) > 0 {
			fmt.Fprintf(w, "; not used: %s", strings.Join(s.Ignored, ", "))
		}
		fmt.Fprintln(w)
	}
	for _, n := range report.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	fmt.Fprintln(w)
	printProfileTable(w, report.Profiles)
	printProfileNotes(w, report.Profiles)
	if len(report.Profiles) == 1 && report.Profiles[0].Refusal == "" {
		printProfile(w, report.Profiles[0])
	}
	printWork(w, report.OutputTokenWork)
}

// printProfileNotes prints what is to be said of the runs, up to a screenful
// or two.
func printProfileNotes(w io.Writer, profiles []*bench.Profile) {
	const most = 60
	shown, all := 0, 0
	for _, p := range profiles {
		for _, n := range p.Notes {
			if all++; shown < most {
				shown++
				fmt.Fprintf(w, "note: %s\n", n)
			}
		}
	}
	if all > shown {
		fmt.Fprintf(w, "and %d more notes; choose with --select, or see all with --json\n", all-shown)
	}
}

func printProfileTable(w io.Writer, profiles []*bench.Profile) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "profile\ttokens\truns\tpoints\tcapacity req/s\tknee\tmax\tfit off by\tnotes\tresult")
	refused := 0
	for _, p := range profiles {
		tokens := figure.Number(p.PromptTokens, 4) + "+" + figure.Number(p.OutputTokens, 4)
		runs := fmt.Sprintf("%d of %d", p.RunsRead-p.RunsLeftOut, p.RunsRead)
		if p.Refusal != "" {
			refused++
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t\t\t\t\t%d\trefused: %s\n", p.Name, tokens, runs, len(p.Points), len(p.Notes), p.Refusal)
			continue
		}
		capacity := figure.Rate(p.CapacityRPS)
		if p.CapacityAtLeast {
			capacity = ">= " + capacity
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%d\tok\n", p.Name, tokens, runs, len(p.Points), capacity,
			figure.Percent(p.Knee), figure.Percent(p.MaxUtilization), figure.Percent(p.WorstRelError), len(p.Notes))
	}
	t.Flush()
	fmt.Fprintf(w, "%s: %d fitted, %d refused\n", count(len(profiles), "configuration"), len(profiles)-refused, refused)
}

// printProfile draws the only profile and says what is proposed.
func printProfile(w io.Writer, p *bench.Profile) {
	fmt.Fprintf(w, "\n%s\n\n", chart.Terminal(p))
	fmt.Fprintf(w, "knee at utilization %s, %s req/s: throughput per latency is greatest there\n", figure.Percent(p.Knee), figure.Rate(p.Knee*p.CapacityRPS))
	if p.MaxUtilization > 0 {
		fmt.Fprintf(w, "max utilization %s: %s\n", figure.Percent(p.MaxUtilization), p.MaxBecause)
	}
}

// printWork prints the estimates of output_token_work. A policy has one number
// for all: the median of several configurations is a fair one.
func printWork(w io.Writer, estimates []bench.Work) {
	var values []float64
	for _, e := range estimates {
		if len(estimates) > 1 {
			fmt.Fprintf(w, "%s: ", e.Name())
		}
		fmt.Fprintln(w, e)
		if e.OutputTokenWork > 0 {
			values = append(values, e.OutputTokenWork)
		}
	}
	if len(values) > 1 {
		slices.Sort(values)
		fmt.Fprintf(w, "output_token_work of %d configurations: median %s, from %s to %s\n", len(values),
			figure.Number(values[len(values)/2], 3), figure.Number(values[0], 3), figure.Number(values[len(values)-1], 3))
	}
}
