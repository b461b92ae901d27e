package snapshot

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// maxNameBytes bounds the names of fleets, clusters, classes, engines, regions.
const maxNameBytes = 63

// ValidName says whether a name matches [A-Za-z0-9][A-Za-z0-9 ._-]{0,62}
// without a blank at the end.
func ValidName(name string) bool {
	if name == "" || len(name) > maxNameBytes || strings.HasSuffix(name, " ") {
		return false
	}
	for i := range len(name) {
		c := name[i]
		alphanumeric := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alphanumeric && (i == 0 || !strings.ContainsRune(" ._-", rune(c))) {
			return false
		}
	}
	return true
}

// Check says whether a snapshot means something that an agent can serve, and
// may: names are valid, known and not given twice; numbers are finite and in
// range; quotas sum to the hash space and the layout measures just that; no
// source has a weight or a fallback on an engine that its class may not use.
// The error joins all problems, at most 20.
//
// That the policy is feasible and optimal is for its proof, not for Check: a
// plan made in an emergency may be neither.
func Check(s *Snapshot) error { return check(s, func() {}) }

// check is Check with pauses.
func check(s *Snapshot, pause func()) error {
	c := &checker{
		classes: make(map[string]*Class, len(s.Classes)),
		engines: make(map[string]*Engine, len(s.Engines)),
		used:    map[string]string{},
		seen:    map[string]bool{},
	}
	c.header(s)
	for i := range s.Classes {
		c.class(&s.Classes[i])
		pause()
	}
	for i := range s.Engines {
		c.order(place{kind: "engine"}, i, func(j int) string { return s.Engines[j].Name })
		c.engine(&s.Engines[i])
	}
	c.proof(s)
	if len(s.Sources) == 0 {
		c.errorf("no source")
	}
	for i := range s.Sources {
		c.order(place{kind: "source"}, i, func(j int) string { return sourceKey(&s.Sources[j]) })
		c.source(&s.Sources[i])
		pause()
	}
	return errors.Join(c.errs...)
}

// sourceKey orders sources by cluster, then class: no name has a byte 0.
func sourceKey(s *Source) string { return s.Cluster + "\x00" + s.Class }

type checker struct {
	classes map[string]*Class
	engines map[string]*Engine
	errs    []error

	// Of the present source, by engine.
	used map[string]string // "weight" or "fallback"
	seen map[string]bool   // as an alternative
}

func (c *checker) errorf(format string, args ...any) {
	if len(c.errs) < maxProblems {
		c.errs = append(c.errs, fmt.Errorf(format, args...))
	}
}

// place says where in a snapshot a problem is: in something with a name, perhaps
// in one of its parts. It becomes text for a problem only: there are many places
// and few problems.
type place struct {
	kind, cluster, name string
	part, partName      string
}

func (p place) in(part, name string) place {
	p.part, p.partName = part, name
	return p
}

func (p place) String() string {
	text := p.kind
	if p.name != "" {
		text += " "
		if p.cluster != "" {
			text += p.cluster + "/"
		}
		text += p.name
	}
	if p.part != "" {
		text += ": " + p.part
	}
	if p.partName != "" {
		text += " " + p.partName
	}
	return text
}

// order demands that names ascend, so that there is no duplicate either.
func (c *checker) order(what place, i int, name func(int) string) {
	if i > 0 && name(i-1) >= name(i) {
		c.errorf("%s %q after %q: duplicate or out of order", what, display(name(i)), display(name(i-1)))
	}
}

func display(key string) string { return strings.ReplaceAll(key, "\x00", "/") }

func (c *checker) name(what, name string) {
	if !ValidName(name) {
		c.errorf("%s is %q, want letters, digits and \" ._-\", at most %d, a letter or digit first", what, name, maxNameBytes)
	}
}

// number demands lo <= x <= hi and finite.
func (c *checker) number(where place, what string, x, lo, hi float64) {
	if x >= lo && x <= hi && !math.IsInf(x, 0) {
		return
	}
	switch {
	case !math.IsInf(hi, 1):
		c.errorf("%s: %s is %v, want a number in [%v, %v]", where, what, x, lo, hi)
	case !math.IsInf(lo, -1):
		c.errorf("%s: %s is %v, want a finite number >= %v", where, what, x, lo)
	default:
		c.errorf("%s: %s is %v, want a finite number", where, what, x)
	}
}

func (c *checker) atLeast0(where place, what string, x float64) {
	c.number(where, what, x, 0, math.Inf(1))
}
func (c *checker) finite(where place, what string, x float64) {
	c.number(where, what, x, math.Inf(-1), math.Inf(1))
}

func (c *checker) oneOf(where place, what, got string, want ...string) {
	for _, w := range want {
		if got == w {
			return
		}
	}
	c.errorf("%s: %s is %q, want %s", where, what, got, strings.Join(want, " or "))
}

// header checks what is said once: identity, inputs, solver, policy.
func (c *checker) header(s *Snapshot) {
	if s.Format < 1 || s.Format > Format {
		c.errorf("format is %d, want %s", s.Format, formats())
	}
	c.name("fleet", s.Fleet)
	if s.Sequence <= 0 {
		c.errorf("sequence is %d, want > 0", s.Sequence)
	}
	if !s.Expires.After(s.Created) {
		c.errorf("expires is %s, want after created, %s", s.Expires.Format(time.RFC3339), s.Created.Format(time.RFC3339))
	}
	for _, in := range s.Inputs {
		if in.Role == "" {
			c.errorf("input %q: no role", in.File)
		}
		if len(in.SHA256) != 64 || strings.Trim(in.SHA256, "0123456789abcdef") != "" {
			c.errorf("input %q: sha256 is %q, want 64 hex digits", in.File, in.SHA256)
		}
	}
	v := &s.Solver
	if v.Method == "" {
		c.errorf("solver: no method")
	}
	solver := place{kind: "solver"}
	c.oneOf(solver, "work", v.Work, "single", "split")
	c.finite(solver, "objective_ms_rps", v.Objective)
	c.finite(solver, "bound_ms_rps", v.Bound)
	c.finite(solver, "gap", v.Gap)
	c.atLeast0(solver, "mean_latency_ms", v.LatencyMs)
	c.atLeast0(solver, "churn_cost_ms_rps", v.ChurnCost)
	c.atLeast0(solver, "offered_rps", v.OfferedRPS)
	c.atLeast0(solver, "served_rps", v.ServedRPS)
	c.number(solver, "moved_share", v.MovedShare, 0, 1)
	p := &s.Policy
	if !(p.MaxUtilization > 0) {
		c.errorf("policy: max_utilization is %v, want > 0", p.MaxUtilization)
	}
	policy := place{kind: "policy"}
	c.number(policy, "max_utilization", p.MaxUtilization, 0, 1)
	c.atLeast0(policy, "output_token_work", p.OutputTokenWork)
	c.atLeast0(policy, "round_trips", p.RoundTrips)
	c.oneOf(policy, "shed", p.Shed, "forbid", "allow")
}

// proof checks the prices of bounds; what they bind may be in another file when
// there is one per cluster.
func (c *checker) proof(s *Snapshot) {
	for i := range s.Groups {
		c.finite(place{kind: "group", name: s.Groups[i].Name}, "price_ms", s.Groups[i].PriceMs)
	}
	for i := range s.Caps {
		c.atLeast0(place{kind: "cap", name: s.Caps[i].Name}, "price", s.Caps[i].Price)
	}
}
