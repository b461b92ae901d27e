package solve

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/irb-project/irb/solve/model"
)

// wordInfeasible gives an infeasible program its sentence: who demands what,
// what it can reach, and what keeps it from the rest.
func wordInfeasible(c *model.Compiled, err error) error {
	var infeasible *model.Infeasible
	if !errors.As(err, &infeasible) {
		return err
	}
	servable := !slices.ContainsFunc(infeasible.Sources, func(s int) bool { return c.Row[s] == c.Row[s+1] })
	return &InfeasibleError{Cause: infeasible, Sheddable: servable && !c.Shed, text: infeasibleText(c, infeasible)}
}

// InfeasibleError is a demand that the fleet cannot serve, in words.
type InfeasibleError struct {
	Cause     *model.Infeasible
	Sheddable bool // shedding, which the policy forbids, would help
	text      string
}

func (e *InfeasibleError) Error() string { return e.text }
func (e *InfeasibleError) Unwrap() error { return e.Cause }

func infeasibleText(c *model.Compiled, e *model.Infeasible) string {
	var b strings.Builder
	b.WriteString("infeasible: ")
	var demand, work float64
	for _, s := range e.Sources {
		demand += c.Sources[s].DemandRPS
		work += c.Sources[s].DemandRPS * c.Sources[s].Work
	}
	fmt.Fprintf(&b, "%s demand%s %.6g req/s", sourceNames(c, e.Sources), plural(len(e.Sources), "s", ""), demand)
	if len(e.Engines) > 0 {
		if reference := work / c.Engines[e.Engines[0]].ReferenceWork; math.Abs(reference-demand) > 1e-6*demand {
			fmt.Fprintf(&b, " (%.6g reference req/s of work)", reference)
		}
	}
	if len(e.Engines) > 0 {
		var limit float64
		for _, i := range e.Engines {
			limit += c.Engines[i].Limit / c.Engines[i].ReferenceWork
		}
		fmt.Fprintf(&b, ", and may only use %s, which take%s at most %.6g reference req/s", engineNames(c, e.Engines), plural(len(e.Engines), "s", ""), limit)
	} else if len(e.Groups) == 0 && len(e.Caps) == 0 {
		b.WriteString(", and no engine may serve it; give it one or take it out")
	}
	for _, g := range e.Groups {
		fmt.Fprintf(&b, "; %s allows %.6g to %.6g req/s", c.Groups[g].Name, c.Groups[g].MinRPS, c.Groups[g].MaxRPS)
	}
	for _, i := range e.Caps {
		fmt.Fprintf(&b, "; %s binds", c.Caps[i].Name)
	}
	fmt.Fprintf(&b, "; short by %.6g req/s", e.ShortRPS)
	for _, line := range excludedLines(c, e) {
		b.WriteString("; " + line)
	}
	return b.String()
}

// excludedLines says, for the first few engines beyond the binding set, what
// keeps its sources from them.
func excludedLines(c *model.Compiled, infeasible *model.Infeasible) []string {
	const most = 4
	var lines []string
	for e := range c.Engines {
		if slices.Contains(infeasible.Engines, e) {
			continue
		}
		for _, s := range infeasible.Sources {
			if why := c.Excluded(c.SourceDemand[s], e); why != "" {
				lines = append(lines, fmt.Sprintf("engine %q is out of reach of %s: %s", c.Engines[e].Name, sourceName(c, s), why))
				break
			}
		}
		if len(lines) == most {
			break
		}
	}
	return lines
}

func sourceName(c *model.Compiled, s int) string {
	return fmt.Sprintf("%s/%s", c.Sources[s].Cluster, c.Sources[s].Class)
}

func sourceNames(c *model.Compiled, sources []int) string {
	return joinSome(len(sources), func(i int) string { return sourceName(c, sources[i]) })
}

func engineNames(c *model.Compiled, engines []int) string {
	return joinSome(len(engines), func(i int) string { return c.Engines[engines[i]].Name })
}

// joinSome lists the first few of n names and counts the rest.
func joinSome(n int, name func(int) string) string {
	const most = 6
	var names []string
	for i := range min(n, most) {
		names = append(names, name(i))
	}
	text := strings.Join(names, ", ")
	if n > most {
		text += fmt.Sprintf(" and %d more", n-most)
	}
	return text
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
