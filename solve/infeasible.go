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
// which limits keep how much of it from being served, and what keeps it from
// other engines.
func wordInfeasible(c *model.Compiled, err error) error {
	var infeasible *model.Infeasible
	if !errors.As(err, &infeasible) {
		return err
	}
	servable := !slices.ContainsFunc(infeasible.Sources, func(s int) bool { return c.Row[s] == c.Row[s+1] })
	shares := bindingShares(c, infeasible)
	minima := slices.ContainsFunc(shares, func(b *bindingShare) bool { return b.least })
	return &InfeasibleError{
		Cause: infeasible, Sheddable: servable && !minima && !c.Shed,
		text: infeasibleText(c, infeasible, shares),
	}
}

// InfeasibleError is a demand that the fleet cannot serve, in words.
type InfeasibleError struct {
	Cause     *model.Infeasible
	Sheddable bool // shedding, which the policy forbids, would help
	text      string
}

func (e *InfeasibleError) Error() string { return e.text }
func (e *InfeasibleError) Unwrap() error { return e.Cause }

func infeasibleText(c *model.Compiled, e *model.Infeasible, shares []*bindingShare) string {
	var b strings.Builder
	b.WriteString("infeasible: ")
	if len(e.Sources) == 0 {
		b.WriteString("least shares ask for more than can be had")
	} else {
		b.WriteString(demandText(c, e))
	}
	switch limits := limitTexts(c, e, shares); {
	case len(limits) == 0:
		fmt.Fprintf(&b, ", and no engine may serve %[1]s; give %[1]s one or take %[1]s out", plural(len(e.Sources), "it", "them"))
	case len(e.Sources) > 0 && len(e.Caps) == 0 && len(shares) == 0:
		fmt.Fprintf(&b, ", and may only use %s", engineLimit(c, e, ", which"))
	default:
		fmt.Fprintf(&b, ": %s", strings.Join(limits, "; "))
	}
	fmt.Fprintf(&b, "; short by %.6g req/s", e.ShortRPS)
	for _, line := range excludedLines(c, e) {
		b.WriteString("; " + line)
	}
	return b.String()
}

// demandText is "us-east/chat demands 120 req/s", with the work of that where a
// request is not like the reference.
func demandText(c *model.Compiled, e *model.Infeasible) string {
	var demand, work float64
	for _, s := range e.Sources {
		demand += c.Sources[s].DemandRPS
		work += c.Sources[s].DemandRPS * c.Sources[s].Work
	}
	text := fmt.Sprintf("%s demand%s %.6g req/s", sourceNames(c, e.Sources), plural(len(e.Sources), "s", ""), demand)
	if node := limitingEngine(c, e); node != nil {
		if reference := work / node.ReferenceWork; math.Abs(reference-demand) > 1e-6*demand {
			text += fmt.Sprintf(" (%.6g reference req/s of work)", reference)
		}
	}
	return text
}

// limitingEngine returns an engine whose reference requests the limits of a
// binding set are told in, nil if they are told in none.
func limitingEngine(c *model.Compiled, e *model.Infeasible) *model.EngineNode {
	switch {
	case len(e.Engines) > 0:
		return &c.Engines[e.Engines[0]]
	case len(e.Caps) > 0:
		return &c.Engines[c.Caps[e.Caps[0]].Engines[0]]
	}
	return nil
}

// limitTexts says of each limit of the binding set what it lets through.
func limitTexts(c *model.Compiled, e *model.Infeasible, shares []*bindingShare) []string {
	const most = 6
	var texts []string
	if len(e.Engines) > 0 {
		texts = append(texts, engineLimit(c, e, ""))
	}
	for _, i := range e.Caps {
		at := slices.IndexFunc(c.Fleet.Policy.Caps, func(limit model.Cap) bool { return limit.Name == c.Caps[i].Name })
		texts = append(texts, fmt.Sprintf("%s lets %s take at most %.6g reference req/s",
			c.Caps[i].Name, engineNames(c, c.Caps[i].Engines), c.Fleet.Policy.Caps[at].MaxRPS))
	}
	for _, b := range shares {
		texts = append(texts, b.text(c))
	}
	if more := len(texts) - most; more > 0 {
		texts = append(texts[:most], fmt.Sprintf("and %d more limits", more))
	}
	return texts
}

// engineLimit is "a-1, c-1 take at most 180 reference req/s"; which goes before
// the verb.
func engineLimit(c *model.Compiled, e *model.Infeasible, which string) string {
	var limit float64
	for _, i := range e.Engines {
		limit += c.Engines[i].Limit / c.Engines[i].ReferenceWork
	}
	return fmt.Sprintf("%s%s take%s at most %.6g reference req/s", engineNames(c, e.Engines), which, plural(len(e.Engines), "s", ""), limit)
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

func engineNames[E int | int32](c *model.Compiled, engines []E) string {
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
