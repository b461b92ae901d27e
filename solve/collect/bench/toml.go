package bench

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/irb-project/irb/solve/figure"
)

// TOML returns the part of engines.toml for the profiles that were not refused,
// with what they come from in comments.
func TOML(sources []Source, profiles []*Profile, work []Work, now time.Time) string {
	digests := make(map[string]string, len(sources))
	for _, s := range sources {
		digests[s.File] = s.SHA256
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Engine profiles, made by irbctl profile at %s.\n", now.UTC().Format(time.RFC3339))
	for _, w := range work {
		comment(&b, "%s: %s", w.Name(), w)
	}
	for _, p := range profiles {
		if p.Refusal == "" {
			b.WriteByte('\n')
			p.writeTOML(&b, digests)
		}
	}
	return b.String()
}

func (p *Profile) writeTOML(b *strings.Builder, digests map[string]string) {
	for _, file := range p.Files {
		comment(b, "from %s, sha256 %.16s", file, digests[file])
	}
	if text := labelText(p.Labels); text != "" {
		comment(b, "%s", text)
	}
	comment(b, "%d of %d runs used, the fit is off by at most %s", p.RunsRead-p.RunsLeftOut, p.RunsRead, figure.Percent(p.WorstRelError))
	for _, n := range p.Notes {
		comment(b, "note: %s", n)
	}
	fmt.Fprintf(b, "[profile.%s]\n", tomlKey(p.Name))
	fmt.Fprintf(b, "prompt_tokens = %s\noutput_tokens = %s\n", decimal(p.PromptTokens), decimal(p.OutputTokens))
	fmt.Fprintf(b, "utilization = %s\n", decimals(p.Spec.Utilization))
	fmt.Fprintf(b, "ttft_ms     = %s\n", decimals(p.Spec.TTFTMs))
	fmt.Fprintf(b, "tbot_ms     = %s\n", decimals(p.Spec.TBOTMs))
	if p.Spec.AcceptErrorAbove25 {
		b.WriteString("accept_error_above_25 = true\n")
	}
	atLeast := ""
	if p.CapacityAtLeast {
		atLeast = ", or more"
	}
	comment(b, "For [[engine]], per replica as measured%s; the knee is at utilization %s:", atLeast, decimal(round(p.Knee, 3)))
	comment(b, "profile = %s", strconv.Quote(p.Name))
	comment(b, "capacity_rps = %s", decimal(p.CapacityRPS))
	if p.MaxUtilization > 0 {
		comment(b, "max_utilization = %s  # %s", decimal(p.MaxUtilization), p.MaxBecause)
	}
}

// comment writes a comment line. A line end in a label or a file name must not
// end it.
func comment(b *strings.Builder, format string, args ...any) {
	b.WriteString("# " + strings.TrimLeft(strings.Map(printable, fmt.Sprintf(format, args...)), ": ") + "\n")
}

func printable(r rune) rune {
	if strconv.IsPrint(r) {
		return r
	}
	return ' '
}

func labelText(labels []Label) string {
	var parts []string
	for _, l := range labels {
		if l.Value != "" {
			parts = append(parts, l.Key+" = "+l.Value)
		}
	}
	return strings.Join(parts, ", ")
}

// tomlKey returns a bare key where it can be one.
func tomlKey(name string) string {
	if strings.Trim(name, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-") == "" && name != "" {
		return name
	}
	return strconv.Quote(name)
}

func decimals(list []float64) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = decimal(v)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
