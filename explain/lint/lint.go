// Package lint finds what inputs allow and their author can hardly mean:
// classes that nothing reaches, engines that nothing may use, single points of
// failure, claims that a client could make up.
package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/irb-project/irb/solve/model"
)

// Finding is one remark about the inputs.
type Finding struct {
	Code    string `json:"code"`    // stable
	Problem bool   `json:"problem"` // it will hurt some day; else a note, which may be meant
	Subject string `json:"subject"` // "class chat-eu", "engine a-1"
	Text    string `json:"text"`
}

// Codes of findings, stable for machines.
const (
	CodeNoEngine      = "no-engine"          // nothing may serve a source or class
	CodeEngineUnused  = "engine-unused"      // no class may use an engine
	CodeShadowed      = "class-shadowed"     // an earlier class takes all of its requests
	CodeNoDemand      = "class-no-demand"    // no source sends any of a class
	CodeNoCatchAll    = "no-catch-all"       // some requests match no class
	CodeRuleIdle      = "rule-idle"          // a rule covers no pair that may be used
	CodeRuleRedundant = "rule-redundant"     // another rule says the same or more
	CodeSinglePoint   = "single-point"       // one engine or failure domain carries all
	CodeResidency     = "residency-no-spare" // what is left if it is lost breaks residency
	CodeClientHeader  = "client-header"      // a class is claimed by a header alone
	CodeExpiry        = "expiry"             // files expire before the next one comes
)

// Schedule is how often a fleet is solved and how long a file may be taken into
// service; Period 0: not known.
type Schedule struct {
	Period, ExpiresIn time.Duration
}

// Check returns the findings, problems first.
func Check(c *model.Compiled, schedule Schedule) []Finding {
	l := &linter{c: c, policy: &c.Fleet.Policy}
	l.classes()
	l.sources()
	l.engines()
	l.rules()
	l.schedule(schedule)
	slices.SortStableFunc(l.found, func(a, b Finding) int { return cmp.Compare(rank(a), rank(b)) })
	return l.found
}

func rank(f Finding) int {
	if f.Problem {
		return 0
	}
	return 1
}

type linter struct {
	c      *model.Compiled
	policy *model.Policy
	found  []Finding
}

func (l *linter) problem(code, subject, format string, args ...any) {
	l.found = append(l.found, Finding{code, true, subject, fmt.Sprintf(format, args...)})
}

func (l *linter) note(code, subject, format string, args ...any) {
	l.found = append(l.found, Finding{code, false, subject, fmt.Sprintf(format, args...)})
}

// classes looks at how an agent would recognise them.
func (l *linter) classes() {
	classes := l.policy.Classes
	for i := range classes {
		c := &classes[i]
		for j := range i {
			if covers(&classes[j], c) {
				l.problem(CodeShadowed, "class "+c.Name, "class %s is tried before and matches all that this one could; put it after, or make it match less", classes[j].Name)
				break
			}
		}
		if !slices.ContainsFunc(l.c.Fleet.Demand, func(d model.Demand) bool { return d.Class == c.Name }) {
			l.problem(CodeNoDemand, "class "+c.Name, "no row of the demand is of it: no agent gets weights for it, and requests that match it get 503")
		}
		l.claims(c, classes[i+1:])
	}
	all := func(c model.Class) bool { return covers(&c, &model.Class{}) }
	if !slices.ContainsFunc(classes, all) {
		l.note(CodeNoCatchAll, "policy", "no class matches everything: what matches none is refused")
	}
}

// claims warns of a class that a header alone lets a client into, where it has
// more to gain there than in the classes that would take the request else.
func (l *linter) claims(c *model.Class, after []model.Class) {
	if len(c.Match.Headers) == 0 || len(c.Match.Identity) > 0 {
		return
	}
	var names []string
	for name := range c.Match.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	better := ""
	for i := range after {
		switch {
		case after[i].Priority < c.Priority:
			better = fmt.Sprintf("; it is kept longer than class %s", after[i].Name)
		case len(after[i].Residency) > len(c.Residency):
			better = fmt.Sprintf("; it may go where class %s may not", after[i].Name)
		}
	}
	text := "it is recognised by %s alone%s: a client could set that; agents honour it only where agent.toml trusts the header, so let a trusted proxy strip and set it, or match an identity"
	if better != "" {
		l.problem(CodeClientHeader, "class "+c.Name, text, strings.Join(names, ", "), better)
	} else {
		l.note(CodeClientHeader, "class "+c.Name, text, strings.Join(names, ", "), better)
	}
}

// sources looks at what may serve each row of the demand.
func (l *linter) sources() {
	for row, d := range l.c.Fleet.Demand {
		name := d.Cluster + "/" + d.Class
		eligible := l.c.EligibleEngines(row)
		if len(eligible) == 0 {
			l.problem(CodeNoEngine, "source "+name, "no engine may serve it: %s", l.exclusions(row))
			continue
		}
		domains := make(map[string]bool)
		for _, e := range eligible {
			domains[l.c.Engines[e].Domain] = true
		}
		first := l.c.Engines[eligible[0]]
		what := "engine " + first.Name
		if len(eligible) > 1 {
			what = l.policy.FailureDomain + " " + first.Domain
		}
		if len(domains) > 1 {
			continue
		}
		if l.breaksResidency(row) {
			l.problem(CodeResidency, "source "+name, "only %s may serve it; if it is lost, every other engine would break the residency of class %s, and requests get 503", what, d.Class)
		} else {
			l.problem(CodeSinglePoint, "source "+name, "only %s may serve it; if it is lost, requests get 503", what)
		}
	}
}

// exclusions says why engines may not serve a row of the demand, a few of them.
func (l *linter) exclusions(row int) string {
	const most = 3
	var list []string
	for e := range l.c.Engines {
		if why := l.c.Excluded(row, e); why != "" {
			list = append(list, fmt.Sprintf("%s: %s", l.c.Engines[e].Name, why))
		}
	}
	if n := len(list); n > most {
		list = append(list[:most], fmt.Sprintf("%d more", n-most))
	}
	if len(list) == 0 {
		return "there is none"
	}
	return strings.Join(list, "; ")
}

// breaksResidency says whether residency excludes some engine from a row.
func (l *linter) breaksResidency(row int) bool {
	for label, values := range l.c.Class(row).Residency {
		for _, e := range l.c.Fleet.Engines {
			if !slices.Contains(values, e.Label(label)) {
				return true
			}
		}
	}
	return false
}

// engines looks for those that no row of the demand may use.
func (l *linter) engines() {
	used := make([]bool, len(l.c.Engines))
	for row := range l.c.Fleet.Demand {
		for _, e := range l.c.EligibleEngines(row) {
			used[e] = true
		}
	}
	for e, node := range l.c.Engines {
		switch {
		case used[e]:
		case node.Limit <= 0:
			l.note(CodeEngineUnused, "engine "+node.Name, "it is down (health or capacity is 0)")
		case len(l.c.Fleet.Demand) > 0:
			l.problem(CodeEngineUnused, "engine "+node.Name, "no source may use it: %s/%s: %s", l.c.Fleet.Demand[0].Cluster, l.c.Fleet.Demand[0].Class, l.c.Excluded(0, e))
		}
	}
}

func (l *linter) schedule(s Schedule) {
	switch {
	case s.Period <= 0:
	case s.ExpiresIn <= s.Period:
		l.problem(CodeExpiry, "schedule", "files expire after %s and a new one comes every %s: an agent that starts late finds only an expired one", s.ExpiresIn, s.Period)
	case s.ExpiresIn < 3*s.Period:
		l.note(CodeExpiry, "schedule", "files expire after %s: two solves missed in a row (every %s) leave agents nothing fresh to start with", s.ExpiresIn, s.Period)
	}
}
