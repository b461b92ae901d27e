package bench

import (
	"math"
	"slices"
	"strings"
)

// sameShape is how far the mean lengths of two runs may be apart to count as
// the same request, relative: a run of a few dozen requests with drawn lengths
// varies by that much. Above equalShape that is worth a note.
const (
	sameShape  = 0.15
	equalShape = 0.05
)

// group is the runs of one configuration at one request shape.
type group struct {
	labels       []Label
	promptTokens float64 // means over the runs
	outputTokens float64
	runs         []Run // those that can be used
	faulty       []Run
}

// first returns any run of the group.
func (g *group) first() *Run {
	if len(g.runs) > 0 {
		return &g.runs[0]
	}
	return &g.faulty[0]
}

// add takes a run of this configuration and shape.
func (g *group) add(r Run) {
	if r.Fault != "" {
		g.faulty = append(g.faulty, r)
		return
	}
	g.runs = append(g.runs, r)
	n := float64(len(g.runs))
	g.promptTokens += (r.PromptTokens - g.promptTokens) / n
	g.outputTokens += (r.OutputTokens - g.outputTokens) / n
}

// groups sorts runs by configuration and shape, in the order in which they
// first come.
func groups(runs []Run) []*group {
	var list []*group
	byLabels := make(map[string][]*group)
	for _, r := range runs {
		key := labelKey(r.Labels)
		i := slices.IndexFunc(byLabels[key], func(g *group) bool {
			first := g.first()
			return near(r.PromptTokens, first.PromptTokens) && near(r.OutputTokens, first.OutputTokens)
		})
		if i < 0 {
			i = len(byLabels[key])
			g := &group{labels: r.Labels}
			byLabels[key] = append(byLabels[key], g)
			list = append(list, g)
		}
		byLabels[key][i].add(r)
	}
	for _, g := range list {
		if len(g.runs) == 0 {
			g.promptTokens, g.outputTokens = known(g.first().PromptTokens), known(g.first().OutputTokens)
		}
	}
	return list
}

// spread returns how far the lengths of the runs are apart, relative.
func (g *group) spread() float64 {
	worst := 0.0
	for _, r := range g.runs {
		worst = max(worst, math.Abs(r.PromptTokens/g.promptTokens-1), math.Abs(r.OutputTokens/g.outputTokens-1))
	}
	return worst
}

// known returns a length, 0 for one that could not be read.
func known(tokens float64) float64 {
	if math.IsNaN(tokens) {
		return 0
	}
	return tokens
}

// near says whether two lengths are the same within sameShape; unknown ones,
// NaN or 0, are.
func near(a, b float64) bool {
	return math.Abs(a-b) <= sameShape*b || math.IsNaN(a) && math.IsNaN(b)
}

func labelKey(labels []Label) string {
	var b strings.Builder
	for _, l := range labels {
		b.WriteString(l.Key + "\x00" + l.Value + "\x00")
	}
	return b.String()
}
