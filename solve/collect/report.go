package collect

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Text writes what was found for people.
func (r *Result) Text(w io.Writer) {
	fmt.Fprintf(w, "fleet %s, from %s\n\n", r.Fleet, r.Source)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "source\treq/s\tlevel\tshape\tmargin\tprompt\toutput\tcached\tper key\tas given")
	for _, s := range r.Sources {
		level, shape, margin := "-", "-", "-"
		if f := s.Forecast; f != nil {
			level, shape, margin = figures(f.Level), fmt.Sprintf("x %.3g", f.Shape), fmt.Sprintf("x %.3g", f.Margin)
		}
		fmt.Fprintf(t, "%s/%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.3g %%\t%s\t%s\n", s.Cluster, s.Class, figures(s.RPS), level, shape, margin,
			figures(s.PromptTokens), figures(s.OutputTokens), 100*s.CachedFraction, figures(s.RequestsPerKey), strings.Join(s.Kept, ", "))
	}
	fmt.Fprintln(t)
	fmt.Fprintln(t, "engine\thealth\tgiven\tevidence")
	for _, e := range r.Engines {
		evidence := e.Evidence
		if evidence == "" {
			evidence = "none, as given"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", e.Engine, figures(e.Health), figures(e.Given), evidence)
	}
	t.Flush()
	fmt.Fprintf(w, "\nround trips: %d measured, %d as given\n", r.Latency.Measured, r.Latency.Kept)
	for _, note := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", note)
	}
}

// explain says in words where a row of demand is from.
func (s *SourceDemand) explain() string {
	f := s.Forecast
	if f == nil {
		return "not measured, as the fleet has it"
	}
	over, shape, margin := "1 h", "no week of data", "by default"
	if f.Stepped {
		over = "15 min, after a step"
	}
	if f.HasWeek {
		shape = "of last week"
	}
	if f.Backtests > 0 {
		margin = fmt.Sprintf("of %d forecasts of the last day", f.Backtests)
	}
	text := fmt.Sprintf("%s req/s (%s) x %.3g (%s) x %.3g (%s)", figures(f.Level), over, f.Shape, shape, f.Margin, margin)
	if len(s.Kept) > 0 {
		text += "; not measured: " + strings.Join(s.Kept, ", ")
	}
	if s.EstimatedShare > 0 {
		text += fmt.Sprintf("; tokens of %.3g %% of requests estimated", 100*s.EstimatedShare)
	}
	return text
}

// notes are what the tables do not say by themselves.
func (r *Result) notes() []string {
	var notes []string
	for _, s := range r.Sources {
		name := s.Cluster + "/" + s.Class
		switch f := s.Forecast; {
		case f == nil:
			notes = append(notes, fmt.Sprintf("%s has no measured demand; it stays at %s req/s", name, figures(s.RPS)))
		case f.Margin == maxMargin:
			notes = append(notes, fmt.Sprintf("%s cannot be forecast well: the margin is at its limit of x %v", name, maxMargin))
		case f.Shape == maxShape || f.Shape == 1/maxShape:
			notes = append(notes, fmt.Sprintf("%s: last week's shape is at its limit of x %v", name, f.Shape))
		}
		if f := s.Forecast; f != nil && f.Measured < 0.8 {
			notes = append(notes, fmt.Sprintf("%s: only %.0f %% of the last hour is measured", name, 100*f.Measured))
		}
		if s.EstimatedShare > 0.1 {
			notes = append(notes, fmt.Sprintf("%s: the tokens of %.0f %% of the requests are estimates; engines report them if streams ask for usage (stream_options.include_usage)", name, 100*s.EstimatedShare))
		}
	}
	return notes
}
