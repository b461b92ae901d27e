package lint

import (
	"slices"
	"strings"

	"github.com/irb-project/irb/solve/model"
)

// covers says whether every request that class b matches is one that a matches,
// as an agent would.
func covers(a, b *model.Class) bool {
	if !strings.HasPrefix(b.Match.Path, a.Match.Path) {
		return false
	}
	if !subset(b.Match.Methods, a.Match.Methods) || !subset(b.Match.Identity, a.Match.Identity) {
		return false
	}
	for name, value := range a.Match.Headers {
		if v, ok := header(b.Match.Headers, name); !ok || v != value {
			return false
		}
	}
	models, of := models(a), models(b)
	if len(models) == 0 {
		return true
	}
	return len(of) > 0 && !slices.ContainsFunc(of, func(m string) bool { return !modelCovered(m, models) })
}

// models is what a class matches by model: its list, else its own model.
func models(c *model.Class) []string {
	if len(c.Match.Models) == 0 && c.Model != "" {
		return []string{c.Model}
	}
	return c.Match.Models
}

// modelCovered says whether a name or prefix ("llama-*") is within one of a
// list of them.
func modelCovered(m string, list []string) bool {
	return slices.ContainsFunc(list, func(pattern string) bool {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(strings.TrimSuffix(m, "*"), prefix)
		}
		return m == pattern
	})
}

// subset says whether what a list of alternatives b allows is within a; an
// empty list allows anything.
func subset(b, a []string) bool {
	if len(a) == 0 {
		return true
	}
	return len(b) > 0 && !slices.ContainsFunc(b, func(s string) bool { return !slices.Contains(a, s) })
}

func header(headers map[string]string, name string) (string, bool) {
	for n, v := range headers {
		if strings.EqualFold(n, name) {
			return v, true
		}
	}
	return "", false
}
