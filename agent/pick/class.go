package pick

import (
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"github.com/irb-project/irb/agent/snapshot"
)

// Class is a traffic class in this cluster.
type Class struct {
	Spec   *snapshot.Class
	Source *snapshot.Source // nil: the snapshot routes nothing of it here
	Number int              // in Classes

	table   *Table
	matcher matcher
	layout  layout
}

// Routable returns nil if the snapshot says where this class goes from this
// cluster, else the error that a client may see.
func (c *Class) Routable() error {
	if c.Source == nil {
		return fmt.Errorf("class %q has no weights in cluster %q (snapshot %d)", c.Spec.Name, c.table.cluster, c.table.snapshot.Sequence)
	}
	return nil
}

// Facts is what is known of a request when its class is looked for.
type Facts struct {
	Method string
	Path   string
	Model  string // "" if the request names none
	// Identities are the names that the peer proved: listener, client
	// certificate, trusted proxy.
	Identities []string
	// Header is the request's header with canonical names; nil if the peer may
	// not be believed.
	Header map[string][]string
}

// Match returns the first class whose rule holds for f, nil if there is none.
// It takes no lock and allocates nothing.
func (t *Table) Match(f Facts) *Class {
	for i := range t.classes {
		if t.classes[i].matcher.match(&f) {
			return &t.classes[i]
		}
	}
	return nil
}

// matcher is a compiled snapshot.Match.
type matcher struct {
	never      bool // wants a header that nobody may be believed about
	path       string
	methods    []string
	models     []string // exact
	prefixes   []string // of models
	identities []string
	headers    []headerRule
}

type headerRule struct{ name, value string }

// newMatcher compiles the rule of a class. A class for one model that does not
// list models to match takes requests for that model only: its engines were
// chosen because they serve it.
func newMatcher(c *snapshot.Class, trusted []string) matcher {
	m := matcher{path: c.Match.Path, methods: c.Match.Methods, identities: c.Match.Identity}
	models := c.Match.Models
	if len(models) == 0 && c.Model != "" {
		models = []string{c.Model}
	}
	for _, name := range models {
		if prefix, ok := strings.CutSuffix(name, "*"); ok {
			m.prefixes = append(m.prefixes, prefix)
		} else {
			m.models = append(m.models, name)
		}
	}
	for name, value := range c.Match.Headers {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if !slices.ContainsFunc(trusted, func(s string) bool { return strings.EqualFold(s, name) }) {
			m.never = true
		}
		m.headers = append(m.headers, headerRule{canonical, value})
	}
	return m
}

func (m *matcher) match(f *Facts) bool {
	if m.never || !strings.HasPrefix(f.Path, m.path) {
		return false
	}
	if len(m.methods) > 0 && !slices.Contains(m.methods, f.Method) {
		return false
	}
	return m.matchModel(f.Model) && m.matchCaller(f)
}

// matchCaller looks at what a trusted source says of the caller.
func (m *matcher) matchCaller(f *Facts) bool {
	if len(m.identities) > 0 && !slices.ContainsFunc(f.Identities, m.hasIdentity) {
		return false
	}
	for _, h := range m.headers {
		// Two values are one claim too many: which of them would the trusted
		// proxy have set?
		if v := f.Header[h.name]; len(v) != 1 || v[0] != h.value {
			return false
		}
	}
	return true
}

func (m *matcher) hasIdentity(id string) bool { return slices.Contains(m.identities, id) }

func (m *matcher) matchModel(model string) bool {
	if len(m.models) == 0 && len(m.prefixes) == 0 {
		return true
	}
	if slices.Contains(m.models, model) {
		return true
	}
	for _, p := range m.prefixes {
		if strings.HasPrefix(model, p) {
			return true
		}
	}
	return false
}
