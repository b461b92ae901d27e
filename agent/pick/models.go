package pick

import (
	"slices"
	"strings"
)

// Models returns the names of the models that a request of these facts may ask
// for, sorted: those of the classes that take its caller, whatever their path.
// Classes that take models by prefix, or any, stand for what engines list.
func (t *Table) Models(f Facts) []string {
	var names []string
	for i := range t.classes {
		m := &t.classes[i].matcher
		if m.never || !m.matchCaller(&f) || t.classes[i].Source == nil {
			continue
		}
		names = append(names, m.models...)
		if len(m.models) > 0 && len(m.prefixes) == 0 {
			continue
		}
		for _, e := range t.Engines() {
			for _, name := range e.Models {
				if m.matchModel(name) && !strings.HasSuffix(name, "*") {
					names = append(names, name)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
